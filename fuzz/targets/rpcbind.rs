//! The portmapper: any procedure of any version with any arguments gets a reply that can be read,
//! and what is registered stays within its bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_fuzz::script;
use weir_nfs::client::{
    CallError, Getaddr, Getport, Gettime, Getversaddr, PortmapDump, PortmapSet, PortmapUnset,
    RemoteCall, Reply, RpcbindDump, RpcbindNull, RpcbindSet, RpcbindUnset,
};
use weir_nfs::limits::RPCBIND_ENTRIES_MAX;
use weir_nfs::rpc::{Call, Credential};
use weir_nfs::rpcbind::{Caller, Entry, Netid, Registry, serve};

fuzz_target!(|input: &[u8]| {
    let own = |netid, address: &str| Entry {
        program: weir_nfs::PROGRAM_NFS,
        version: 3,
        netid,
        address: address.parse().expect("an address"),
    };
    let mut registry =
        Registry::new(vec![own(Netid::Tcp, "0.0.0.0:2049"), own(Netid::Tcp6, "[::]:2049")]);
    // The version is in the high half of the procedure's byte, whether to trust in its top bit.
    for (selector, args) in script(input) {
        let (version, procedure) = (2 + (selector >> 4 & 3), selector & 15);
        let caller = Caller {
            local: [10, 0, 0, 1].into(),
            netid: Netid::Tcp,
            trusted: selector & 0x80 != 0,
            unix_seconds: 1,
        };
        let call = Call {
            xid: 1,
            program: weir_nfs::PROGRAM_RPCBIND,
            version,
            procedure,
            credential: Credential::None,
            args: args.to_vec().into(),
        };
        let reply = serve(&call, &mut registry, &caller, Vec::new());
        let reply = Reply::parse(&reply[4..]).expect("our replies can be read");
        match (version, procedure) {
            (2..=4, 0) => decodes::<RpcbindNull>(&reply),
            (2, 1) => decodes::<PortmapSet>(&reply),
            (2, 2) => decodes::<PortmapUnset>(&reply),
            (2, 3) => decodes::<Getport>(&reply),
            (2, 4) => decodes::<PortmapDump>(&reply),
            (3 | 4, 1) => decodes::<RpcbindSet<'_>>(&reply),
            (3 | 4, 2) => decodes::<RpcbindUnset<'_>>(&reply),
            (3 | 4, 3) => decodes::<Getaddr<'_>>(&reply),
            (3 | 4, 4) => decodes::<RpcbindDump>(&reply),
            (3 | 4, 6) => decodes::<Gettime>(&reply),
            (4, 9) => decodes::<Getversaddr<'_>>(&reply),
            _ => assert!(reply.body.is_err()),
        }
    }
    assert!(registry.iter().count() <= 2 + RPCBIND_ENTRIES_MAX);
    assert!(registry.exactly(weir_nfs::PROGRAM_NFS, 3, Netid::Tcp).is_some());
});

fn decodes<A: RemoteCall>(reply: &Reply<'_>) {
    assert!(!matches!(reply.results::<A>(), Err(CallError::Malformed(_))));
}
