//! Where a call would send something.

use firedoor_model::wire::Leaves;
use url::Url;

/// Longest value that is read as an address, in bytes.
const LONGEST: usize = 4096;

/// The host, with its port where it is not the usual one, that a call's arguments name, if they name exactly one: no other
/// value is an address. What is allowed for it is allowed for the tool at most, so a server that sends elsewhere gains
/// nothing by naming one.
pub fn named(arguments: &str) -> Option<String> {
    let values = Leaves::of(arguments).filter(|leaf| !leaf.key && leaf.text.len() <= LONGEST);
    let mut hosts = values.filter_map(|leaf| host(&leaf.text));
    let first = hosts.next()?;
    hosts.all(|other| other == first).then_some(first)
}

fn host(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let host = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https" | "ws" | "wss"))?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_named_only_when_there_is_no_doubt() {
        for (arguments, want) in [
            (r#"{"url":"https://paste.example.net/u","body":"b"}"#, Some("paste.example.net")),
            (r#"{"url":"HTTPS://Paste.Example.NET:443/u"}"#, Some("paste.example.net")),
            (r#"{"url":"https://paste.example.net:8443/u"}"#, Some("paste.example.net:8443")),
            (r#"{"url":"https://good.example@evil.example/"}"#, Some("evil.example")),
            (r#"{"a":["https://a.example/1","https://a.example/2"]}"#, Some("a.example")),
            (r#"{"a":"https://a.example/","b":{"c":"https://b.example/"}}"#, None),
            (r#"{"a":"https://a.example/","b":"https://a.example:8443/"}"#, None),
            (r#"{"https://a.example/":1,"body":"see https://a.example/"}"#, None),
            (r#"{"path":"/etc/passwd"}"#, None),
            ("not json", None),
        ] {
            assert_eq!(named(arguments).as_deref(), want, "{arguments}");
        }
    }
}
