//! The words of a call that the bare loop looks at, taken from their fixed places.

/// Program number of MOUNT (RFC 1813 §5).
const MOUNT: u32 = 100_005;
/// Bytes of a call before the body of its credential (RFC 5531 §9).
const BEFORE_CREDENTIAL: usize = 32;
/// Flavour and length of an empty verifier.
const VERIFIER: usize = 8;
/// Length of the handles that the bare loop gives out, without the length word.
pub(crate) const HANDLE: usize = 32;

/// The request of a call. Any other call ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    /// NULL of NFS or MOUNT.
    Null,
    /// MNT of any path.
    Mount,
    /// UMNT.
    Unmount,
    /// GETATTR of a file.
    Getattr { file: u32 },
    /// LOOKUP of a name.
    Lookup { dir: u32, name: &'a [u8] },
    /// ACCESS of a file.
    Access { file: u32, wanted: u32 },
    /// READ.
    Read { file: u32, offset: u64, count: usize },
    /// WRITE.
    Write { file: u32, offset: u64, stable: u32, data: &'a [u8] },
    /// CREATE of an empty file.
    Create { dir: u32, name: &'a [u8] },
    /// REMOVE.
    Remove { dir: u32, name: &'a [u8] },
    /// FSINFO.
    Fsinfo { file: u32 },
    /// COMMIT.
    Commit { file: u32 },
}

/// The transaction id and the request in `record`, which is a call without its record mark.
pub(crate) fn parse(record: &[u8]) -> Option<(u32, Request<'_>)> {
    let xid = word(record, 0)?;
    let program = word(record, 12)?;
    let procedure = word(record, 20)?;
    let credential = word(record, 28)? as usize;
    let args = record.get(BEFORE_CREDENTIAL + credential + VERIFIER..)?;
    Some((xid, if program == MOUNT { mount(procedure)? } else { nfs(procedure, args)? }))
}

const fn mount(procedure: u32) -> Option<Request<'static>> {
    match procedure {
        0 => Some(Request::Null),
        1 => Some(Request::Mount),
        3 => Some(Request::Unmount),
        _ => None,
    }
}

fn nfs(procedure: u32, args: &[u8]) -> Option<Request<'_>> {
    if procedure == 0 {
        return Some(Request::Null);
    }
    let file = word(args, 4)?;
    let rest = args.get(4 + HANDLE..)?;
    Some(match procedure {
        1 => Request::Getattr { file },
        3 => Request::Lookup { dir: file, name: counted(rest)? },
        4 => Request::Access { file, wanted: word(rest, 0)? },
        6 => Request::Read { file, offset: long(rest)?, count: word(rest, 8)? as usize },
        7 => Request::Write {
            file,
            offset: long(rest)?,
            stable: word(rest, 12)?,
            data: counted(rest.get(16..)?)?,
        },
        8 => Request::Create { dir: file, name: counted(rest)? },
        12 => Request::Remove { dir: file, name: counted(rest)? },
        19 => Request::Fsinfo { file },
        21 => Request::Commit { file },
        _ => return None,
    })
}

/// The big-endian word at `at`.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?))
}

fn counted(bytes: &[u8]) -> Option<&[u8]> {
    let length = word(bytes, 0)? as usize;
    bytes.get(4..)?.get(..length)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A call as a client sends it, without the record mark.
    pub(crate) fn call(program: u32, procedure: u32, credential: &[u8], args: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let credential_words = u32::try_from(credential.len()).unwrap();
        for word in [77, 0, 2, program, 3, procedure, 1, credential_words] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(credential);
        bytes.extend([0; 8]);
        bytes.extend(args);
        bytes
    }

    /// A handle on the wire.
    pub(crate) fn handle(file: u32) -> Vec<u8> {
        let mut bytes = 32u32.to_be_bytes().to_vec();
        bytes.extend(file.to_be_bytes());
        bytes.resize(4 + HANDLE, 0);
        bytes
    }

    #[test]
    fn finds_the_words_of_a_read_behind_any_credential() {
        for credential in [&[][..], &[0; 20], &[0; 84]] {
            let mut args = handle(5);
            args.extend(8192u64.to_be_bytes());
            args.extend(4096u32.to_be_bytes());
            let record = call(100_003, 6, credential, &args);
            let read = Request::Read { file: 5, offset: 8192, count: 4096 };
            assert_eq!(parse(&record), Some((77, read)));
        }
    }

    #[test]
    fn the_data_of_a_write_is_borrowed_without_its_padding() {
        let mut args = handle(1);
        args.extend(7u64.to_be_bytes());
        args.extend(3u32.to_be_bytes());
        args.extend(0u32.to_be_bytes());
        args.extend(3u32.to_be_bytes());
        args.extend(b"abc\0");
        let record = call(100_003, 7, &[], &args);
        let write = Request::Write { file: 1, offset: 7, stable: 0, data: b"abc" };
        assert_eq!(parse(&record), Some((77, write)));
    }

    #[test]
    fn a_call_that_ends_early_or_is_unknown_is_none() {
        let mut args = handle(1);
        args.extend(4u32.to_be_bytes());
        args.extend(b"name");
        let whole = call(100_003, 3, &[], &args);
        assert!(parse(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), None, "{length} bytes");
        }
        assert_eq!(parse(&call(100_003, 17, &[], &args)), None);
        assert_eq!(parse(&call(100_005, 2, &[], &[])), None);
    }
}
