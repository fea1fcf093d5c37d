//! Messages over the socket between server and helper, in frames. Not here: what they say.

use crate::wire::WireError;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use weir_address::FrameError;
use weir_links::{Frames, TooLong, framed};

/// Bytes that are read at once.
const READ_BYTES_MAX: usize = 16 << 10;

/// The reason for which a link ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    TooLong(#[from] TooLong),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error(transparent)]
    Address(#[from] FrameError),
    #[error("{0}")]
    Told(String),
    #[error("the other end has closed it")]
    Closed,
}

/// The receiving half. It holds no more than one frame.
#[derive(Debug)]
pub(crate) struct Incoming {
    stream: OwnedReadHalf,
    frames: Frames,
}

impl Incoming {
    pub(crate) fn new(stream: OwnedReadHalf) -> Self {
        Self { stream, frames: Frames::default() }
    }

    /// The bytes of the next message. A call that is dropped loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, Broken> {
        let mut space = [0; READ_BYTES_MAX];
        loop {
            if let Some(message) = self.frames.take()? {
                return Ok(message);
            }
            let wanted = self.frames.wanted()?.min(READ_BYTES_MAX);
            match self.stream.read(space.get_mut(..wanted).unwrap_or_default()).await? {
                0 => return Err(Broken::Closed),
                count => self.frames.feed(space.get(..count).unwrap_or_default()),
            }
        }
    }
}

/// Sends a message. A call that is dropped may leave a part of it sent.
pub(crate) async fn send(stream: &mut OwnedWriteHalf, message: &[u8]) -> Result<(), Broken> {
    Ok(stream.write_all(&framed(message)?).await?)
}
