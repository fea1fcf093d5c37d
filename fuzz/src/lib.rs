//! The common part of the fuzz targets and the maker of their corpus: a volume in memory, and
//! scripts of calls in a form that a fuzzer can cut and splice.

pub mod smb;

use std::sync::Arc;
use weir_core::handle::Sealed;
use weir_core::testing::{MemStore, block_on};
use weir_core::{Attr, Credentials, FileHandle, HandleKey, Rights, Store, VolumeId};
use weir_nfs::VolumeView;
use weir_nfs::acl;
use weir_nfs::rpc::{Call, Credential};
use weir_nfs::v3::wire::Status;
use weir_nfs::v3::{self, Route, Served};

/// The volume under test. Its key is known, so that a corpus can hold handles that are accepted.
pub struct Server {
    volume: Arc<VolumeView<MemStore>>,
}

impl Default for Server {
    fn default() -> Self {
        let volume = VolumeView {
            id: VolumeId(1),
            fsid: 1,
            store: MemStore::with_quota(1 << 30),
            keys: HandleKey::new(&[7; 16]),
            verifier: *b"verifier",
        };
        Self { volume: Arc::new(volume) }
    }
}

impl Server {
    /// The sealed handle of the top directory.
    #[must_use]
    pub fn root(&self) -> Sealed {
        self.volume.seal(self.volume.store.key(&self.volume.store.root()))
    }

    /// The attributes of the top directory.
    #[must_use]
    pub fn root_attr(&self) -> Attr {
        let store = &self.volume.store;
        block_on(store.attr(&store.root())).expect("the top is there")
    }

    /// Carries out one call by the way a server takes it: the handle is proved first. The number is
    /// that of a procedure of NFSv3, or [`NFSACL`] more than that of one of NFSACL.
    #[must_use]
    pub fn call(&self, number: u32, args: &[u8]) -> Vec<u8> {
        let (program, procedure) = match number.checked_sub(NFSACL) {
            Some(procedure) => (weir_nfs::PROGRAM_NFSACL, procedure),
            None => (weir_nfs::PROGRAM_NFS, number),
        };
        let call = Call {
            xid: 1,
            program,
            version: v3::VERSION,
            procedure,
            credential: Credential::None,
            args: args.to_vec().into(),
        };
        if number >= NFSACL {
            return match acl::handle(procedure, args) {
                Ok(Some(handle)) => match self.open(handle) {
                    Some(handle) => self.serve_acl(handle, call),
                    None => acl::refuse(&call, Status::BADHANDLE, Vec::new()),
                },
                _ => acl::null(&call, Vec::new()),
            };
        }
        match Route::of(procedure, args) {
            Ok(Route { handle: Some(handle), .. }) => match self.open(handle) {
                Some(handle) => self.serve(handle, call),
                None => v3::refuse(&call, Status::BADHANDLE, Vec::new()),
            },
            _ => v3::null(&call, Vec::new()),
        }
    }

    fn open(&self, handle: &[u8]) -> Option<FileHandle> {
        self.volume.keys.open(handle).ok().filter(|handle| handle.volume == self.volume.id)
    }

    fn serve(&self, handle: FileHandle, call: Call) -> Vec<u8> {
        let rights = Rights { cred: Credentials::ROOT, read_only: false };
        let done: Served =
            block_on(v3::serve(Arc::clone(&self.volume), rights, handle, call, Vec::new()));
        done.reply
    }

    fn serve_acl(&self, handle: FileHandle, call: Call) -> Vec<u8> {
        let rights = Rights { cred: Credentials::ROOT, read_only: false };
        block_on(acl::serve(Arc::clone(&self.volume), rights, handle, call, Vec::new())).reply
    }
}

/// The prefix of the numbers of NFSACL's procedures in scripts and selectors.
pub const NFSACL: u32 = 100;

/// A script of calls: for each, the procedure (one byte), the length of the arguments (two bytes,
/// big-endian), and the arguments.
pub fn script(mut bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let ([procedure, high, low], rest) = bytes.split_first_chunk::<3>()?;
        let len = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (args, next) = rest.split_at(len);
        bytes = next;
        Some((u32::from(*procedure), args))
    })
}

/// Appends one call to a script.
pub fn append_call(script: &mut Vec<u8>, procedure: u32, args: &[u8]) {
    let len = u16::try_from(args.len()).expect("a corpus holds short calls");
    script.push(u8::try_from(procedure).expect("procedures are small numbers"));
    script.extend(len.to_be_bytes());
    script.extend(args);
}

/// Calls `$visit::<Args>($args…)` with the argument type of procedure `$number` of NFSv3 or (100
/// more) NFSACL; nothing for
/// NULL and for numbers that are no procedure.
#[macro_export]
macro_rules! by_procedure {
    ($number:expr, $visit:ident $args:tt) => {{
        use weir_nfs::v3::wire;
        $crate::by_procedure!(@ $number, $visit $args;
            1 GetattrArgs, 2 SetattrArgs, 3 LookupArgs, 4 AccessArgs, 5 ReadlinkArgs, 6 ReadArgs,
            7 WriteArgs, 8 CreateArgs, 9 MkdirArgs, 10 SymlinkArgs, 11 MknodArgs, 12 RemoveArgs,
            13 RmdirArgs, 14 RenameArgs, 15 LinkArgs, 16 ReaddirArgs, 17 ReaddirplusArgs,
            18 FsStatArgs, 19 FsInfoArgs, 20 PathconfArgs, 21 CommitArgs)
    }};
    (@ $number:expr, $visit:ident $args:tt; $($procedure:literal $type:ident),*) => {
        match $number {
            $($procedure => { $visit::<wire::$type<'_>> $args; })*
            101 => { $visit::<weir_nfs::acl::wire::GetaclArgs<'_>> $args; }
            102 => { $visit::<weir_nfs::acl::wire::SetaclArgs<'_>> $args; }
            _ => {}
        }
    };
}
