//! Logins, and a judge of them that shares no rule with the server's: nobody gets in without the
//! right proof.
//!
//! A fuzzer cannot compute a proof. So a step of a script can ask for one: the right proof is put
//! in the place that the message has for it, and the code behind the proof sees messages that are
//! nearly right.

use super::crypto::Fixed;
use super::der;
use std::ops::Range;
use std::sync::Arc;
use weir_smb::auth::ntlm::{Flags, ServerNames, Signatures};
use weir_smb::auth::{Acceptor, Account, Initiator, Login, Next, NtHash, Reason, nt_hash};
use weir_smb::crypto::{Crypto as _, Role};
use weir_smb::limits::{MECHANISM_LIST_BYTES_MAX, NTLM_NEGOTIATE_BYTES_MAX};

/// The user with a password.
pub const USER: &str = "ada";

/// The user's password.
pub const PASSWORD: &str = "correct horse";

/// The time of every login, as a FILETIME.
const NOW: u64 = 0x01d0_aecb_adf5_a1a1;

/// The right proof is put into the token.
pub const PROVE: u8 = 1;
/// The right message integrity code is put into the token, after the proof.
pub const SIGN: u8 = 2;
/// The right code over the list of mechanisms is put into the token, after the others.
pub const VOUCH: u8 = 4;
/// The token is for a client that has just begun.
pub const CLIENT: u8 = 8;

const EXCHANGES_KEY: u32 = 1 << 30;
const SIGNS_OR_SEALS: u32 = 3 << 4;
const MIC: Range<usize> = 72..88;

/// A login under way, and what was said so far.
pub struct Talk {
    is_raw: bool,
    acceptor: Acceptor,
    list: Option<List>,
    negotiate: Vec<u8>,
    challenge: Vec<u8>,
    is_over: bool,
}

/// A list of mechanisms as the client sent it.
struct List {
    encoding: Vec<u8>,
    must_be_vouched_for: bool,
}

/// The end of a login, as the judge sees it.
struct Proven {
    session_key: [u8; 16],
    flags: Flags,
}

impl Talk {
    /// A login in SPNEGO, or with `is_raw` without it.
    #[must_use]
    pub fn new(is_raw: bool) -> Self {
        let names = ServerNames::new("WEIR", "weir.example").expect("short names");
        Self {
            is_raw,
            acceptor: Acceptor::new(Arc::new(names)),
            list: None,
            negotiate: Vec::new(),
            challenge: Vec::new(),
            is_over: false,
        }
    }

    /// Takes the next step of a script. Gives the answer, if the login goes on or has ended well.
    pub fn step(&mut self, selector: u8, token: &[u8]) -> Option<Vec<u8>> {
        if selector & CLIENT != 0 {
            client(self.is_raw, token);
            return None;
        }
        // The server tells the framing by the first byte.
        if self.is_raw && token.first() == Some(&0x60) {
            return None;
        }
        let mut token = token.to_vec();
        self.repair(selector, &mut token);
        match self.acceptor.step(&Fixed, &token, NOW, lookup) {
            Next::Continue(answer) => {
                assert!(!self.is_over);
                self.goes_on(&token, &answer);
                Some(answer)
            }
            Next::Done(login) => {
                assert!(!std::mem::replace(&mut self.is_over, true), "let in twice");
                self.check(&token, &login);
                Some(login.token)
            }
            Next::Refused(refused) => {
                let was_over = std::mem::replace(&mut self.is_over, true);
                assert!(!was_over || refused.reason == Reason::OutOfOrder, "{refused:?}");
                None
            }
        }
    }

    /// The place of the message of NTLM in a token that is not the first of SPNEGO.
    fn message_in(&self, token: &[u8]) -> Option<Range<usize>> {
        if self.list.is_none() { Some(0..token.len()) } else { der::resp(token)?.token }
    }

    fn repair(&self, selector: u8, token: &mut [u8]) {
        let Some(at) = self.message_in(token) else { return };
        let message = &mut token[at.clone()];
        if selector & PROVE != 0 {
            self.prove(message);
        }
        if selector & SIGN != 0
            && let Some((session_key, _)) = self.session_key(message)
            && message.len() >= MIC.end
        {
            let mic = self.mic(message, &session_key);
            message[MIC].copy_from_slice(&mic);
        }
        if selector & VOUCH != 0
            && let Some((session_key, flags)) = self.session_key(&token[at])
            && let Some(list) = &self.list
            && let Some(place) = der::resp(token).and_then(|resp| resp.mic)
            && place.len() == 16
        {
            let signatures = Signatures::new(&Fixed, &session_key, flags);
            token[place].copy_from_slice(&signatures.first(Role::Client, &list.encoding));
        }
    }

    fn prove(&self, message: &mut [u8]) -> Option<()> {
        let place = field(message, 20).filter(|place| place.len() >= 16)?;
        let proof = self.proof(message)?;
        message[place.start..place.start + 16].copy_from_slice(&proof);
        Some(())
    }

    fn goes_on(&mut self, token: &[u8], answer: &[u8]) {
        let negotiate = match &self.list {
            _ if self.is_raw => Some(0..token.len()),
            None if token.first() != Some(&0x60) => {
                self.is_raw = true;
                Some(0..token.len())
            }
            None => {
                let init = der::init(token).expect("the server could read the token");
                let encoding = token[init.list].to_vec();
                assert!(encoding.len() <= MECHANISM_LIST_BYTES_MAX);
                self.list = Some(List { encoding, must_be_vouched_for: !init.is_ntlmssp_first });
                init.token
            }
            Some(_) => der::resp(token).and_then(|resp| resp.token),
        };
        let challenge = self.message_in(answer).map(|at| answer[at].to_vec());
        if let Some(challenge) = challenge {
            self.challenge = challenge;
            self.negotiate = token[negotiate.expect("a message was answered")].to_vec();
            assert!(self.negotiate.len() <= NTLM_NEGOTIATE_BYTES_MAX);
        }
    }

    /// Judges a login that the server let in.
    fn check(&self, token: &[u8], login: &Login) {
        assert!(login.account.user.eq_ignore_ascii_case(USER));
        let message = &token[self.message_in(token).expect("the server found a message")];
        let Proven { session_key, flags } = self.judge(message).expect("only proofs let in");
        assert_eq!(login.session_key, session_key);
        let Some(list) = &self.list else {
            assert!(login.token.is_empty());
            return;
        };
        let signatures = Signatures::new(&Fixed, &session_key, flags);
        let vouched = der::resp(token).and_then(|resp| resp.mic).map(|at| &token[at]);
        let answered = der::resp(&login.token).expect("our tokens can be read").mic;
        let answered = answered.map(|at| &login.token[at]);
        match vouched {
            None => assert!(!list.must_be_vouched_for && answered.is_none()),
            Some(mic) => {
                assert_eq!(mic, signatures.first(Role::Client, &list.encoding));
                let ours = signatures.first(Role::Server, &list.encoding);
                assert_eq!(answered, Some(&ours[..]));
            }
        }
    }

    fn judge(&self, message: &[u8]) -> Option<Proven> {
        let response = field(message, 20).filter(|place| place.len() > 44)?;
        let is_right = message[response.start..response.start + 16] == self.proof(message)?;
        let (session_key, flags) = self.session_key(message)?;
        let is_whole = !announces_mic(&message[response.start + 44..response.end])
            || message.get(MIC)? == self.mic(message, &session_key);
        (is_right && is_whole).then_some(Proven { session_key, flags })
    }

    /// The proof that a message must have (MS-NLMP §3.3.2).
    fn proof(&self, message: &[u8]) -> Option<[u8; 16]> {
        let key = response_key(message)?;
        let response = field(message, 20).filter(|place| place.len() >= 16)?;
        let rest = &message[response.start + 16..response.end];
        Some(Fixed.hmac_md5(&key, &[self.challenge.get(24..32)?, rest]))
    }

    /// The session key of a message with the right proof, and the flags of both sides.
    fn session_key(&self, message: &[u8]) -> Option<([u8; 16], Flags)> {
        let base = Fixed.hmac_md5(&response_key(message)?, &[&self.proof(message)?]);
        let flags = u32_at(message, 60)? & u32_at(&self.challenge, 20)?;
        let mut key = base;
        if flags & EXCHANGES_KEY != 0 && flags & SIGNS_OR_SEALS != 0 {
            key = *message[field(message, 52)?].first_chunk()?;
            Fixed.rc4(&base, &mut key);
        }
        Some((key, Flags::from_bits_retain(flags)))
    }

    /// The message integrity code of a message (MS-NLMP §3.1.5.1.2).
    fn mic(&self, message: &[u8], session_key: &[u8; 16]) -> [u8; 16] {
        let mut message = message.to_vec();
        message[MIC].fill(0);
        Fixed.hmac_md5(session_key, &[&self.negotiate, &self.challenge, &message])
    }
}

/// A directory of one user with a password.
fn lookup(user: &str, _domain: &str) -> Option<NtHash> {
    user.eq_ignore_ascii_case(USER).then(|| nt_hash(&Fixed, PASSWORD))
}

/// The account of the user, as a client names it.
#[must_use]
pub fn account() -> Account {
    Account { user: USER.into(), domain: "WEIR".into(), workstation: "DESK".into() }
}

/// A client gets a token of a server that may be hostile.
fn client(is_raw: bool, token: &[u8]) {
    let initiator = Initiator::new(account(), nt_hash(&Fixed, PASSWORD), is_raw);
    if let Ok(proven) = initiator.prove(&Fixed, token) {
        let _ = proven.finish(&Fixed, token);
    }
}

/// The key of the user's proofs for the domain in a message.
fn response_key(message: &[u8]) -> Option<[u8; 16]> {
    let domain = &message[field(message, 28)?];
    let names = [&super::utf16(&USER.to_uppercase()), domain].concat();
    Some(Fixed.hmac_md5(&nt_hash(&Fixed, PASSWORD).0, &[&names]))
}

/// The place to which the field at `at` of a message points.
fn field(message: &[u8], at: usize) -> Option<Range<usize>> {
    let length = usize::from(u16::from_le_bytes(*message.get(at..)?.first_chunk()?));
    let start = usize::try_from(u32_at(message, at + 4)?).ok()?;
    let place = if length == 0 { 0..0 } else { start..start + length };
    (place.end <= message.len()).then_some(place)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Do the pairs of a response announce a message integrity code?
fn announces_mic(mut pairs: &[u8]) -> bool {
    while let Some(([a, b, c, d], rest)) = pairs.split_first_chunk() {
        let (id, length) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
        let Some((value, next)) = rest.split_at_checked(length.into()) else { return false };
        match id {
            0 => return false,
            6 if u32_at(value, 0).is_some_and(|flags| flags & 2 != 0) => return true,
            _ => pairs = next,
        }
    }
    false
}
