//! Tests of calls and replies as a load generator uses them.

use super::{CallError, Caller, Null, Refused, RemoteCall, Reply, padding};
use crate::rpc::{AcceptError, AuthStat, Call, Deframer, RejectReason, Step, reply};
use crate::v3::wire::samples::{VERIFIER, fh, wcc};
use crate::v3::wire::{
    CommitArgs, CommitOk, CommitRes, GetattrArgs, Procedure, ReadArgs, StableHow, WriteArgs,
    WriteHead,
};
use crate::xdr::{Encode, XdrError, decode};
use crate::{PROGRAM_NFS, v3};
use alloc::vec::Vec;
use weir_core::{Credentials, Shared};

/// The calls in `stream`.
fn calls(stream: &[u8]) -> Vec<Call> {
    let (mut deframer, mut rest, mut calls) = (Deframer::new(), stream, Vec::new());
    while let Step::Record { at, consumed } = deframer.next(rest).unwrap() {
        calls.push(Call::parse(Shared::from(rest[at].to_vec())).unwrap());
        rest = &rest[consumed..];
    }
    assert!(rest.is_empty());
    calls
}

#[test]
fn many_calls_go_into_one_buffer() {
    let caller = Caller::sys(&Credentials::new(7, 8), b"m");
    let mut out = Vec::new();
    caller.call(&mut out, 1, &Null);
    caller.call(&mut out, 2, &ReadArgs { file: fh(), offset: 3, count: 4 });
    caller.call(&mut out, 3, &GetattrArgs { object: fh() });
    let calls = calls(&out);
    let heads: Vec<_> = calls.iter().map(|call| (call.xid, call.procedure)).collect();
    assert_eq!(heads, [(1, Null::PROCEDURE), (2, 6), (3, 1)]);
    assert!(calls.iter().all(|call| (call.program, call.version) == (PROGRAM_NFS, v3::VERSION)));
    let read = ReadArgs { file: fh(), offset: 3, count: 4 };
    assert_eq!(decode(&calls[1].args), Ok(read));
}

#[test]
fn a_write_gathered_from_elsewhere_is_the_same_as_one_encoded_whole() {
    let caller = Caller::none();
    for len in 0..9u8 {
        let data: Vec<u8> = (0..len).collect();
        let (count, stable) = (u32::from(len), StableHow::Unstable);
        let args = WriteArgs { file: fh(), offset: 5, count, stable, data: &data };
        let (mut whole, mut gathered) = (Vec::new(), Vec::new());
        caller.call(&mut whole, 1, &args);
        let head = WriteHead { file: fh(), offset: 5, count, stable, data_len: count };
        caller.write_head(&mut gathered, 1, &head);
        gathered.extend_from_slice(&data);
        gathered.extend_from_slice(padding(count));
        assert_eq!(gathered, whole);
        assert_eq!(calls(&whole)[0].procedure, Procedure::Write as u32);
    }
}

#[test]
fn results_are_read_or_refused() {
    let results = CommitRes::Ok(CommitOk { file_wcc: wcc(), verifier: VERIFIER });
    let mut out = reply::begin(Vec::new(), 9);
    results.encode(&mut out);
    let record = reply::finish(out);
    let parsed = Reply::parse(&record[4..]).unwrap();
    assert_eq!((parsed.xid, parsed.results::<CommitArgs<'_>>()), (9, Ok(results)));
    let cut = Reply::parse(&record[4..record.len() - 1]).unwrap();
    let error = CallError::Malformed(XdrError::Truncated { needed: 8, left: 7 });
    assert_eq!(cut.results::<CommitArgs<'_>>(), Err(error));
    let record = reply::error(Vec::new(), 9, AcceptError::SystemError);
    let refused = Reply::parse(&record[4..]).unwrap().results::<CommitArgs<'_>>();
    assert_eq!(refused, Err(CallError::Refused(Refused::Failed(AcceptError::SystemError))));
}

#[test]
fn a_refusal_is_told_with_the_names_of_the_standard() {
    let auth = |stat| Refused::Denied(RejectReason::AuthError(stat)).to_string();
    assert_eq!(
        auth(AuthStat::TOOWEAK),
        "the server denied the call: AUTH_TOOWEAK: the credential is not enough"
    );
    assert_eq!(auth(AuthStat(13)), "the server denied the call: auth_stat 13");
    let failed = |error| Refused::Failed(error).to_string();
    assert!(failed(AcceptError::ProgramUnavailable).contains("PROG_UNAVAIL: it does not serve"));
    let mismatch = failed(AcceptError::ProgramMismatch { low: 1, high: 2 });
    assert!(mismatch.contains("PROG_MISMATCH: it serves versions 1 to 2"), "{mismatch}");
}
