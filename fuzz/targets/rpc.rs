//! RPC headers: a call is understood, refused in words a client can read, or dropped.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_nfs::client::{Caller, Null, Reply};
use weir_nfs::rpc::{Call, Credential, RecentCredentials, Refusal, reply};
use weir_nfs::v3::{self, wire::Status};

const MARK: usize = 4;

fuzz_target!(|record: &[u8]| {
    match Call::parse(record.to_vec().into()) {
        Ok(call) => {
            answers(call.xid, &v3::null(&call, Vec::new()));
            answers(call.xid, &v3::refuse(&call, Status::BADHANDLE, Vec::new()));
            keeps_identity(&call.credential);
            is_recognized(record, &call);
        }
        Err(Refusal::Reply(rejection)) => {
            answers(rejection.xid, &reply::reject(Vec::new(), &rejection));
        }
        Err(Refusal::Drop) => {}
    }
});

fn answers(xid: u32, reply: &[u8]) {
    let parsed = Reply::parse(&reply[MARK..]).expect("our replies can be read");
    assert_eq!(parsed.xid, xid);
}

/// An identity that was understood is understood again from our own encoding of it.
fn keeps_identity(credential: &Credential) {
    if let Credential::Sys(sys) = credential {
        let mut record = Vec::new();
        Caller::sys(&sys.credentials, b"host").call(&mut record, 1, &Null);
        let again = Call::parse(record[MARK..].to_vec().into()).expect("our calls can be read");
        assert!(
            matches!(again.credential, Credential::Sys(own) if own.credentials == sys.credentials)
        );
    }
}

/// A call whose credential is remembered from the one before is the same.
fn is_recognized(record: &[u8], call: &Call) {
    let mut recent = RecentCredentials::default();
    for _ in 0..2 {
        let again = Call::parse_after(record.to_vec().into(), &mut recent);
        let again = again.expect("the same record is read again");
        assert_eq!(again.credential, call.credential);
        assert_eq!(*again.args, *call.args);
    }
}
