//! From a fresh connection to a share: NEGOTIATE, the login in two steps, TREE_CONNECT
//! (MS-SMB2 §3.2.4.2). Each step is one request and its response.

use crate::channel::{Channel, Protection, finish};
use crate::negotiate::{self, Agreed};
use crate::request::Request;
use crate::window::{Ticket, Window};
use crate::{ClientError, SetupError};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use weir_smb::auth::{Account, Initiator, NtHash, Proven};
use weir_smb::crypto::{Crypto, Derivation, Preauth, Role};
use weir_smb::utf16::to_utf16;
use weir_smb::wire::netbios::PREFIX_BYTES;
use weir_smb::wire::{
    Capabilities, Command, Header, HeaderFlags, Payload, SessionFlags, SessionSetupFlags,
    SessionSetupRequest, SessionSetupResponse, ShareFlags, ShareType, Status, TreeConnectResponse,
    TreeOrAsync,
};

/// The protection of a session's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// None, beyond the login and TREE_CONNECT, which are always signed.
    None,
    /// Signatures.
    #[default]
    Sign,
    /// Encryption.
    Seal,
}

/// The user, the share, and the form of their connection.
#[derive(Clone)]
pub struct Login {
    /// The user's name.
    pub user: String,
    /// The NT hash of the password.
    pub hash: NtHash,
    /// The server's name in the path of the share.
    pub server: String,
    /// The share.
    pub share: String,
    /// The protection of messages.
    pub security: Security,
    /// Credits that the connection asks for.
    pub credits: u16,
}

/// A connection on its way to a share.
pub struct Setup<C: Crypto> {
    crypto: C,
    login: Login,
    window: Window,
    preauth: Preauth,
    session_id: u64,
    stage: Stage<C>,
}

/// The response that is waited for.
enum Stage<C: Crypto> {
    Negotiate,
    Challenge(Initiator, Agreed),
    Proof(Proven, Agreed),
    Tree(Channel<C>),
}

/// The state after a response.
pub enum Progress<C: Crypto> {
    /// It was an interim one, or a request was appended: give the next frame to this.
    More(Box<Setup<C>>),
    /// The share is there.
    Done(Channel<C>),
}

impl<C: Crypto + Clone> Setup<C> {
    /// Begins, with the first request appended to `out`.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn begin(crypto: C, login: Login, out: &mut Vec<u8>) -> Result<Self, SetupError> {
        let window = Window::new(login.credits);
        let (preauth, session_id) = (Preauth::new(), 0);
        let mut setup =
            Self { crypto, login, window, preauth, session_id, stage: Stage::Negotiate };
        let security = setup.login.security;
        let mut body = Vec::new();
        negotiate::offer(&setup.crypto, security, &mut body)?;
        setup.request(Command::Negotiate, &body, out)?;
        Ok(setup)
    }

    /// Appends a request and takes it into the hash of the messages before authentication.
    fn request(
        &mut self,
        command: Command,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ClientError> {
        let prefix = out.len();
        out.extend_from_slice(&[0; PREFIX_BYTES]);
        let credits = self.window.to_request(1);
        let header = Header {
            credit_charge: 1,
            status: Status::SUCCESS,
            command: Ok(command),
            credits,
            flags: HeaderFlags::empty(),
            next_command: 0,
            message_id: self.window.claim(Ticket { token: 0, element: 0, command }, 1),
            tree: TreeOrAsync::Tree(0),
            session_id: self.session_id,
            signature: [0; 16],
        };
        header.encode(out);
        out.extend_from_slice(body);
        let message = out.get(prefix.saturating_add(PREFIX_BYTES)..).unwrap_or_default();
        self.preauth.update(&self.crypto, message);
        let bytes = message.len();
        finish(out, prefix, bytes)
    }

    /// Takes the next frame, without its prefix, and appends the request that follows, if any.
    ///
    /// # Errors
    /// [`SetupError`]; the connection can't be used any more.
    pub fn take(mut self, frame: &mut [u8], out: &mut Vec<u8>) -> Result<Progress<C>, SetupError> {
        let stage = core::mem::replace(&mut self.stage, Stage::Negotiate);
        self.stage = match stage {
            Stage::Tree(mut channel) => {
                if connect(&mut channel, self.login.security, frame)? {
                    return Ok(Progress::Done(channel));
                }
                Stage::Tree(channel)
            }
            stage => {
                let header = Header::decode(frame)?;
                if self.login_goes_on(&header)? {
                    self.next(stage, &header, frame, out)?
                } else {
                    stage
                }
            }
        };
        Ok(Progress::More(Box::new(self)))
    }

    /// Checks the header of a response before the session is there. `false` for an interim one.
    fn login_goes_on(&mut self, header: &Header) -> Result<bool, ClientError> {
        let is_response = header.flags.contains(HeaderFlags::RESPONSE);
        if !is_response || header.next_command != 0 {
            return Err(ClientError::Foreign);
        }
        let is_interim = header.status == Status::PENDING;
        let id = (header.message_id, header.command.ok());
        self.window.answered(id, header.credits, !is_interim)?;
        Ok(!is_interim)
    }

    fn next(
        &mut self,
        stage: Stage<C>,
        header: &Header,
        message: &mut [u8],
        out: &mut Vec<u8>,
    ) -> Result<Stage<C>, SetupError> {
        match stage {
            Stage::Negotiate => self.negotiated(header, message, out),
            Stage::Challenge(initiator, agreed) => {
                self.challenged(header, message, (initiator, agreed), out)
            }
            Stage::Proof(proven, agreed) => self.proved(header, message, (&proven, agreed), out),
            tree @ Stage::Tree(_) => Ok(tree),
        }
    }

    fn negotiated(
        &mut self,
        header: &Header,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Stage<C>, SetupError> {
        expect("the protocol", header.status, Status::SUCCESS)?;
        self.preauth.update(&self.crypto, message);
        let agreed = negotiate::agree(message, self.login.security)?;
        let account = Account { user: self.login.user.clone(), ..Account::default() };
        let initiator = Initiator::new(account, self.login.hash, false);
        self.session_setup(&initiator.first(), out)?;
        Ok(Stage::Challenge(initiator, agreed))
    }

    fn challenged(
        &mut self,
        header: &Header,
        message: &[u8],
        (initiator, agreed): (Initiator, Agreed),
        out: &mut Vec<u8>,
    ) -> Result<Stage<C>, SetupError> {
        expect(LOGIN, header.status, Status::MORE_PROCESSING_REQUIRED)?;
        self.session_id = header.session_id;
        self.preauth.update(&self.crypto, message);
        let response = SessionSetupResponse::decode(message)?;
        let proven = initiator.prove(&self.crypto, response.token)?;
        self.session_setup(proven.token(), out)?;
        Ok(Stage::Proof(proven, agreed))
    }

    fn session_setup(&mut self, token: &[u8], out: &mut Vec<u8>) -> Result<(), SetupError> {
        let mut body = Vec::new();
        let request = SessionSetupRequest {
            flags: SessionSetupFlags::empty(),
            security_mode: negotiate::security_mode(self.login.security),
            capabilities: Capabilities::empty(),
            previous_session_id: 0,
            token: Payload { bytes: token, at: 0 },
        };
        request.encode(&mut body);
        self.request(Command::SessionSetup, &body, out)?;
        Ok(())
    }

    /// The last response of the login is signed with the session's key, which so proves that nobody
    /// changed the messages before it (MS-SMB2 §3.2.5.3).
    fn proved(
        &mut self,
        header: &Header,
        message: &mut [u8],
        (proven, agreed): (&Proven, Agreed),
        out: &mut Vec<u8>,
    ) -> Result<Stage<C>, SetupError> {
        expect(LOGIN, header.status, Status::SUCCESS)?;
        if header.session_id != self.session_id {
            return Err(ClientError::Foreign.into());
        }
        let response = SessionSetupResponse::decode(message)?;
        let flags = response.flags;
        if flags.intersects(SessionFlags::IS_GUEST | SessionFlags::IS_NULL) {
            return Err(SetupError::Guest);
        }
        proven.finish(&self.crypto, response.token)?;
        let session_key = proven.session_key();
        let derivation = Derivation::new(&self.crypto, &session_key, &self.preauth);
        let signing = derivation.signing(agreed.signing, Role::Client);
        if !header.flags.contains(HeaderFlags::SIGNED) {
            return Err(ClientError::NotSigned.into());
        }
        signing.verify(&self.crypto, message)?;
        let protection = match (self.login.security, agreed.cipher) {
            (Security::Seal, Some(cipher)) => {
                Protection::Sealed(derivation.sealing(cipher, Role::Client)?)
            }
            (Security::Seal, None) => return Err(SetupError::NoCipher),
            _ if flags.contains(SessionFlags::ENCRYPT_DATA) => {
                return Err(SetupError::SealingRequired);
            }
            // TREE_CONNECT is signed in any case (MS-SMB2 §3.2.4.1.1).
            _ => Protection::Signed,
        };
        let window = core::mem::replace(&mut self.window, Window::new(0));
        let mut channel = Channel {
            crypto: self.crypto.clone(),
            session_id: self.session_id,
            tree_id: 0,
            signing,
            protection,
            window,
            sizes: agreed.sizes,
        };
        let path = ["\\\\", &self.login.server, "\\", &self.login.share].concat();
        channel.queue(out, 0, &[Request::TreeConnect(&to_utf16(&path))])?;
        Ok(Stage::Tree(channel))
    }
}

/// The step of a login, in words.
const LOGIN: &str = "the login";

fn expect(step: &'static str, status: Status, wanted: Status) -> Result<(), SetupError> {
    if status == wanted { Ok(()) } else { Err(SetupError::Refused { step, status }) }
}

/// Takes the response to TREE_CONNECT; `false` for an interim one.
fn connect<C: Crypto>(
    channel: &mut Channel<C>,
    security: Security,
    frame: &mut [u8],
) -> Result<bool, SetupError> {
    let mut answered = None;
    let frame_bytes = frame.len();
    channel.take(frame, frame_bytes, |answer| {
        expect("the share", answer.status, Status::SUCCESS)?;
        answered = Some((answer.tree, TreeConnectResponse::decode(answer.message())?));
        Ok::<_, SetupError>(())
    })?;
    let Some((tree_id, response)) = answered else { return Ok(false) };
    if response.share_type != ShareType::DISK {
        return Err(SetupError::NoFiles);
    }
    if security != Security::Seal && response.share_flags.contains(ShareFlags::ENCRYPT_DATA) {
        return Err(SetupError::SealingRequired);
    }
    channel.tree_id = tree_id;
    if security == Security::None {
        channel.protection = Protection::Plain;
    }
    Ok(true)
}
