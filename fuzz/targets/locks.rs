//! NLM and NSM: any sequence of calls from three hosts, with their callbacks answered in any way,
//! gets replies and callbacks that can be read, and leaves nothing once every host has restarted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::net::{IpAddr, Ipv4Addr};
use weir_core::{HandleKey, Mono};
use weir_fuzz::script;
use weir_nfs::client::{
    CallError, NlmCancel, NlmFreeAll, NlmGranted, NlmLock, NlmNmLock, NlmNull, NlmShare, NlmTest,
    NlmUnlock, NlmUnshare, RemoteCall, Reply,
};
use weir_nfs::nlm::wire::{CallerName, FreeAllArgs, Res, Status, TestArgs, TestRes};
use weir_nfs::nlm::{
    self, Callback, Delivery, Host, LockManager, Next, Peer, Procedure, Request, Waiting,
};
use weir_nfs::nsm::{
    self,
    wire::{MonArgs, MonId, MyId, NotifyArgs, StatArgs},
};
use weir_nfs::rpc::{Call, Credential};
use weir_nfs::xdr::{Encode, Writer, decode};
use weir_state::{File, Grant, Limits, Part, Tables, Use};

/// Calls of one script; more teach the fuzzer nothing but waiting.
const CALLS_MAX: usize = 64;

/// Low, so that the fuzzer finds what happens at the bounds.
const LIMITS: Limits = Limits {
    file: Use { locks: 8, waiters: 6, shares: 4, owner_bytes: usize::MAX, opens: 4 },
    client: Use { locks: 6, waiters: 4, shares: 3, owner_bytes: 256, opens: 4 },
    server: Use { locks: 12, waiters: 8, shares: 6, owner_bytes: 512, opens: 4 },
    clients: 6,
    origin: Part {
        one_in: 2,
        clients_one_in: 2,
        least: Use { locks: 3, waiters: 2, shares: 1, owner_bytes: 128, opens: 4 },
        least_clients: 1,
    },
    volume: Part {
        one_in: 2,
        clients_one_in: 2,
        least: Use { locks: 4, waiters: 3, shares: 2, owner_bytes: usize::MAX, opens: 4 },
        least_clients: 2,
    },
};

fuzz_target!(|input: &[u8]| {
    let mut server = Server {
        manager: LockManager::default(),
        tables: Tables::new(LIMITS),
        callbacks: Vec::new(),
    };
    // Of a call's number, the two highest bits are the host, and the next one says NSM. Among those
    // of NSM, 31 is no procedure: the next callback is answered with the arguments.
    for (number, args) in script(input).take(CALLS_MAX) {
        let host = u8::try_from(number >> 6).expect("a byte");
        let peer = Peer { address: address(host), local: address(9) };
        match (number & 0x20, number & 0x1f) {
            (0, procedure) => server.nlm(&peer, procedure, args),
            (_, 31) => server.answer(args),
            (_, procedure) => server.nsm(&peer, procedure, args),
        }
    }
    server.restart_all();
});

fn address(host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, host))
}

fn call(program: u32, version: u32, procedure: u32, args: &[u8]) -> Call {
    let (args, credential) = (args.to_vec().into(), Credential::None);
    Call { xid: 1, program, version, procedure, credential, args }
}

struct Server {
    manager: LockManager,
    tables: Tables<Waiting>,
    callbacks: Vec<Callback>,
}

impl Server {
    fn nlm(&mut self, peer: &Peer, procedure: u32, args: &[u8]) {
        let call = call(weir_nfs::PROGRAM_NLM, nlm::VERSION, procedure, args);
        let Ok(request) = Request::parse(&call) else { return };
        let file = request.target().map_or(Err(Status::FAILED), |target| {
            let handle = HandleKey::new(&[7; 16]).open(target.handle)?;
            self.tables.open(handle.volume);
            Ok(File { volume: handle.volume, object: handle.key })
        });
        let (tables, waiter) = (&mut self.tables, request.waiting(peer));
        let served = self.manager.serve(tables, Mono::ZERO, peer, &request, file, waiter);
        let reply = Reply::parse(&served.reply[4..]).expect("our replies can be read");
        match request.procedure() {
            Procedure::Test => decodes::<NlmTest<'_>>(&reply),
            Procedure::Lock => decodes::<NlmLock<'_>>(&reply),
            Procedure::Cancel => decodes::<NlmCancel<'_>>(&reply),
            Procedure::Unlock => decodes::<NlmUnlock<'_>>(&reply),
            Procedure::Granted => decodes::<NlmGranted<'_>>(&reply),
            Procedure::Share => decodes::<NlmShare<'_>>(&reply),
            Procedure::Unshare => decodes::<NlmUnshare<'_>>(&reply),
            Procedure::NmLock => decodes::<NlmNmLock<'_>>(&reply),
            _ => decodes::<NlmNull>(&reply),
        }
        self.queue(served.answer);
        self.granted(served.grants);
        let used = self.tables.used();
        assert!(used.locks <= LIMITS.server.locks + 2 * LIMITS.server.waiters);
        assert!(used.waiters <= LIMITS.server.waiters && used.shares <= LIMITS.server.shares);
        assert!(used.owner_bytes <= LIMITS.server.owner_bytes);
    }

    fn nsm(&mut self, peer: &Peer, procedure: u32, args: &[u8]) {
        let call = call(weir_nfs::PROGRAM_NSM, nsm::VERSION, procedure, args);
        let served = nsm::serve(&call, 7, Vec::new());
        let reply = Reply::parse(&served.reply[4..]).expect("our replies can be read");
        match procedure {
            1 => decodes::<StatArgs<'_>>(&reply),
            2 => decodes::<MonArgs<'_>>(&reply),
            3 => decodes::<MonId<'_>>(&reply),
            4 => decodes::<MyId<'_>>(&reply),
            6 => decodes::<NotifyArgs<'_>>(&reply),
            _ => {}
        }
        if let Some(notice) = served.notice {
            let (address, tables) = (peer.address, &mut self.tables);
            let grants = self.manager.rebooted(tables, address, notice.name, notice.state);
            self.granted(grants);
        }
    }

    /// Answers the next callback: with these results, or not at all.
    fn answer(&mut self, results: &[u8]) {
        let Some(callback) = self.callbacks.pop() else { return };
        let delivery = match results {
            [] => Delivery::NotHeard,
            [_] => Delivery::Unknown,
            results => Delivery::Answered(results),
        };
        let (next, grants) = LockManager::delivered(&mut self.tables, callback, delivery);
        self.granted(grants);
        if let Next::Again(callback) = next {
            self.callbacks.push(callback);
        }
    }

    fn granted(&mut self, grants: Vec<Grant<Waiting>>) {
        let told = |grant: Grant<Waiting>| Callback::granted(grant.id, &grant.ask, &grant.waiter);
        self.queue(grants.into_iter().filter_map(told));
    }

    fn queue(&mut self, callbacks: impl IntoIterator<Item = Callback>) {
        for callback in callbacks {
            let args = &callback.args;
            assert!(match callback.procedure {
                Procedure::Granted | Procedure::GrantedMsg => decode::<TestArgs<'_>>(args).is_ok(),
                Procedure::TestRes => decode::<TestRes<'_>>(args).is_ok(),
                _ => decode::<Res<'_>>(args).is_ok(),
            });
            self.callbacks.push(callback);
        }
    }

    fn restart_all(&mut self) {
        let hosts: Vec<_> = self.tables.clients().filter_map(Host::of).collect();
        for host in hosts {
            let peer = Peer { address: host.address, local: address(9) };
            let free = FreeAllArgs { name: CallerName(&host.name), state: 0 };
            let mut args = Writer::default();
            free.encode(&mut args);
            self.nlm(&peer, NlmFreeAll::PROCEDURE, args.as_bytes());
        }
        assert_eq!(self.tables.used(), Use::default());
    }
}

fn decodes<A: RemoteCall>(reply: &Reply<'_>) {
    assert!(!matches!(reply.results::<A>(), Err(CallError::Malformed(_))));
}
