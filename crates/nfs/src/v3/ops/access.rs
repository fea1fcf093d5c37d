//! ACCESS (RFC 1813 §3.3.4): what the caller may do, by mode and access list. The owner's right to
//! go on reading and writing after a chmod is not shown here: it is for files already open.

use super::{Context, Outcome, answer, fail};
use crate::v3::wire::{AccessArgs, AccessBits, AccessOk, AccessRes, Res, Status};
use crate::xdr::Writer;
use weir_core::{Access, Acl, Attr, Credentials, FileKind, Store, access};

#[inline]
pub(in crate::v3) async fn access<S: Store>(
    cx: &Context<'_, S>,
    args: &AccessArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let (object, attr) = match cx.subject().await {
        Ok(subject) => subject,
        Err(error) => return fail(out, error, false),
    };
    let by = |attr: &Attr, acl: Option<&Acl>| Ok::<_, Status>(granted(attr, acl, &cx.rights.cred));
    match cx.decide(&object, &attr, by).await {
        Ok(mut granted) => {
            if cx.rights.read_only {
                granted.remove(AccessBits::MODIFY | AccessBits::EXTEND | AccessBits::DELETE);
            }
            let result: AccessRes = Res::Ok(AccessOk {
                attributes: Some(cx.fattr(&attr)),
                access: granted & args.access,
            });
            answer(out, &result)
        }
        Err(status) => fail(out, status, Some(cx.fattr(&attr))),
    }
}

/// Entries are changed by those who may both write and search the directory; DELETE is about
/// entries, so no other object grants it.
fn granted(attr: &Attr, acl: Option<&Acl>, cred: &Credentials) -> AccessBits {
    let changes = AccessBits::MODIFY | AccessBits::EXTEND;
    let map: &[(Access, AccessBits)] = match attr.kind {
        FileKind::Directory => &[
            (Access::READ, AccessBits::READ),
            (Access::EXECUTE, AccessBits::LOOKUP),
            (Access::WRITE.union(Access::EXECUTE), changes.union(AccessBits::DELETE)),
        ],
        _ => &[
            (Access::READ, AccessBits::READ),
            (Access::WRITE, changes),
            (Access::EXECUTE, AccessBits::EXECUTE),
        ],
    };
    let of_right = |(want, bits): &(Access, AccessBits)| {
        access::allows(attr, acl, cred, *want).then_some(*bits)
    };
    map.iter().filter_map(of_right).collect()
}
