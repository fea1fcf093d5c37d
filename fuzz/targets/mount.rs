//! MOUNT: any procedure with any arguments gets a reply that can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_fuzz::{Server, script};
use weir_nfs::client::{
    CallError, Dump, ExportList, Mnt, MountNull, RemoteCall, Reply, Umnt, Umntall,
};
use weir_nfs::mount::wire::Flavors;
use weir_nfs::mount::{self, Export, Exports, Mount, MountGrant, MountStatus};
use weir_nfs::rpc::{Call, Credential};

fuzz_target!(|input: &[u8]| {
    for (procedure, args) in script(input) {
        let call = Call {
            xid: 1,
            program: weir_nfs::PROGRAM_MOUNT,
            version: mount::VERSION,
            procedure,
            credential: Credential::None,
            args: args.to_vec().into(),
        };
        let reply = mount::serve(&call, &OneVolume, Vec::new());
        let reply = Reply::parse(&reply[4..]).expect("our replies can be read");
        match procedure {
            0 => decodes::<MountNull>(&reply),
            1 => decodes::<Mnt<'_>>(&reply),
            2 => decodes::<Dump>(&reply),
            3 => decodes::<Umnt<'_>>(&reply),
            4 => decodes::<Umntall>(&reply),
            5 => decodes::<ExportList>(&reply),
            _ => assert!(reply.body.is_err()),
        }
    }
});

fn decodes<A: RemoteCall>(reply: &Reply<'_>) {
    assert!(!matches!(reply.results::<A>(), Err(CallError::Malformed(_))));
}

/// One export, and names as long as the protocol allows.
struct OneVolume;

impl Exports for OneVolume {
    fn mount(&self, path: &[u8]) -> Result<MountGrant, MountStatus> {
        if path == b"/volume" {
            let handle = Server::default().root();
            return Ok(MountGrant { handle, flavors: Flavors::new(&[1, 0]) });
        }
        Err(MountStatus::NOENT)
    }

    fn exports(&self) -> Vec<Export> {
        vec![Export { path: vec![b'p'; 1024], groups: vec![vec![b'g'; 255]; 100] }]
    }

    fn mounts(&self) -> Vec<Mount> {
        vec![Mount { host: vec![b'h'; 255], path: vec![b'p'; 1024] }; 20]
    }

    fn unmount(&self, _path: &[u8]) {}

    fn unmount_all(&self) {}
}
