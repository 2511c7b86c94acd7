//! What a program is told of a request that failed.

use std::{error::Error as StdError, io};

use wasmtime_wasi_http::{
    Error,
    p2::bindings::http::types::{DnsErrorPayload, ErrorCode, TlsAlertReceivedPayload},
};

/// Why there is no connection.
pub fn of_connect(error: &io::Error) -> ErrorCode {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied, TimedOut};
    match error.kind() {
        // The sandbox: no grant names this host and port.
        PermissionDenied => ErrorCode::DestinationIpProhibited,
        ConnectionRefused => ErrorCode::ConnectionRefused,
        TimedOut => ErrorCode::ConnectionTimeout,
        HostUnreachable | NetworkUnreachable => ErrorCode::DestinationIpUnroutable,
        _ if was_cut(error) => ErrorCode::ConnectionTerminated,
        // Errors of getaddrinfo(3) have no number of the system's. A name that is not granted does not exist here.
        _ if error.raw_os_error().is_none() => ErrorCode::DnsError(DnsErrorPayload { rcode: None, info_code: None }),
        _ => ErrorCode::DestinationUnavailable,
    }
}

/// Why TLS could not begin.
pub fn of_tls(error: &io::Error) -> ErrorCode {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            ErrorCode::TlsCertificateError
        }
        Some(rustls::Error::AlertReceived(alert)) => ErrorCode::TlsAlertReceived(TlsAlertReceivedPayload {
            alert_id: Some(u8::from(*alert)),
            alert_message: alert.as_str().map(str::to_owned),
        }),
        None if was_cut(error) || error.kind() == io::ErrorKind::UnexpectedEof => ErrorCode::ConnectionTerminated,
        _ => ErrorCode::TlsProtocolError,
    }
}

/// Why an exchange ended.
pub fn of_http(error: &hyper::Error) -> ErrorCode {
    if error.is_parse_too_large() {
        return ErrorCode::HttpResponseHeaderSectionSize(None);
    }
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(Error::HttpRequestBodySize(most)) = inner.downcast_ref() {
            return ErrorCode::HttpRequestBodySize(*most);
        }
        match inner.downcast_ref::<io::Error>() {
            // Also what a connection meets that a person refused.
            Some(error) if was_cut(error) => return ErrorCode::ConnectionTerminated,
            Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => return ErrorCode::HttpResponseIncomplete,
            _ => cause = inner.source(),
        }
    }
    if error.is_incomplete_message() { ErrorCode::HttpResponseIncomplete } else { ErrorCode::HttpProtocolError }
}

/// Whether the connection was broken off.
fn was_cut(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset)
}
