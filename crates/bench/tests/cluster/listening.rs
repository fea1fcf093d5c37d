//! Workers that listen, and who comes to them.

use crate::crew::{apply, counted, patience};
use crate::responder::{Responder, nobody};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_bench::cluster::{
    Clock, Connected, Farewell, Happened, Identity, Launch, Patience, Place, Token, Wanted, Worker,
    listen, this_machine,
};
use weir_bench::suite::Workers;
use weir_load::Control;

struct Listener {
    address: SocketAddr,
    events: Receiver<Happened>,
    end: Control,
    thread: JoinHandle<()>,
}

fn token(text: &str) -> Token {
    Token::new(text.as_bytes()).unwrap()
}

impl Listener {
    fn start(patience: Patience) -> Self {
        let worker = Worker {
            identity: Identity { name: "w".to_owned(), machine: this_machine() },
            clock: Clock::new(),
            patience,
        };
        let (sender, events) = channel();
        let sender = Mutex::new(sender);
        let end = Control::new();
        let own = end.clone();
        let thread = std::thread::spawn(move || {
            let tell = move |happened: &Happened| {
                drop(sender.lock().unwrap().send(happened.clone()));
            };
            let any = "127.0.0.1:0".parse().unwrap();
            listen(any, token("the right secret"), worker, &own, tell).unwrap();
        });
        let Happened::Listening(address) = events.recv().unwrap() else {
            panic!("something before it listens");
        };
        Self { address, events, end, thread }
    }

    fn connect(&self, secret: &str) -> Result<Connected, String> {
        let launch = Launch {
            token: Some(token(secret)),
            ssh: Vec::new(),
            program: String::new(),
            patience: patience(),
        };
        let place = Place::Listening(self.address.to_string());
        let wanted = Wanted { name: "far".to_owned(), place };
        let mut all = launch.all(&[wanted]).map_err(|error| error.to_string())?;
        all.pop().ok_or_else(|| "nobody".to_owned())
    }

    fn refused(&self) -> String {
        match self.events.recv().unwrap() {
            Happened::Refused(_, why) => why,
            other => panic!("{other:?}"),
        }
    }

    fn stop(self) {
        self.end.stop();
        self.thread.join().unwrap();
    }
}

#[test]
fn coordinators_with_the_token_are_served_one_after_the_other() {
    let server = Responder::start();
    let listener = Listener::start(patience());
    for _ in 0..2 {
        let connected = listener.connect("the right secret").unwrap();
        assert!(matches!(listener.events.recv().unwrap(), Happened::Began(_)));
        let mut workers = Workers::new(server.target(), vec![connected], patience()).unwrap();
        assert_eq!(workers.machines(), [this_machine()]);
        // While it serves one, it tells others.
        let error = listener.connect("the right secret").err().unwrap();
        assert!(error.contains("worker far: the worker is busy"), "{error}");
        assert!(listener.refused().contains("busy"));
        let applied = apply(&mut workers, &[counted(1, 100)], &Control::new(), |_| {}).unwrap();
        assert_eq!(applied.record.measured().0, 100);
        drop(workers);
        let ended = listener.events.recv().unwrap();
        assert!(matches!(ended, Happened::Ended(_, Farewell::Bye)), "{ended:?}");
    }
    listener.stop();
}

#[test]
fn without_the_token_nothing_is_done() {
    let listener = Listener::start(patience());
    let error = listener.connect("a wrong secret!!").err().unwrap();
    assert!(error.contains("the secret differs from that of this worker"), "{error}");
    assert!(listener.refused().contains("the secret"));
    let launch =
        Launch { token: None, ssh: Vec::new(), program: String::new(), patience: patience() };
    let place = Place::Listening(listener.address.to_string());
    let outcome = launch.all(&[Wanted { name: "far".to_owned(), place }]);
    assert!(outcome.err().unwrap().to_string().contains("requires a secret"));
    listener.refused();
    listener.stop();
}

#[test]
fn strangers_are_turned_away_whatever_they_say() {
    let brief = Patience { greeting: Duration::from_millis(100), ..patience() };
    let (listener, hasty) = (Listener::start(patience()), Listener::start(brief));
    let heard = |listener: &Listener, bytes: &[u8]| {
        let mut stream = TcpStream::connect(listener.address).unwrap();
        stream.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        // Closed with bytes unread is a reset.
        drop(stream.read_to_end(&mut rest));
        listener.refused()
    };
    let says = |bytes: &[u8]| heard(&listener, bytes);
    assert!(says(b"GET / HTTP/1.1\r\n\r\n").contains("not the protocol"));
    assert!(says(b"\x04\x00\x00\x00\x10").contains("unexpected message"), "a record");
    assert!(says(b"\x02\x00\x00\x00\x05").contains("unexpected message"), "an order");
    assert!(says(b"\x01\x7f\xff\xff\xff").contains("the maximum of 16384"));
    assert!(says(b"\x01\x00\x00\x00\x02{}").contains("cannot parse"));
    assert!(heard(&hasty, b"\x01\x00\x00").contains("too long"), "and then nothing");
    let version = br#"{"hello":{"protocol":99,"program":"9.9","nonce":null}}"#;
    let mut hello = vec![1, 0, 0, 0, u8::try_from(version.len()).unwrap()];
    hello.extend_from_slice(version);
    assert!(says(&hello).contains("(weir 9.9) version 99"));
    // The listener still serves a coordinator with the token.
    drop(listener.connect("the right secret").unwrap());
    listener.stop();
    hasty.stop();
}

#[test]
fn where_nobody_listens_the_error_says_what_to_start() {
    let (address, _held) = nobody();
    let launch = Launch {
        token: Some(token("the right secret")),
        ssh: Vec::new(),
        program: String::new(),
        patience: patience(),
    };
    let place = Place::Listening(address.to_string());
    let error = launch.all(&[Wanted { name: "far".to_owned(), place }]).err().unwrap();
    let error = error.to_string();
    assert!(error.contains("worker far") && error.contains("worker --listen"), "{error}");
}
