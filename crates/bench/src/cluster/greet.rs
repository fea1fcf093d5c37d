//! The first messages of a connection, on both sides: the version of the protocol, and the identity
//! of the worker. The connection itself (ssh, or a pipe to a child) authenticates both sides.

use super::link::Halves;
use super::wire::{Kind, Order, PROTOCOL, Report, Welcome, WireError, receive, send};
use weir_core::text::brief;
use weir_results::Machine;

const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Why a greeting failed.
#[derive(Debug, thiserror::Error)]
pub enum GreetError {
    /// The connection failed, or the data is not the protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The peer refused, or was refused.
    #[error("{0}")]
    Refused(String),
}

/// Greets a worker.
///
/// # Errors
/// [`GreetError`] says what to do.
pub fn greet(halves: &mut Halves) -> Result<Welcome, GreetError> {
    let hello = Order::Hello { protocol: PROTOCOL, program: PROGRAM.to_owned() };
    send(&mut halves.write, &hello)?;
    let welcome = match receive::<Report>(&mut halves.read, &[Kind::Greeting])? {
        Report::Welcome(welcome) => *welcome,
        Report::Refused { protocol, why } if protocol != PROTOCOL => {
            return Err(GreetError::Refused(versions(protocol, &why)));
        }
        Report::Refused { why, .. } => return Err(GreetError::Refused(why)),
        _ => return Err(GreetError::Refused("it sent an unexpected message".to_owned())),
    };
    if welcome.protocol != PROTOCOL {
        return Err(GreetError::Refused(versions(welcome.protocol, "")));
    }
    Ok(welcome)
}

fn versions(theirs: u32, why: &str) -> String {
    let separator = if why.is_empty() { "" } else { ": " };
    format!(
        "the worker speaks version {theirs} of the protocol and this program version {PROTOCOL}; \
         use the same release on all machines{separator}{why}"
    )
}

/// The name and machine that a worker reports.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The worker's name.
    pub name: String,
    /// The worker's machine.
    pub machine: Machine,
}

/// Answers a coordinator's greeting.
///
/// # Errors
/// [`GreetError`]; a coordinator of another version has received the reason.
pub fn welcome(halves: &mut Halves, identity: &Identity) -> Result<(), GreetError> {
    let Order::Hello { protocol, program } = receive(&mut halves.read, &[Kind::Greeting])? else {
        return Err(GreetError::Refused("invalid greeting".to_owned()));
    };
    if protocol != PROTOCOL {
        let why = format!(
            "this worker (weir {PROGRAM}) speaks version {PROTOCOL} of the protocol, the \
             coordinator (weir {}) version {protocol}",
            brief(&program)
        );
        let refusal = Report::Refused { protocol: PROTOCOL, why: why.clone() };
        // The peer may have closed the connection meanwhile.
        drop(send(&mut halves.write, &refusal));
        return Err(GreetError::Refused(why));
    }
    let welcome = Welcome {
        protocol: PROTOCOL,
        program: PROGRAM.to_owned(),
        name: identity.name.clone(),
        machine: identity.machine.clone(),
    };
    Ok(send(&mut halves.write, &Report::Welcome(Box::new(welcome)))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    fn halves(stream: UnixStream) -> Halves {
        let write = stream.try_clone().unwrap();
        Halves { read: Box::new(stream), write: Box::new(write), close: Box::new(|| {}) }
    }

    fn identity() -> Identity {
        Identity { name: "w".to_owned(), machine: Machine::default() }
    }

    /// The error of a worker that receives `bytes` in place of a greeting.
    fn answer(bytes: &[u8]) -> String {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(bytes).unwrap();
        drop(ours);
        welcome(&mut halves(theirs), &identity()).unwrap_err().to_string()
    }

    #[test]
    fn a_worker_of_the_same_version_gives_its_name() {
        let (a, b) = UnixStream::pair().unwrap();
        let worker = std::thread::spawn(move || welcome(&mut halves(b), &identity()).unwrap());
        assert_eq!(greet(&mut halves(a)).unwrap().name, "w");
        worker.join().unwrap();
    }

    #[test]
    fn other_data_than_a_greeting_is_refused() {
        assert!(answer(b"GET / HTTP/1.1\r\n\r\n").contains("not the protocol"));
        assert!(answer(b"\x04\x00\x00\x00\x10").contains("unexpected message"), "a record");
        assert!(answer(b"\x02\x00\x00\x00\x05").contains("unexpected message"), "an order");
        assert!(answer(b"\x01\x7f\xff\xff\xff").contains("the maximum of 16384"));
        assert!(answer(b"\x01\x00\x00\x00\x02{}").contains("cannot parse"));
        assert!(answer(b"\x01\x00\x00").contains("closed"));
        // Version 1 had another form of greeting.
        let first = br#"{"hello":{"protocol":1,"program":"0.9","nonce":null}}"#;
        let mut hello = vec![1, 0, 0, 0, u8::try_from(first.len()).unwrap()];
        hello.extend_from_slice(first);
        assert!(answer(&hello).contains("(weir 0.9) version 1"), "{}", answer(&hello));
    }

    #[test]
    fn both_sides_name_the_versions_that_differ() {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut ours, mut theirs) = (halves(a), halves(b));
        let hello = Order::Hello { protocol: 9, program: "9.0\x1b[2J".into() };
        send(&mut ours.write, &hello).unwrap();
        let error = welcome(&mut theirs, &identity()).unwrap_err().to_string();
        assert!(error.contains("(weir 9.0\u{fffd}[2J) version 9"), "{error}");
        let answer: Report = receive(&mut ours.read, &[Kind::Greeting]).unwrap();
        assert!(matches!(answer, Report::Refused { protocol: PROTOCOL, why } if why == error));

        let (a, b) = UnixStream::pair().unwrap();
        let mut theirs = halves(b);
        let refusal = Report::Refused { protocol: 7, why: "too old".to_owned() };
        send(&mut theirs.write, &refusal).unwrap();
        let error = greet(&mut halves(a)).unwrap_err().to_string();
        assert!(error.contains("speaks version 7") && error.contains("same release"), "{error}");
    }
}
