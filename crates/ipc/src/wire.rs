//! Frames on a stream: a header of five bytes (length of the body, little-endian `u32`; number of descriptors, `u8`), then a
//! JSON body. On a socket the descriptors ride as `SCM_RIGHTS` on the header's bytes (unix(7)); through a pipe of Windows go none.

use std::{collections::VecDeque, io};

use serde::{Serialize, de::DeserializeOwned};

#[cfg(unix)]
mod socket;

#[cfg(unix)]
pub use socket::send;

#[cfg(unix)]
use std::os::fd::OwnedFd as Descriptor;
#[cfg(windows)]
use std::os::windows::io::OwnedHandle as Descriptor;

/// Largest body, in bytes. A launch request carries an environment, which Linux bounds at 6 MiB with arguments.
pub const MAX_BODY: usize = 16 << 20;

/// Most descriptors in one frame.
pub const MAX_FDS: usize = 12;

const HEADER: usize = 5;

/// What can be wrong with a frame.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The peer closed the connection.
    #[error("the other side closed the connection")]
    Closed,
    /// Larger than [`MAX_BODY`] or with more than [`MAX_FDS`] descriptors.
    #[error("a frame is larger than the protocol allows")]
    TooLarge,
    /// Not the JSON that was expected.
    #[error("a frame does not hold the expected message: {0}")]
    Body(#[from] serde_json::Error),
    /// A frame promised descriptors that did not come.
    #[error("a frame came without its descriptors")]
    Descriptors,
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

impl WireError {
    /// Whether the other side is gone.
    pub fn lost(&self) -> bool {
        match self {
            Self::Closed => true,
            Self::Io(e) => matches!(e.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe),
            Self::TooLarge | Self::Body(_) | Self::Descriptors => false,
        }
    }
}

/// Encodes one message as a frame that announces `fds` descriptors.
pub fn encode<T: Serialize>(message: &T, fds: usize) -> Result<Vec<u8>, WireError> {
    let mut frame = vec![0; HEADER];
    serde_json::to_writer(&mut frame, message)?;
    let body = frame.len() - HEADER;
    if body > MAX_BODY || fds > MAX_FDS {
        return Err(WireError::TooLarge);
    }
    let (length, count) = (u32::try_from(body).unwrap_or(u32::MAX), u8::try_from(fds).unwrap_or(u8::MAX));
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4] = count;
    Ok(frame)
}

/// Collects frames from what was read.
#[derive(Default)]
pub struct Receiver {
    bytes: Vec<u8>,
    fds: VecDeque<Descriptor>,
}

/// A whole frame.
pub struct Frame {
    body: Vec<u8>,
    /// Its descriptors.
    pub fds: Vec<Descriptor>,
}

impl Frame {
    /// The message in it.
    pub fn message<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl Receiver {
    /// Takes in what was read.
    #[cfg(windows)]
    pub(crate) fn take_in(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next whole frame, if there is one.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        let Some((header, rest)) = self.bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let count = usize::from(header[4]);
        if length > MAX_BODY || count > MAX_FDS {
            return Err(WireError::TooLarge);
        }
        if rest.len() < length {
            return Ok(None);
        }
        if self.fds.len() < count {
            return Err(WireError::Descriptors);
        }
        let body = rest[..length].to_vec();
        self.bytes.drain(..HEADER + length);
        Ok(Some(Frame { body, fds: self.fds.drain(..count).collect() }))
    }
}
