//! Streams of frames, signed and sealed by a client of every algorithm.

use crate::save;
use std::io::Result;
use weir_fuzz::smb::connection::{SESSION, Side};
use weir_fuzz::smb::{header, utf16};
use weir_smb::crypto::{Role, TRANSFORM_BYTES};
use weir_smb::wire::netbios::{begin, finish};
use weir_smb::wire::samples::{self, hex};
use weir_smb::wire::{
    ChainWriter, CloseFlags, CloseRequest, Command, Empty, FileId, Header, HeaderFlags,
    SIGNATURE_AT, Status, TreeConnectFlags, TreeConnectRequest, UnknownCommand,
};

/// Appends a message as a frame.
fn frame(stream: &mut Vec<u8>, message: &[u8]) {
    let at = begin(stream);
    stream.extend_from_slice(message);
    finish(stream, at).expect("a short frame");
}

/// A sample with this message id, which charges one credit.
fn sample(text: &str, message_id: u64) -> Vec<u8> {
    let mut message = hex(text);
    message[24..32].copy_from_slice(&message_id.to_le_bytes());
    message[6] = 1;
    message
}

fn requests(first: u64) -> Vec<u8> {
    let ids = |command, message_id| Header {
        message_id,
        credits: 8,
        credit_charge: 1,
        ..header(command)
    };
    let related = |command, id| Header { flags: HeaderFlags::RELATED, ..ids(command, id) };
    let mut out = Vec::new();
    let mut chain = ChainWriter::new(&out);
    chain.begin(&mut out, &ids(Command::TreeConnect, first));
    let (flags, path) = (TreeConnectFlags::empty(), utf16("\\\\server\\vol"));
    TreeConnectRequest { flags, path: &path }.encode(&mut out);
    chain.begin(&mut out, &related(Command::Close, first + 1));
    CloseRequest { flags: CloseFlags::all(), file: FileId::PREVIOUS }.encode(&mut out);
    chain.begin(&mut out, &related(Command::Echo, first + 2));
    Empty.encode(&mut out);
    chain.finish(&mut out);
    out
}

pub(super) fn frames() -> Result<()> {
    let mut stream = Vec::new();
    frame(&mut stream, &sample(samples::NEGOTIATE_REQUEST, 0));
    frame(&mut stream, &sample(samples::SESSION_SETUP_REQUEST, 1));
    frame(&mut stream, &requests(2));
    frame(&mut stream, &sample(samples::CANCEL_REQUEST, 4));
    save("smb_frame", "session", &[&[3, 0, 0][..], &stream].concat())?;
    let mut stream = Vec::new();
    frame(&mut stream, &hex(samples::SMB1_NEGOTIATE));
    frame(&mut stream, &sample(samples::NEGOTIATE_REQUEST, 0));
    save("smb_frame", "upgrade", &[&[200, 0, 0][..], &stream].concat())?;
    for name in ["compound-request", "compound-response", "sealed-frame", "read-request"] {
        let (_, text) = samples::ALL.iter().find(|(known, _)| *known == name).expect("a sample");
        let mut stream = Vec::new();
        frame(&mut stream, &hex(text));
        save("smb_frame", name, &[&[200, 0, 0][..], &stream].concat())?;
    }
    save("smb_frame", "too-long", &[9, 0, 0, 0, 0xff, 0xff, 0xff])?;
    save("smb_frame", "overlap", &[&[200, 0, 0][..], &overlap()].concat())?;
    protected()
}

/// Two messages of which the second begins within the header of the first.
fn overlap() -> Vec<u8> {
    let status = Status(u32::from_le_bytes(*b"\xfeSMB"));
    let command = Err(UnknownCommand(64));
    let first = Header { status, command, next_command: 8, message_id: 0, ..header(Command::Echo) };
    let mut stream = Vec::new();
    frame(&mut stream, &weir_fuzz::smb::message(&first, |out| out.extend_from_slice(&[0; 16])));
    stream
}

/// Streams that are signed and sealed in turns.
fn protected() -> Result<()> {
    for choice in [0, 5, 10, 3] {
        let side = Side::new(Role::Client, choice);
        let mut stream = Vec::new();
        let message =
            Header { message_id: 0, credits: 8, credit_charge: 1, ..header(Command::Echo) };
        let mut echo = weir_fuzz::smb::message(&message, |out| Empty.encode(out));
        side.sign.sign(&mut echo).expect("it can be signed");
        assert_ne!(echo[SIGNATURE_AT], [0; 16]);
        frame(&mut stream, &echo);
        let mut sealed = vec![0; TRANSFORM_BYTES];
        sealed.extend(requests(1));
        side.seal.seal(SESSION, &mut sealed).expect("it can be sealed");
        frame(&mut stream, &sealed);
        let name = format!("protected-{choice}");
        save("smb_frame", &name, &[&[50, choice, 77][..], &stream].concat())?;
    }
    Ok(())
}
