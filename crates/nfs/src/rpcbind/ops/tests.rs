use super::*;
use crate::PROGRAM_RPCBIND;
use crate::client::{
    Caller as Calls, Getaddr, Getport, Gettime, Getversaddr, PortmapDump, PortmapSet, PortmapUnset,
    Refused, RemoteCall, Reply, RpcbindDump, RpcbindNull, RpcbindSet, RpcbindUnset,
};
use crate::rpc::Credential;
use proptest::prelude::*;
use weir_core::Shared;

const NFS: u32 = crate::PROGRAM_NFS;
const MAPPING: Mapping = Mapping { program: 7, version: 1, protocol: 6, port: 700 };

fn registry() -> Registry {
    let entry = |netid, address: &str| Entry {
        program: NFS,
        version: 3,
        netid,
        address: address.parse().unwrap(),
    };
    Registry::new(Vec::from([
        entry(Netid::Tcp, "0.0.0.0:2049"),
        entry(Netid::Tcp6, "[2001:db8::9]:2050"),
    ]))
}

fn caller(netid: Netid, trusted: bool) -> Caller {
    let local = if netid.is_ipv4() { "10.0.0.1" } else { "2001:db8::1" };
    Caller { local: local.parse().unwrap(), netid, trusted, unix_seconds: 1_700_000_000 }
}

/// The reply record to `args`, without its mark.
fn record<A: RemoteCall>(registry: &mut Registry, caller: &Caller, args: &A) -> Vec<u8> {
    let mut out = Vec::new();
    Calls::none().call(&mut out, 5, args);
    let call = Call::parse(Shared::from(out).skip(4)).unwrap();
    serve(&call, registry, caller, b"left from before".to_vec()).split_off(4)
}

/// The results of `args`, which must be carried out.
macro_rules! ask {
    ($registry:expr, $caller:expr, $args:expr) => {
        Reply::parse(&record($registry, $caller, &$args)).unwrap().results_of(&$args)
    };
}

impl<'a> Reply<'a> {
    fn results_of<A: RemoteCall>(&self, _: &A) -> A::Results<'a> {
        self.results::<A>().unwrap()
    }
}

fn rpcb<'a>(version: u32, netid: &'a str, address: &'a str) -> Rpcb<'a> {
    let text = |text: &'a str| Text(text.as_bytes());
    let (netid, address, owner) = (text(netid), text(address), text("me"));
    Rpcb { program: NFS, version, netid, address, owner }
}

#[test]
fn ports_are_found_for_the_protocol_and_any_version() {
    let (registry, caller) = (&mut registry(), &caller(Netid::Udp, false));
    let mapping = |program, version, protocol| Mapping { program, version, protocol, port: 0 };
    assert_eq!(ask!(registry, caller, Getport(mapping(NFS, 3, 6))), 2049);
    assert_eq!(ask!(registry, caller, Getport(mapping(NFS, 4, 6))), 2049);
    assert_eq!(ask!(registry, caller, Getport(mapping(NFS, 3, 17))), 0);
    assert_eq!(ask!(registry, caller, Getport(mapping(NFS, 3, 132))), 0);
    assert_eq!(ask!(registry, caller, Getport(mapping(1, 3, 6))), 0);
}

#[test]
fn addresses_are_those_that_the_caller_reaches() {
    let registry = &mut registry();
    let address = |registry: &mut Registry, netid, version| {
        let caller = caller(netid, false);
        let reply = record(registry, &caller, &Getaddr(rpcb(version, "udp", "")));
        let text = Reply::parse(&reply).unwrap().results::<Getaddr<'_>>().unwrap();
        core::str::from_utf8(text.0).unwrap().to_owned()
    };
    assert_eq!(address(registry, Netid::Tcp, 3), "10.0.0.1.8.1");
    assert_eq!(address(registry, Netid::Tcp, 4), "10.0.0.1.8.1");
    assert_eq!(address(registry, Netid::Tcp6, 3), "2001:db8::9.8.2");
    assert_eq!(address(registry, Netid::Udp, 3), "");
    let exact = Getversaddr(rpcb(4, "tcp", ""));
    let reply = record(registry, &caller(Netid::Tcp, false), &exact);
    assert_eq!(Reply::parse(&reply).unwrap().results_of(&exact), Text(b""));
    assert_eq!(ask!(registry, &caller(Netid::Tcp, false), Gettime), 1_700_000_000);
    ask!(registry, &caller(Netid::Tcp, false), RpcbindNull);
}

#[test]
fn only_a_trusted_caller_registers_and_forgets() {
    let registry = &mut registry();
    let (stranger, trusted) = (&caller(Netid::Tcp, false), &caller(Netid::Tcp, true));
    let six = RpcbindSet(rpcb(4, "udp6", "::.2.188"));
    for (caller, done) in [(stranger, false), (trusted, true)] {
        assert_eq!(ask!(registry, caller, PortmapSet(MAPPING)), done);
        assert_eq!(ask!(registry, caller, six), done);
    }
    assert_eq!(ask!(registry, stranger, Getport(MAPPING)), 700);
    for (caller, done) in [(stranger, false), (trusted, true)] {
        assert_eq!(ask!(registry, caller, PortmapUnset(MAPPING)), done);
        assert_eq!(ask!(registry, caller, RpcbindUnset(rpcb(4, "", ""))), done);
    }
    assert!(!ask!(registry, trusted, PortmapUnset(Mapping { program: NFS, ..MAPPING })));
    assert!(!ask!(registry, trusted, RpcbindUnset(rpcb(3, "local", ""))));
    assert_eq!(registry.iter().count(), 2);
}

#[test]
fn a_registration_that_makes_no_sense_is_refused() {
    let (registry, trusted) = (&mut registry(), &caller(Netid::Tcp, true));
    for (netid, address) in [
        ("udp", "::.8.1"),
        ("udp6", "0.0.0.0.8.1"),
        ("local", "/run/x"),
        ("udp", ""),
        ("udp", "0.0.0.0.0.0"),
    ] {
        assert!(!ask!(registry, trusted, RpcbindSet(rpcb(9, netid, address))), "{netid}");
    }
    for bad in [Mapping { port: 65_536, ..MAPPING }, Mapping { port: 0, ..MAPPING }] {
        assert!(!ask!(registry, trusted, PortmapSet(bad)));
    }
    assert!(!ask!(registry, trusted, PortmapSet(Mapping { protocol: 132, ..MAPPING })));
}

#[test]
fn dumps_list_what_the_version_can_say() {
    let (registry, caller) = (&mut registry(), &caller(Netid::Tcp, true));
    let reply = record(registry, caller, &PortmapDump);
    let list = Reply::parse(&reply).unwrap().results::<PortmapDump>().unwrap().list;
    let nfs = Mapping { program: NFS, version: 3, protocol: 6, port: 2049 };
    assert!(list.iter().eq([nfs]));
    let reply = record(registry, caller, &RpcbindDump);
    let list = Reply::parse(&reply).unwrap().results::<RpcbindDump>().unwrap().list;
    let addresses: Vec<&[u8]> = list.iter().map(|rpcb| rpcb.address.0).collect();
    assert_eq!(addresses, [&b"0.0.0.0.8.1"[..], b"2001:db8::9.8.2"]);
}

fn refusal(version: u32, procedure: u32, args: &[u8]) -> Option<Refused> {
    let call = Call {
        xid: 5,
        program: PROGRAM_RPCBIND,
        version,
        procedure,
        credential: Credential::None,
        args: Shared::from(args.to_vec()),
    };
    let record = serve(&call, &mut registry(), &caller(Netid::Tcp, true), Vec::new());
    Reply::parse(&record[4..]).unwrap().body.err()
}

#[test]
fn what_it_does_not_speak_is_refused() {
    let mismatch = AcceptError::ProgramMismatch { low: 2, high: 4 };
    for version in [0, 1, 5] {
        assert_eq!(refusal(version, 0, &[]), Some(Refused::Failed(mismatch)));
    }
    let unavailable = Some(Refused::Failed(AcceptError::ProcedureUnavailable));
    for (version, procedures) in
        [(2, &[5, 6, 99][..]), (3, &[5, 7, 8, 9, 10]), (4, &[5, 7, 8, 10, 11, 12, 13])]
    {
        for procedure in procedures {
            assert_eq!(
                refusal(version, *procedure, &[0; 64]),
                unavailable,
                "{version} {procedure}"
            );
        }
    }
}

#[test]
fn arguments_cut_short_or_too_long_are_garbage() {
    let garbage = Some(Refused::Failed(AcceptError::GarbageArgs));
    for procedure in [1, 2, 3] {
        for len in 0..16 {
            assert_eq!(refusal(2, procedure, &[0; 16][..len]), garbage);
        }
    }
    let mut long = Writer::default();
    long.u32(NFS);
    long.u32(3);
    long.opaque(&[b'x'; 256]);
    long.opaque(b"");
    long.opaque(b"");
    for procedure in [1, 2, 3, 9] {
        for len in 0..20 {
            assert_eq!(refusal(4, procedure, &[0; 20][..len]), garbage);
        }
        assert_eq!(refusal(4, procedure, long.as_bytes()), garbage);
    }
}

proptest! {
    #[test]
    fn never_panics_and_always_answers(
        version in 0u32..6,
        procedure in 0u32..16,
        args in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let _ = refusal(version, procedure, &args);
    }
}
