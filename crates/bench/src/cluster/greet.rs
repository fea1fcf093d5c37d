//! The first words of a connection, on both sides: which version is spoken, and, where a token is
//! asked for, that both know it. Nothing is done for a coordinator before that.

use super::auth::{Nonce, Role, Token};
use super::link::Halves;
use super::wire::{Kind, Order, PROTOCOL, Report, Welcome, WireError, receive, send};
use crate::results::Machine;
use weir_core::text::brief;
use weir_load::error::BenchError;

const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Why no connection came about.
#[derive(Debug, thiserror::Error)]
pub enum GreetError {
    /// Nothing that was said could be understood, or nothing was said.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The peer refused, or was refused.
    #[error("{0}")]
    Refused(String),
    /// This machine could not.
    #[error(transparent)]
    Local(#[from] BenchError),
}

/// Greets a worker; with a `token` that it must know too.
///
/// # Errors
/// [`GreetError`] says what to do.
pub fn greet(halves: &mut Halves, token: Option<&Token>) -> Result<Welcome, GreetError> {
    let own = Nonce::fresh()?;
    let nonce = token.map(|_| own);
    let hello = Order::Hello { protocol: PROTOCOL, program: PROGRAM.to_owned(), nonce };
    send(&mut halves.write, &hello)?;
    let mut theirs = None;
    let mut answer = receive::<Report>(&mut halves.read, &[Kind::Greeting])?;
    if let (Report::Challenge { nonce }, Some(token)) = (&answer, token) {
        let proof = token.prove(Role::Coordinator, own, *nonce);
        theirs = Some(*nonce);
        send(&mut halves.write, &Order::Proof { proof })?;
        answer = receive(&mut halves.read, &[Kind::Greeting])?;
    }
    let welcome = match answer {
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
    if let Some(token) = token {
        let proof = welcome.proof.zip(theirs);
        if !proof.is_some_and(|(tag, theirs)| token.accepts(tag, Role::Worker, own, theirs)) {
            return Err(GreetError::Refused(
                "it did not prove that it knows the token: is it one of ours?".to_owned(),
            ));
        }
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

/// The identity that a worker claims.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The worker's name.
    pub name: String,
    /// The worker's machine.
    pub machine: Machine,
}

/// Answers a coordinator's greeting; one that does not know the `token` is refused. `admit` is
/// asked last and may still say no, and why.
///
/// # Errors
/// [`GreetError`] if it came to nothing; the coordinator was told.
pub fn welcome<T>(
    halves: &mut Halves,
    identity: &Identity,
    token: Option<&Token>,
    admit: impl FnOnce() -> Result<T, String>,
) -> Result<T, GreetError> {
    let outcome = examine(halves, token).and_then(|proof| {
        let admitted = admit().map_err(GreetError::Refused)?;
        Ok((admitted, proof))
    });
    let (admitted, proof) = match outcome {
        Ok(outcome) => outcome,
        Err(GreetError::Refused(why)) => {
            let refusal = Report::Refused { protocol: PROTOCOL, why: why.clone() };
            // A peer that has gone meanwhile need not be told.
            drop(send(&mut halves.write, &refusal));
            return Err(GreetError::Refused(why));
        }
        Err(other) => return Err(other),
    };
    let welcome = Welcome {
        protocol: PROTOCOL,
        program: PROGRAM.to_owned(),
        name: identity.name.clone(),
        machine: identity.machine.clone(),
        proof,
    };
    send(&mut halves.write, &Report::Welcome(Box::new(welcome)))?;
    Ok(admitted)
}

/// Listens to the greeting, and has the token proved; gives the own proof.
fn examine(
    halves: &mut Halves,
    token: Option<&Token>,
) -> Result<Option<super::auth::Tag>, GreetError> {
    let Order::Hello { protocol, program, nonce } = receive(&mut halves.read, &[Kind::Greeting])?
    else {
        return Err(GreetError::Refused("invalid greeting".to_owned()));
    };
    if protocol != PROTOCOL {
        return Err(GreetError::Refused(format!(
            "this worker (weir {PROGRAM}) speaks version {PROTOCOL} of the protocol, the \
             coordinator (weir {}) version {protocol}",
            brief(&program)
        )));
    }
    let Some(token) = token else {
        return Ok(None);
    };
    let theirs = nonce.ok_or_else(|| {
        GreetError::Refused("this worker requires a secret: use --secret-file".to_owned())
    })?;
    let own = Nonce::fresh()?;
    send(&mut halves.write, &Report::Challenge { nonce: own })?;
    let Order::Proof { proof } = receive(&mut halves.read, &[Kind::Greeting])? else {
        return Err(GreetError::Refused("invalid proof of the secret".to_owned()));
    };
    if !token.accepts(proof, Role::Coordinator, theirs, own) {
        return Err(GreetError::Refused(
            "the secret differs from that of this worker: --secret-file must contain the same secret on both machines"
                .to_owned(),
        ));
    }
    Ok(Some(token.prove(Role::Worker, theirs, own)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn halves(stream: UnixStream) -> Halves {
        let write = stream.try_clone().unwrap();
        Halves { read: Box::new(stream), write: Box::new(write), close: Box::new(|| {}) }
    }

    fn token(text: &str) -> Token {
        Token::new(text.as_bytes()).unwrap()
    }

    /// Both sides' outcomes, in words.
    fn meet(
        coordinator: Option<&Token>,
        worker: Option<&Token>,
        admit: Result<(), String>,
    ) -> (String, String) {
        let (a, b) = UnixStream::pair().unwrap();
        let identity = Identity { name: "w".to_owned(), machine: Machine::default() };
        std::thread::scope(|scope| {
            let theirs = scope.spawn(move || {
                let outcome = welcome(&mut halves(b), &identity, worker, || admit);
                outcome.map_or_else(|error| error.to_string(), |()| "welcomed".to_owned())
            });
            let outcome = greet(&mut halves(a), coordinator);
            let ours = outcome.map_or_else(|error| error.to_string(), |welcome| welcome.name);
            (ours, theirs.join().unwrap())
        })
    }

    #[test]
    fn who_has_the_token_is_welcomed_and_nobody_else() {
        let (right, wrong) = (token("0123456789abcdef"), token("fedcba9876543210"));
        let good = ("w".to_owned(), "welcomed".to_owned());
        assert_eq!(meet(Some(&right), Some(&right), Ok(())), good);
        assert_eq!(meet(None, None, Ok(())), good);
        let (ours, theirs) = meet(Some(&wrong), Some(&right), Ok(()));
        assert!(ours.contains("must contain the same") && ours == theirs, "{ours}");
        let (ours, theirs) = meet(None, Some(&right), Ok(()));
        assert!(ours.contains("use --secret-file") && ours == theirs, "{ours}");
        let (ours, _) = meet(Some(&right), None, Ok(()));
        assert!(ours.contains("did not prove"), "{ours}");
    }

    #[test]
    fn a_busy_worker_says_so_after_the_proof() {
        let right = token("0123456789abcdef");
        let (ours, theirs) = meet(Some(&right), Some(&right), Err("busy".to_owned()));
        assert_eq!((ours.as_str(), theirs.as_str()), ("busy", "busy"));
    }

    #[test]
    fn a_proof_of_the_coordinator_does_not_serve_as_the_workers() {
        // A false worker sends back what it was sent.
        let (a, b) = UnixStream::pair().unwrap();
        let secret = token("0123456789abcdef");
        let thread = std::thread::spawn(move || {
            let mut halves = halves(b);
            let Order::Hello { nonce, .. } = receive(&mut halves.read, &[Kind::Greeting]).unwrap()
            else {
                panic!("no greeting");
            };
            let challenge = Report::Challenge { nonce: nonce.unwrap() };
            send(&mut halves.write, &challenge).unwrap();
            let Order::Proof { proof } = receive(&mut halves.read, &[Kind::Greeting]).unwrap()
            else {
                panic!("no proof");
            };
            let welcome = Welcome {
                protocol: PROTOCOL,
                program: String::new(),
                name: String::new(),
                machine: Machine::default(),
                proof: Some(proof),
            };
            send(&mut halves.write, &Report::Welcome(Box::new(welcome))).unwrap();
        });
        let error = greet(&mut halves(a), Some(&secret)).unwrap_err().to_string();
        assert!(error.contains("did not prove"), "{error}");
        thread.join().unwrap();
    }

    #[test]
    fn other_versions_are_told_apart_on_both_sides() {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut ours, mut theirs) = (halves(a), halves(b));
        let hello = Order::Hello { protocol: 9, program: "9.0\x1b[2J".into(), nonce: None };
        send(&mut ours.write, &hello).unwrap();
        let identity = Identity { name: "w".to_owned(), machine: Machine::default() };
        let error = welcome(&mut theirs, &identity, None, || Ok(())).unwrap_err().to_string();
        assert!(error.contains("(weir 9.0\u{fffd}[2J) version 9"), "{error}");
        let answer: Report = receive(&mut ours.read, &[Kind::Greeting]).unwrap();
        assert!(matches!(answer, Report::Refused { protocol: PROTOCOL, why } if why == error));

        let (a, b) = UnixStream::pair().unwrap();
        let mut theirs = halves(b);
        let refusal = Report::Refused { protocol: 7, why: "too old".to_owned() };
        send(&mut theirs.write, &refusal).unwrap();
        let error = greet(&mut halves(a), None).unwrap_err().to_string();
        assert!(error.contains("speaks version 7") && error.contains("same release"), "{error}");
    }
}
