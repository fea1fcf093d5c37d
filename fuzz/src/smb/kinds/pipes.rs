//! The server's ends of named pipes: however the bytes of a client arrive, the same answers come
//! out.

use weir_smb::pipe::{FRAGMENT_BYTES_MAX, Host, Interface, Pipe, PipeError, Share, ShareKind};

const SHARES: [Share<'_>; 3] = [
    Share { name: "vol", comment: "", kind: ShareKind::Disk },
    Share { name: "IPC$", comment: "pipes", kind: ShareKind::Ipc },
    Share { name: "größe😀", comment: "a comment", kind: ShareKind::HiddenDisk },
];

const HOST: Host<'_> =
    Host { name: "WEIR", group: "GROUP", comment: "a server", shares: &|| SHARES.to_vec() };

pub(super) fn srvsvc(bytes: &[u8]) -> Option<Vec<u8>> {
    talk(Interface::Srvsvc, bytes)
}

pub(super) fn wkssvc(bytes: &[u8]) -> Option<Vec<u8>> {
    talk(Interface::Wkssvc, bytes)
}

/// The first byte is the size of the pieces.
fn talk(interface: Interface, bytes: &[u8]) -> Option<Vec<u8>> {
    let (piece, sent) = bytes.split_first()?;
    let whole = written(interface, sent, sent.len().max(1));
    let pieces = written(interface, sent, usize::from(*piece) + 1);
    assert_eq!(whole, pieces);
    None
}

/// The fragments that answer `sent`, written `piece` bytes at a time, and the error at the end.
fn written(
    interface: Interface,
    sent: &[u8],
    piece: usize,
) -> (Vec<Vec<u8>>, Result<(), PipeError>) {
    let mut pipe = Pipe::new(interface);
    let mut end = Ok(());
    for part in sent.chunks(piece) {
        let done = pipe.write(part, &HOST);
        assert!(end.is_ok() || done == end, "a broken pipe stays broken");
        end = done;
    }
    let mut fragments = Vec::new();
    while pipe.waiting() > 0 {
        let (whole, mut fragment) = (pipe.waiting(), Vec::new());
        assert!(whole <= usize::from(FRAGMENT_BYTES_MAX));
        while let Some((part, more)) = pipe.read(1000) {
            fragment.extend(part);
            if !more {
                break;
            }
        }
        assert_eq!(fragment.len(), whole);
        fragments.push(fragment);
    }
    (fragments, end)
}
