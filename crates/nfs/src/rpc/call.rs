//! The header of a call (RFC 5531 §9, `call_body`).

use super::auth::{AUTH_NONE, AUTH_SYS, AuthSys, Credential};
use super::reply::{AuthStat, RejectReason, Rejection};
use super::{MSG_CALL, RPC_VERSION};
use crate::limits::AUTH_BYTES_MAX;
use crate::xdr::{Decode, Reader, XdrError};
use alloc::vec::Vec;
use weir_core::Shared;

/// A call whose header is understood. The arguments are still bytes.
#[derive(Clone, Debug)]
pub struct Call {
    /// The number that ties the reply to the call.
    pub xid: u32,
    /// The program called.
    pub program: u32,
    /// The program's version.
    pub version: u32,
    /// The procedure in it.
    pub procedure: u32,
    /// The caller's credential.
    pub credential: Credential,
    /// The arguments, within the record they came in.
    pub args: Shared,
}

/// Why a record is not a call to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The record is no call at all, or its header ends early: the sender is not to be talked to.
    /// Close the connection.
    Drop,
    /// The record is a call, and this is the answer to it ([`super::reply::reject`]).
    Reply(Rejection),
}

impl Call {
    /// Reads the header of the call in `record`.
    ///
    /// # Errors
    /// [`Refusal::Reply`] for another RPC version (RPC_MISMATCH), a malformed AUTH_NONE or
    /// AUTH_SYS credential (AUTH_BADCRED) or a verifier that does not belong to it (AUTH_BADVERF);
    /// [`Refusal::Drop`] for anything else that is no call.
    pub fn parse(record: Shared) -> Result<Self, Refusal> {
        Self::parse_by(record, authenticate)
    }

    /// Reads the header of the call in `record`, which came after others of which `recent`
    /// remembers the credentials.
    ///
    /// # Errors
    /// As [`Call::parse`].
    #[inline]
    pub fn parse_after(record: Shared, recent: &mut RecentCredentials) -> Result<Self, Refusal> {
        Self::parse_by(record, |input| recent.authenticate(input))
    }

    #[inline]
    fn parse_by(
        record: Shared,
        authenticate: impl FnOnce(&mut Reader<'_>) -> Result<Credential, Denied>,
    ) -> Result<Self, Refusal> {
        let mut input = Reader::new(&record);
        let xid = input.u32()?;
        if input.u32()? != MSG_CALL {
            return Err(Refusal::Drop);
        }
        let refuse = |reason| Refusal::Reply(Rejection { xid, reason });
        if input.u32()? != RPC_VERSION {
            return Err(refuse(RejectReason::RpcMismatch));
        }
        let (program, version, procedure) = (input.u32()?, input.u32()?, input.u32()?);
        let credential = authenticate(&mut input).map_err(|denied| match denied {
            Denied::Cut => Refusal::Drop,
            Denied::Because(stat) => refuse(RejectReason::AuthError(stat)),
        })?;
        let args = record.len().saturating_sub(input.rest().len());
        Ok(Self { xid, program, version, procedure, credential, args: record.skip(args) })
    }
}

/// A header that ends early says nothing that could be answered.
impl From<XdrError> for Refusal {
    fn from(_: XdrError) -> Self {
        Self::Drop
    }
}

/// Credentials that are remembered.
const RECENT_MAX: usize = 4;

/// The credentials of the last calls, by the bytes that they came as. Nearly every call carries one
/// of these, and to compare bytes takes less time than to decode them.
#[derive(Debug, Default)]
pub struct RecentCredentials(Vec<Recent>);

#[derive(Debug)]
struct Recent {
    /// Credential and verifier, whose lengths are among the bytes: a call that goes on with these
    /// has no others.
    wire: Vec<u8>,
    credential: Credential,
}

impl RecentCredentials {
    #[inline]
    fn authenticate(&mut self, input: &mut Reader<'_>) -> Result<Credential, Denied> {
        let bytes = input.rest();
        match self.0.iter().find(|recent| bytes.starts_with(&recent.wire)) {
            Some(Recent { wire, credential }) => {
                input.bytes(wire.len())?;
                Ok(credential.clone())
            }
            None => self.remember(input),
        }
    }

    fn remember(&mut self, input: &mut Reader<'_>) -> Result<Credential, Denied> {
        let bytes = input.rest();
        let credential = authenticate(input)?;
        let read = bytes.len().saturating_sub(input.rest().len());
        let wire = bytes.get(..read).unwrap_or(bytes).to_vec();
        self.0.truncate(RECENT_MAX - 1);
        self.0.insert(0, Recent { wire, credential: credential.clone() });
        Ok(credential)
    }
}

/// The error in a credential or its verifier.
enum Denied {
    /// The record ends in it.
    Cut,
    /// The credential breaks a rule.
    Because(AuthStat),
}

impl From<XdrError> for Denied {
    fn from(_: XdrError) -> Self {
        Self::Cut
    }
}

/// Reads credential and verifier. That of AUTH_NONE and AUTH_SYS is AUTH_NONE and empty
/// (RFC 5531 §8.2, appendix A).
#[inline]
fn authenticate(input: &mut Reader<'_>) -> Result<Credential, Denied> {
    let (flavor, body) = opaque_auth(input, AuthStat::BADCRED)?;
    let (verifier_flavor, verifier) = opaque_auth(input, AuthStat::BADVERF)?;
    let unverified = verifier_flavor == AUTH_NONE && verifier.is_empty();
    let mut body = Reader::new(body);
    let credential = match flavor {
        AUTH_NONE => body.finish().map(|()| Credential::None),
        AUTH_SYS => AuthSys::decode(&mut body).map(Credential::Sys),
        other => return Ok(Credential::Other(other)),
    };
    match credential {
        Ok(_) if !unverified => Err(Denied::Because(AuthStat::BADVERF)),
        Ok(credential) => Ok(credential),
        Err(_) => Err(Denied::Because(AuthStat::BADCRED)),
    }
}

/// The flavor and body of an `opaque_auth` (RFC 5531 §8.2); an oversize body is denied as
/// `oversize`.
#[inline]
fn opaque_auth<'a>(input: &mut Reader<'a>, oversize: AuthStat) -> Result<(u32, &'a [u8]), Denied> {
    let flavor = input.u32()?;
    match input.opaque("opaque_auth", AUTH_BYTES_MAX) {
        Ok(body) => Ok((flavor, body)),
        Err(XdrError::TooLong { .. }) => Err(Denied::Because(oversize)),
        Err(_) => Err(Denied::Cut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Caller;
    use crate::v3::wire::samples::{encoded, fh, hex, packed};
    use crate::v3::wire::{GetattrArgs, Procedure};
    use nfs3_types::rpc as theirs;
    use nfs3_types::xdr_codec::Opaque;
    use proptest::prelude::*;
    use weir_core::Credentials;
    use weir_core::limits::GROUPS_AS_GIVEN_MAX;

    const HEAD: &str = "00000007 00000000 00000002 000186a3 00000003 00000001";
    const NO_AUTH: &str = "00000000 00000000";

    fn parse(parts: &[&str]) -> Result<Call, Refusal> {
        Call::parse(Shared::from(hex(parts)))
    }

    fn denied(stat: AuthStat) -> Refusal {
        Refusal::Reply(Rejection { xid: 7, reason: RejectReason::AuthError(stat) })
    }

    #[test]
    fn reads_a_call_without_identity() {
        let call = parse(&[HEAD, NO_AUTH, NO_AUTH, "01020304"]).unwrap();
        assert_eq!((call.xid, call.program, call.version, call.procedure), (7, 100_003, 3, 1));
        assert_eq!(call.credential, Credential::None);
        assert_eq!(&*call.args, [1, 2, 3, 4]);
    }

    #[test]
    fn reads_a_call_with_numeric_ids() {
        let body = "00000011 00000003 616263 00 000003e8 00000064 00000002 00000004 0000001b";
        let call = parse(&[HEAD, "00000001 0000001c", body, NO_AUTH]);
        // The body is 32 bytes; a length of 28 cuts its last group off.
        assert_eq!(call.unwrap_err(), denied(AuthStat::BADCRED));
        let call = parse(&[HEAD, "00000001 00000020", body, NO_AUTH]).unwrap();
        let credentials = Credentials::new(1000, 100).with_groups(&[4, 27]);
        let auth = AuthSys { stamp: 0x11, credentials: credentials.clone() };
        assert_eq!(Credentials::from(&auth), credentials);
        assert_eq!(call.credential, Credential::Sys(auth));
        assert!(call.args.is_empty());
    }

    #[test]
    fn another_crate_writes_the_same_call() {
        let credentials = Credentials::new(1000, 100).with_groups(&[4, 27]);
        let mut ours = Vec::new();
        Caller::sys(&credentials, b"abc").call(&mut ours, 7, &GetattrArgs { object: fh() });
        let auth = theirs::auth_unix {
            stamp: 0,
            machinename: Opaque::borrowed(b"abc"),
            uid: 1000,
            gid: 100,
            gids: Vec::from([4, 27]),
        };
        let call = theirs::rpc_msg {
            xid: 7,
            body: theirs::msg_body::CALL(theirs::call_body {
                rpcvers: 2,
                prog: 100_003,
                vers: 3,
                proc: Procedure::Getattr as u32,
                cred: theirs::opaque_auth::auth_unix(&auth),
                verf: theirs::opaque_auth::default(),
            }),
        };
        let record = [packed(&call), encoded(&fh())].concat();
        let mark = theirs::fragment_header::new(u32::try_from(record.len()).unwrap(), true);
        assert_eq!(ours, [packed(&mark), record].concat());
    }

    #[test]
    fn what_is_no_call_is_dropped() {
        assert_eq!(parse(&["00000007 00000001 00000002"]).unwrap_err(), Refusal::Drop);
        let whole = hex(&[HEAD, NO_AUTH, NO_AUTH]);
        for end in 0..whole.len() {
            let cut = Call::parse(Shared::from(whole[..end].to_vec()));
            assert_eq!(cut.unwrap_err(), Refusal::Drop, "cut to {end} bytes");
        }
    }

    #[test]
    fn another_rpc_version_is_answered() {
        let call = parse(&["00000007 00000000 00000003"]);
        let rejection = Rejection { xid: 7, reason: RejectReason::RpcMismatch };
        assert_eq!(call.unwrap_err(), Refusal::Reply(rejection));
    }

    #[test]
    fn a_remembered_credential_is_the_one_that_decoding_gives() {
        let body = "00000011 00000003 616263 00 000003e8 00000064 00000001 ";
        let sys = |group: u32, verifier: &str| {
            let group = alloc::format!("{group:08x}");
            hex(&[HEAD, "00000001 0000001c", body, &group, verifier, "0a0b0c0d"])
        };
        let mut recent = RecentCredentials::default();
        let bad_verifier = sys(1, "00000001 00000000");
        for group in [1, 1, 2, 1, 3, 4, 5, 6, 1, 6] {
            for record in
                [sys(group, NO_AUTH), bad_verifier.clone(), hex(&[HEAD, NO_AUTH, NO_AUTH])]
            {
                let parse = |record: Vec<u8>| Call::parse(Shared::from(record));
                let after = Call::parse_after(Shared::from(record.clone()), &mut recent);
                match (parse(record), after) {
                    (Ok(one), Ok(other)) => {
                        assert_eq!(one.credential, other.credential);
                        assert_eq!(*one.args, *other.args);
                    }
                    (one, other) => assert_eq!(one.unwrap_err(), other.unwrap_err()),
                }
            }
            assert!(recent.0.len() <= RECENT_MAX);
        }
        let whole = sys(6, NO_AUTH);
        for end in 0..whole.len() {
            let cut = Shared::from(whole[..end].to_vec());
            let refused = Call::parse(cut.clone()).map(|call| call.xid);
            assert_eq!(Call::parse_after(cut, &mut recent).map(|call| call.xid), refused);
        }
    }

    #[test]
    fn bounds_of_the_credential_are_kept() {
        // A body over 400 bytes is refused by its length alone.
        for flavor in ["00000000", "00000001", "00000006"] {
            let call = parse(&[HEAD, flavor, "00000191"]);
            assert_eq!(call.unwrap_err(), denied(AuthStat::BADCRED));
        }
        assert_eq!(
            parse(&[HEAD, NO_AUTH, "00000000 00000191"]).unwrap_err(),
            denied(AuthStat::BADVERF)
        );
        assert_eq!(
            parse(&[HEAD, "00000000 00000004 00000000", NO_AUTH]).unwrap_err(),
            denied(AuthStat::BADCRED),
            "AUTH_NONE has no body"
        );
        assert_eq!(
            parse(&[HEAD, NO_AUTH, "00000001 00000000"]).unwrap_err(),
            denied(AuthStat::BADVERF)
        );
    }

    /// An AUTH_SYS call with a machine name and groups of these lengths.
    fn sys(machine: usize, groups: usize) -> Result<Call, Refusal> {
        let mut body = crate::xdr::Writer::default();
        body.u32(0);
        body.opaque(&alloc::vec![b'm'; machine]);
        body.u32(1);
        body.u32(2);
        body.u32(u32::try_from(groups).unwrap());
        (0..groups).for_each(|_| body.u32(3));
        let mut out = crate::xdr::Writer::new(hex(&[HEAD, "00000001"]));
        out.opaque(body.as_bytes());
        out.bytes(&hex(&[NO_AUTH]));
        Call::parse(Shared::from(out.into_vec()))
    }

    #[test]
    fn sixteen_groups_and_255_bytes_of_name_are_the_most() {
        let Credential::Sys(auth) = sys(255, GROUPS_AS_GIVEN_MAX).unwrap().credential else {
            panic!("not AUTH_SYS")
        };
        assert_eq!(auth.credentials.groups().as_slice(), [3; GROUPS_AS_GIVEN_MAX]);
        assert_eq!(sys(0, GROUPS_AS_GIVEN_MAX + 1).unwrap_err(), denied(AuthStat::BADCRED));
        assert_eq!(sys(256, 0).unwrap_err(), denied(AuthStat::BADCRED));
    }

    #[test]
    fn other_flavors_are_left_to_the_caller() {
        let call = parse(&[HEAD, "00000006 00000003 61626300", "00000006 00000004 01020304"]);
        assert_eq!(call.unwrap().credential, Credential::Other(6));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Call::parse(Shared::from(bytes));
        }

        #[test]
        fn any_identity_survives(
            xid: u32,
            (uid, gid) in any::<(u32, u32)>(),
            groups in proptest::collection::vec(any::<u32>(), 0..=GROUPS_AS_GIVEN_MAX),
            machine in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let credentials = Credentials::new(uid, gid).with_groups(&groups);
            let mut out = Vec::new();
            Caller::sys(&credentials, &machine).call(&mut out, xid, &GetattrArgs { object: fh() });
            let call = Call::parse(Shared::from(out).skip(4)).unwrap();
            prop_assert_eq!(call.xid, xid);
            prop_assert_eq!(call.credential, Credential::Sys(AuthSys { stamp: 0, credentials }));
            prop_assert_eq!(call.args.to_vec(), encoded(&fh()));
        }
    }
}
