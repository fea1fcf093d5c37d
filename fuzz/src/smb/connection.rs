//! The frames of a connection, taken apart and answered as a server does it before any operation:
//! seals, chains, message ids, signatures, NEGOTIATE.

use super::crypto::Fixed;
use weir_smb::conn::{CREDITS_MAX, Credits, Greeting, Negotiated, upgrade};
use weir_smb::crypto::{
    Cipher, Derivation, Preauth, Role, SealKeys, SigningAlgorithm, SigningKey, Transform,
};
use weir_smb::frame::{self, Response};
use weir_smb::limits::COMPOUND_ELEMENTS_MAX;
use weir_smb::route::Route;
use weir_smb::wire::netbios::{PREFIX_BYTES, Step, next};
use weir_smb::wire::{
    Chain, ChainWriter, Command, ErrorResponse, HEADER_BYTES, Header, HeaderFlags,
    NegotiateResponse, Protocol, Smb1Negotiate, Status,
};
use weir_smb::{auth, ops};

/// The session of every key.
pub const SESSION: u64 = 1;

/// The keys of one side.
pub struct Side {
    /// The keys that seal.
    pub seal: SealKeys<Fixed>,
    /// The key that signs.
    pub sign: SigningKey<Fixed>,
}

impl Side {
    /// The keys of this side. `choice` chooses the algorithms.
    #[must_use]
    pub fn new(role: Role, choice: u8) -> Self {
        let preauth = Preauth::new();
        let keys = Derivation::new(&Fixed, &[7; 16], &preauth);
        let cipher = Cipher::from_wire(u16::from(choice & 3) + 1).expect("there are four");
        let signing = SigningAlgorithm::from_wire(u16::from(choice >> 2) % 3);
        let seal = keys.sealing(cipher, role).expect("there are random bytes");
        Self { seal, sign: keys.signing(signing.expect("there are three"), role) }
    }
}

/// A connection, with a client that checks what it is answered.
pub struct Connection {
    server: Side,
    client: Side,
    /// The place of the bit that a forger changes.
    forged: usize,
    greeting: Greeting,
    credits: Credits,
    is_upgraded: bool,
    is_negotiated: bool,
}

impl Connection {
    /// A new connection. `choice` chooses the algorithms.
    #[must_use]
    pub fn new(choice: u8, forged: u8) -> Self {
        Self {
            server: Side::new(Role::Server, choice),
            client: Side::new(Role::Client, choice),
            forged: forged.into(),
            greeting: Greeting {
                guid: [1; 16],
                signing_required: true,
                io_bytes_max: 1 << 20,
                token: auth::hint(),
            },
            credits: Credits::default(),
            is_upgraded: false,
            is_negotiated: false,
        }
    }

    /// Takes a frame. Nothing if the connection ends by it.
    pub fn frame(&mut self, frame: &[u8]) -> Option<()> {
        match Protocol::of(frame).ok()? {
            Protocol::Smb2 => self.messages(frame, false),
            Protocol::Sealed => {
                let message = self.opened(frame)?;
                self.messages(&message, true)
            }
            Protocol::Smb1 => self.smb1(frame),
            Protocol::Compressed => None,
        }
    }

    fn smb1(&mut self, frame: &[u8]) -> Option<()> {
        let offer = Smb1Negotiate::decode(frame).ok()?;
        if !offer.offers_smb2_any || std::mem::replace(&mut self.is_upgraded, true) {
            return None;
        }
        let mut message = super::header(Command::Negotiate).to_bytes().to_vec();
        upgrade(&self.greeting, 1, &mut message);
        assert!(NegotiateResponse::decode(&message).is_ok());
        Some(())
    }

    /// The messages in a sealed frame.
    fn opened(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let parsed = Transform::parse(frame);
        let mut bytes = frame.to_vec();
        let message = self.server.seal.open(&mut bytes).ok()?.to_vec();
        assert!(parsed.is_ok());
        assert!(self.server.seal.open(&mut self.forged(frame)).is_err(), "a forged seal");
        Some(message)
    }

    /// The same bytes but for one bit.
    fn forged(&self, bytes: &[u8]) -> Vec<u8> {
        let mut forged = bytes.to_vec();
        forged[self.forged % bytes.len()] ^= 1 << (self.forged % 8);
        forged
    }

    fn messages(&mut self, frame: &[u8], is_sealed: bool) -> Option<()> {
        let chain = Chain::decode(frame).ok()?;
        check_chain(&chain, frame);
        let mut requests = Vec::new();
        for element in chain.iter() {
            let mut header = element.header;
            if header.flags.contains(HeaderFlags::RESPONSE) {
                return None;
            }
            if header.command == Ok(Command::Cancel) {
                continue;
            }
            let message = &frame[element.at];
            if ops::ends_connection(&header, message) {
                return None;
            }
            self.credits.take(header.message_id, header.credit_charge).ok()?;
            header.credits = self.credits.grant(header.credits, CREDITS_MAX);
            assert!((1..=CREDITS_MAX).contains(&self.credits.unused()));
            if header.flags.contains(HeaderFlags::SIGNED) && !is_sealed {
                self.verify(message);
            }
            if let Ok(command) = header.command {
                let _ = Route::of(command, &header, message);
            }
            requests.push(header);
        }
        match &requests[..] {
            [] => return Some(()),
            [one] if one.command == Ok(Command::Negotiate) => self.negotiate(frame)?,
            _ => {}
        }
        self.answer(&requests, is_sealed);
        Some(())
    }

    fn negotiate(&mut self, message: &[u8]) -> Option<()> {
        if self.is_negotiated {
            return None;
        }
        let mut response = super::header(Command::Negotiate).to_bytes().to_vec();
        if Negotiated::of(&Fixed, &self.greeting, message, 1, &mut response).is_ok() {
            assert!(NegotiateResponse::decode(&response).is_ok());
            self.is_negotiated = true;
        }
        Some(())
    }

    /// Verifies a signed message. One that is right is not any more when a bit of it changes.
    fn verify(&self, message: &[u8]) {
        let key = &self.server.sign;
        if key.verify(&Fixed, message).is_ok() {
            assert!(key.verify(&Fixed, &self.forged(message)).is_err(), "a forged signature");
        }
    }

    /// Answers requests, each with a failure. The client takes the frame apart again.
    fn answer(&self, requests: &[Header], is_sealed: bool) {
        let answers = requests.iter().map(|header| {
            let mut bytes = frame::begin(Vec::new(), is_sealed);
            ErrorResponse::Plain.encode(&mut bytes);
            let header = frame::answer(header, Status::ACCESS_DENIED, header.credits);
            Response { header, bytes, key: (!is_sealed).then_some(&self.server.sign) }
        });
        let seal = is_sealed.then_some((&self.server.seal, SESSION));
        let mut frame = frame::finish(answers.collect(), seal).expect("it can be signed or sealed");
        assert_eq!(next(&frame), Ok(Step::Frame { at: PREFIX_BYTES..frame.len() }));
        let frame = &mut frame[PREFIX_BYTES..];
        let chain = if is_sealed {
            self.client.seal.open(frame).expect("our seals are right")
        } else {
            frame
        };
        let elements: Vec<_> = Chain::decode(chain).expect("our chains are right").iter().collect();
        assert_eq!(elements.len(), requests.len());
        for (element, request) in elements.into_iter().zip(requests) {
            let Header { message_id, command, credits, flags, .. } = element.header;
            let expected = (request.message_id, request.command, request.credits);
            assert_eq!((message_id, command, credits), expected);
            assert!(flags.contains(HeaderFlags::RESPONSE));
            let message = &mut chain[element.at];
            assert_eq!(ErrorResponse::decode(message), Ok(ErrorResponse::Plain));
            if !is_sealed {
                let verified = self.client.sign.verify(&Fixed, message);
                verified.expect("our signatures are right");
            }
        }
    }
}

/// The elements lie one behind the other, and a chain made of them has the same.
fn check_chain(chain: &Chain<'_>, frame: &[u8]) {
    let elements: Vec<_> = chain.iter().collect();
    assert!((1..=COMPOUND_ELEMENTS_MAX).contains(&elements.len()));
    assert_eq!(elements.len(), chain.elements());
    let mut end = 0;
    let mut again = Vec::new();
    let mut writer = ChainWriter::new(&again);
    for element in &elements {
        assert_eq!(element.at.start, end);
        end = element.at.end;
        writer.begin(&mut again, &element.header);
        again.extend_from_slice(&frame[element.at.clone()][HEADER_BYTES..]);
    }
    assert_eq!(end, frame.len());
    writer.finish(&mut again);
    let chain = Chain::decode(&again).expect("our chains are right");
    assert!(chain.iter().map(|one| one.at.start).eq(elements.iter().map(|one| one.at.start)));
    for (one, other) in chain.iter().zip(&elements) {
        assert_eq!(Header { next_command: other.header.next_command, ..one.header }, other.header);
        let body = &frame[other.at.clone()][HEADER_BYTES..];
        assert!(again[one.at][HEADER_BYTES..].starts_with(body));
    }
}
