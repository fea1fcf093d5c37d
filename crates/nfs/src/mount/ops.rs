//! The six procedures of MOUNT (RFC 1813 §5.2).

use super::VERSION;
use super::wire::{
    Flavors, MntOk, MntRes, MountEntry, MountName, MountPath, MountStatus, PathArgs, Procedure,
};
use crate::limits::RECORD_BYTES_MAX;
use crate::rpc::{AcceptError, Call, reply};
use crate::xdr::{Encode, Writer, decode};
use alloc::vec::Vec;
use weir_core::handle::Sealed;

/// The volumes that a client may mount, and the mounts it is told of. The implementation knows the
/// client.
pub trait Exports {
    /// Mounts the export at `path`.
    ///
    /// # Errors
    /// A [`MountStatus`] that is not OK: `NOENT` for an unknown path, `ACCES` where no rule lets
    /// the client in.
    fn mount(&self, path: &[u8]) -> Result<MountGrant, MountStatus>;

    /// The exports to anybody.
    fn exports(&self) -> Vec<Export>;

    /// The mounts that were not undone, as far as they are known.
    fn mounts(&self) -> Vec<Mount>;

    /// Forgets the client's mount of `path`.
    fn unmount(&self, path: &[u8]);

    /// Forgets all the client's mounts.
    fn unmount_all(&self);
}

/// The result of a mount for a client.
#[derive(Clone, Copy)]
pub struct MountGrant {
    /// The handle of the top directory.
    pub handle: Sealed,
    /// RPC flavors accepted for it, best first.
    pub flavors: Flavors,
}

/// An export, for EXPORT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The export's path.
    pub path: Vec<u8>,
    /// The clients that may mount it, as text; empty means everybody.
    pub groups: Vec<Vec<u8>>,
}

/// A mount, for DUMP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The client, as text.
    pub host: Vec<u8>,
    /// The mounted path.
    pub path: Vec<u8>,
}

/// Carries out `call` to the MOUNT program and gives the whole reply, made in the buffer `reply`.
///
/// Another version is PROG_MISMATCH, an unknown procedure PROC_UNAVAIL, and arguments that can't
/// be decoded GARBAGE_ARGS. A list too long for one record is cut short.
#[must_use]
pub fn serve(call: &Call, exports: &dyn Exports, reply: Vec<u8>) -> Vec<u8> {
    if call.version != VERSION {
        let mismatch = AcceptError::ProgramMismatch { low: VERSION, high: VERSION };
        return reply::error(reply, call.xid, mismatch);
    }
    let Some(procedure) = Procedure::of(call.procedure) else {
        return reply::error(reply, call.xid, AcceptError::ProcedureUnavailable);
    };
    let path = match procedure {
        Procedure::Mnt | Procedure::Umnt => match decode::<PathArgs<'_>>(&call.args) {
            Ok(args) => args.path.0,
            Err(_) => return reply::error(reply, call.xid, AcceptError::GarbageArgs),
        },
        _ => &[],
    };
    let mut out = reply::begin(reply, call.xid);
    match procedure {
        Procedure::Null => {}
        Procedure::Mnt => mnt(path, exports, &mut out),
        Procedure::Dump => dump(&exports.mounts(), &mut out),
        Procedure::Umnt => exports.unmount(path),
        Procedure::Umntall => exports.unmount_all(),
        Procedure::Export => export(&exports.exports(), &mut out),
    }
    reply::finish(out)
}

fn mnt(path: &[u8], exports: &dyn Exports, out: &mut Writer) {
    match exports.mount(path) {
        Ok(MountGrant { handle, flavors }) => {
            MntRes::Ok(MntOk { handle: (&handle).into(), flavors }).encode(out);
        }
        Err(status) => MntRes::Fail(status).encode(out),
    }
}

fn dump(mounts: &[Mount], out: &mut Writer) {
    list(mounts, out, |mount, out| {
        MountEntry { host: MountName(&mount.host), directory: MountPath(&mount.path) }.encode(out);
    });
}

fn export(exports: &[Export], out: &mut Writer) {
    list(exports, out, |export, out| {
        MountPath(&export.path).encode(out);
        list(&export.groups, out, |group, out| MountName(group).encode(out));
    });
}

/// Room kept for the ends of nested lists, in bytes.
const TAIL_BYTES: usize = 16;

/// Appends a linked list of `items`, as many as fit into a record.
fn list<T>(items: &[T], out: &mut Writer, encode: impl Fn(&T, &mut Writer)) {
    for item in items {
        let start = out.position();
        out.bool(true);
        encode(item, out);
        if out.position() > RECORD_BYTES_MAX.saturating_sub(TAIL_BYTES) {
            out.truncate(start);
            break;
        }
    }
    out.bool(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{
        Caller, Dump, ExportList, Mnt, MountNull, Refused, RemoteCall, Reply, Umnt, Umntall,
    };
    use crate::xdr::Writer;
    use core::cell::RefCell;
    use weir_core::{FileHandle, HandleKey, ObjectKey, Shared, SnapshotId, VolumeId};

    /// Exports `/vol` to everybody and counts what is undone.
    #[derive(Default)]
    struct OneVolume {
        exports: Vec<Export>,
        mounts: Vec<Mount>,
        undone: RefCell<Vec<Vec<u8>>>,
    }

    fn sealed() -> Sealed {
        let key = ObjectKey::new(&[9; 8]).unwrap();
        let handle = FileHandle { volume: VolumeId(3), snapshot: SnapshotId::LIVE, key };
        HandleKey::new(&[7; 16]).seal(&handle)
    }

    impl Exports for OneVolume {
        fn mount(&self, path: &[u8]) -> Result<MountGrant, MountStatus> {
            match path {
                b"/vol" => Ok(MountGrant { handle: sealed(), flavors: Flavors::new(&[1]) }),
                _ => Err(MountStatus::NOENT),
            }
        }

        fn exports(&self) -> Vec<Export> {
            self.exports.clone()
        }

        fn mounts(&self) -> Vec<Mount> {
            self.mounts.clone()
        }

        fn unmount(&self, path: &[u8]) {
            self.undone.borrow_mut().push(path.to_vec());
        }

        fn unmount_all(&self) {
            self.undone.borrow_mut().push(b"all".to_vec());
        }
    }

    /// The reply record to `args`, without its mark.
    fn reply<A: RemoteCall>(exports: &OneVolume, args: &A) -> Vec<u8> {
        let mut out = Vec::new();
        Caller::none().call(&mut out, 5, args);
        let call = Call::parse(Shared::from(out).skip(4)).unwrap();
        serve(&call, exports, b"left from before".to_vec()).split_off(4)
    }

    #[test]
    fn mnt_gives_the_handle_or_the_status() {
        let record = reply(&OneVolume::default(), &Mnt(b"/vol"));
        let parsed = Reply::parse(&record).unwrap();
        assert_eq!(parsed.xid, 5);
        let Ok(MntRes::Ok(ok)) = parsed.results::<Mnt<'_>>() else { panic!("refused") };
        assert_eq!(ok.handle.0, sealed().as_bytes());
        assert_eq!(ok.flavors.as_slice(), [1]);
        let record = reply(&OneVolume::default(), &Mnt(b"/other"));
        let results = Reply::parse(&record).unwrap().results::<Mnt<'_>>();
        assert_eq!(results, Ok(MntRes::Fail(MountStatus::NOENT)));
    }

    #[test]
    fn unmounting_reaches_the_exports() {
        let exports = OneVolume::default();
        assert_eq!(Reply::parse(&reply(&exports, &Umnt(b"/vol"))).unwrap().body, Ok(&[][..]));
        assert_eq!(Reply::parse(&reply(&exports, &Umntall)).unwrap().body, Ok(&[][..]));
        assert_eq!(Reply::parse(&reply(&exports, &MountNull)).unwrap().body, Ok(&[][..]));
        assert_eq!(*exports.undone.borrow(), [b"/vol".to_vec(), b"all".to_vec()]);
    }

    #[test]
    fn lists_hold_what_the_exports_say() {
        let path = b"/vol".to_vec();
        let exports = OneVolume {
            exports: Vec::from([
                Export { path: path.clone(), groups: Vec::from([b"10.0.0.0/8".to_vec()]) },
                Export { path: b"/b".to_vec(), groups: Vec::new() },
            ]),
            mounts: Vec::from([Mount { host: b"10.0.0.1".to_vec(), path }]),
            ..OneVolume::default()
        };
        let record = reply(&exports, &ExportList);
        let res = Reply::parse(&record).unwrap().results::<ExportList>().unwrap();
        let read: Vec<Export> = res
            .exports
            .iter()
            .map(|export| Export {
                path: export.directory.0.to_vec(),
                groups: export.groups.iter().map(|group| group.0.to_vec()).collect(),
            })
            .collect();
        assert_eq!(read, exports.exports);
        let record = reply(&exports, &Dump);
        let res = Reply::parse(&record).unwrap().results::<Dump>().unwrap();
        let hosts: Vec<&[u8]> = res.mounts.iter().map(|mount| mount.host.0).collect();
        assert_eq!(hosts, [b"10.0.0.1"]);
    }

    #[test]
    fn a_list_longer_than_a_record_is_cut_between_elements() {
        let long = Mount { host: alloc::vec![b'h'; 255], path: alloc::vec![b'p'; 1024] };
        let groups = alloc::vec![alloc::vec![b'g'; 255]; 5000];
        let exports = OneVolume {
            mounts: alloc::vec![long; 2000],
            exports: alloc::vec![Export { path: b"/vol".to_vec(), groups }; 2],
            ..OneVolume::default()
        };
        let record = reply(&exports, &Dump);
        assert!(record.len() <= RECORD_BYTES_MAX);
        let res = Reply::parse(&record).unwrap().results::<Dump>().unwrap();
        assert!((700..2000).contains(&res.mounts.iter().count()));
        let record = reply(&exports, &ExportList);
        assert!(record.len() <= RECORD_BYTES_MAX);
        assert!(Reply::parse(&record).unwrap().results::<ExportList>().is_ok());
    }

    fn refusal(version: u32, procedure: u32, args: &[u8]) -> Result<(), Refused> {
        let call = Call {
            xid: 5,
            program: crate::PROGRAM_MOUNT,
            version,
            procedure,
            credential: crate::rpc::Credential::None,
            args: Shared::from(args.to_vec()),
        };
        let record = serve(&call, &OneVolume::default(), Vec::new());
        Reply::parse(&record[4..]).unwrap().body.map(|_| ())
    }

    #[test]
    fn what_it_does_not_speak_is_refused() {
        let mismatch = AcceptError::ProgramMismatch { low: 3, high: 3 };
        assert_eq!(refusal(1, 0, &[]), Err(Refused::Failed(mismatch)));
        assert_eq!(refusal(3, 6, &[]), Err(Refused::Failed(AcceptError::ProcedureUnavailable)));
        let mut long = Writer::default();
        long.opaque(&[b'/'; 1025]);
        for args in [&[][..], &[0, 0, 0, 4, b'/'], long.as_bytes()] {
            for procedure in [Procedure::Mnt, Procedure::Umnt] {
                let refused = refusal(3, procedure as u32, args);
                assert_eq!(refused, Err(Refused::Failed(AcceptError::GarbageArgs)));
            }
        }
    }
}
