//! A connection to a share: requests to frames, and frames to answers.

use crate::ClientError;
use crate::answer::Answer;
use crate::request::Request;
use crate::window::{Ticket, Window};
use alloc::vec::Vec;
use weir_smb::crypto::{Crypto, SealKeys, SigningKey, TRANSFORM_BYTES, Transform};
use weir_smb::le::patch;
use weir_smb::wire::netbios::PREFIX_BYTES;
use weir_smb::wire::{
    ChainWriter, HEADER_BYTES, Header, HeaderFlags, Protocol, Status, TreeOrAsync, WireError,
};

/// Most bytes of a frame that the transport's prefix can announce.
const FRAME_BYTES_END: usize = 1 << 24;

/// The message id of a notification, which answers no request.
const UNSOLICITED: u64 = u64::MAX;

/// The largest payloads that a server takes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Of a READ.
    pub read: u32,
    /// Of a WRITE.
    pub write: u32,
    /// Of any other request and its response.
    pub transact: u32,
}

/// The protection of messages.
pub(crate) enum Protection<C: Crypto> {
    /// None.
    Plain,
    /// Signatures.
    Signed,
    /// Encryption.
    Sealed(SealKeys<C>),
}

/// One connection with its session and its tree connect.
pub struct Channel<C: Crypto> {
    pub(crate) crypto: C,
    pub(crate) session_id: u64,
    pub(crate) tree_id: u32,
    pub(crate) signing: SigningKey<C>,
    pub(crate) protection: Protection<C>,
    pub(crate) window: Window,
    pub(crate) sizes: Sizes,
}

impl<C: Crypto> Channel<C> {
    /// The largest payloads that the server takes.
    #[must_use]
    pub const fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// May data follow a frame from elsewhere ([`Data::behind`](crate::Data))? Signatures and seals
    /// need the whole frame in one place.
    #[must_use]
    pub const fn takes_data_behind(&self) -> bool {
        matches!(self.protection, Protection::Plain)
    }

    /// Must responses be given whole to [`Channel::take`]?
    #[must_use]
    pub const fn needs_whole_frames(&self) -> bool {
        !matches!(self.protection, Protection::Plain)
    }

    /// Appends a frame of `requests`, each of which continues the one before it, with the
    /// transport's prefix. Their answers carry `token`. `false`: there are not enough credits; it
    /// can be tried again after each frame that is taken.
    ///
    /// # Errors
    /// [`ClientError`]; the connection can't be used any more.
    #[inline]
    pub fn queue(
        &mut self,
        out: &mut Vec<u8>,
        token: u32,
        requests: &[Request<'_>],
    ) -> Result<bool, ClientError> {
        let charges = requests.iter().map(|request| u64::from(request.charge()));
        let charge = charges.fold(0, u64::saturating_add);
        if !self.window.admits(requests.len(), charge) {
            return Ok(false);
        }
        let prefix = out.len();
        let sealed = matches!(self.protection, Protection::Sealed(_));
        let room = if sealed { TRANSFORM_BYTES } else { 0 };
        let frame = prefix.saturating_add(PREFIX_BYTES);
        let start = frame.saturating_add(room);
        out.resize(start, 0);
        let mut chain = ChainWriter::new(out);
        let mut last = None;
        let mut behind = 0;
        for (element, request) in requests.iter().enumerate() {
            if behind > 0 {
                return Err(ClientError::DataBehind);
            }
            let header = self.header(token, element, request);
            let at = chain.begin(out, &header);
            // Signatures cover the padding up to the next message, which is there now.
            if let Some(before) = last {
                self.sign(out.get_mut(before..at))?;
            }
            request.encode(out);
            (last, behind) = (Some(at), request.behind());
        }
        if behind > 0 && !self.takes_data_behind() {
            return Err(ClientError::DataBehind);
        }
        if let Some(last) = last {
            self.sign(out.get_mut(last..))?;
        }
        if let Protection::Sealed(keys) = &self.protection {
            keys.seal(self.session_id, out.get_mut(frame..).unwrap_or_default())?;
        }
        let bytes = out.len().saturating_sub(frame).saturating_add(behind as usize);
        finish(out, prefix, bytes)?;
        Ok(true)
    }

    fn header(&mut self, token: u32, element: usize, request: &Request<'_>) -> Header {
        let (charge, command) = (request.charge(), request.command());
        let credits = self.window.to_request(charge);
        let related = if element > 0 { HeaderFlags::RELATED } else { HeaderFlags::empty() };
        Header {
            credit_charge: charge,
            status: Status::SUCCESS,
            command: Ok(command),
            credits,
            flags: related,
            next_command: 0,
            message_id: self.window.claim(Ticket { token, element, command }, charge),
            tree: TreeOrAsync::Tree(self.tree_id),
            session_id: self.session_id,
            signature: [0; 16],
        }
    }

    fn sign(&self, message: Option<&mut [u8]>) -> Result<(), ClientError> {
        if matches!(self.protection, Protection::Signed) {
            self.signing.sign(message.unwrap_or_default())?;
        }
        Ok(())
    }

    /// Takes a frame without its prefix, which is `frame_bytes` long and of which `frame` is the
    /// front, or all of it where [`Channel::needs_whole_frames`]. `each` gets its answers in order;
    /// interim responses are no answers.
    ///
    /// # Errors
    /// [`ClientError`] if the frame is none that this connection may bring, and what `each` gives.
    #[inline]
    pub fn take<E: From<ClientError>>(
        &mut self,
        frame: &mut [u8],
        frame_bytes: usize,
        mut each: impl FnMut(Answer<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let sealed = match Protocol::of(frame).map_err(ClientError::from)? {
            Protocol::Smb2 => false,
            Protocol::Sealed => true,
            Protocol::Smb1 | Protocol::Compressed => return Err(ClientError::Foreign.into()),
        };
        let (mut messages, mut bytes) = match (&self.protection, sealed) {
            (Protection::Sealed(keys), true) => {
                let session_id = Transform::parse(frame).map_err(ClientError::from)?.session_id;
                if session_id != self.session_id {
                    return Err(ClientError::Foreign.into());
                }
                let opened = keys.open(frame).map_err(ClientError::from)?;
                let bytes = opened.len();
                (opened, bytes)
            }
            (Protection::Plain | Protection::Signed, false) => (frame, frame_bytes),
            _ => return Err(ClientError::NotSealed.into()),
        };
        loop {
            let header = Header::decode(messages).map_err(ClientError::from)?;
            let len = element(&header, messages.len(), bytes)?;
            let (message, rest) = match len {
                None => (messages, None),
                Some(len) => {
                    let (message, rest) = messages.split_at_mut(len);
                    (message, Some(rest))
                }
            };
            if let Some(answer) = self.accept(&header, message, len.unwrap_or(bytes))? {
                each(answer)?;
            }
            let (Some(rest), Some(len)) = (rest, len) else { return Ok(()) };
            (messages, bytes) = (rest, bytes.saturating_sub(len));
        }
    }

    /// Checks one message and finds the request that it answers.
    #[inline]
    fn accept<'m>(
        &mut self,
        header: &Header,
        message: &'m mut [u8],
        bytes: usize,
    ) -> Result<Option<Answer<'m>>, ClientError> {
        if !header.flags.contains(HeaderFlags::RESPONSE) {
            return Err(ClientError::Foreign);
        }
        if header.message_id == UNSOLICITED {
            return Ok(None);
        }
        if header.session_id != self.session_id {
            return Err(ClientError::Foreign);
        }
        let is_interim =
            header.status == Status::PENDING && header.flags.contains(HeaderFlags::ASYNC);
        if matches!(self.protection, Protection::Signed) && !is_interim {
            if !header.flags.contains(HeaderFlags::SIGNED) {
                return Err(ClientError::NotSigned);
            }
            self.signing.verify(&self.crypto, message)?;
        }
        let id = (header.message_id, header.command.ok());
        let ticket = self.window.answered(id, header.credits, !is_interim)?;
        if is_interim {
            return Ok(None);
        }
        let tree = match header.tree {
            TreeOrAsync::Tree(id) => id,
            TreeOrAsync::Async(_) => self.tree_id,
        };
        let Ticket { token, element, .. } = ticket;
        Ok(Some(Answer { token, element, status: header.status, tree, message, bytes }))
    }
}

/// The length of the message with this header, if another follows it; `there` bytes of `bytes` are
/// at hand.
#[inline]
fn element(header: &Header, there: usize, bytes: usize) -> Result<Option<usize>, ClientError> {
    let len = header.next_command as usize;
    match len {
        0 => Ok(None),
        // A frame that is not whole is one message.
        _ if there < bytes => Err(ClientError::TooLong),
        _ if len < HEADER_BYTES || !len.is_multiple_of(8) || len >= there => {
            Err(WireError::OutOfPlace { what: "NextCommand", offset: len, len: HEADER_BYTES }
                .into())
        }
        _ => Ok(Some(len)),
    }
}

/// Fills in the prefix at `prefix` of a frame of `bytes` bytes.
pub(crate) fn finish(out: &mut [u8], prefix: usize, bytes: usize) -> Result<(), ClientError> {
    let len = u32::try_from(bytes).ok().filter(|_| bytes < FRAME_BYTES_END);
    let len = len.ok_or(ClientError::TooLong)?;
    patch(out, prefix, &len.to_be_bytes());
    Ok(())
}
