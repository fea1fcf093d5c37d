//! ACCESS (RFC 1813 §3.3.4): what the caller may do, by the mode alone. The owner's right to go on
//! reading and writing after a chmod is not shown here: it is for files already open.

use super::{Context, Outcome, answer, fail};
use crate::v3::wire::{AccessArgs, AccessBits, AccessOk, AccessRes, Res};
use crate::xdr::Writer;
use weir_core::{Access, Attr, Credentials, FileKind, Store, access};

#[inline]
pub(in crate::v3) async fn access<S: Store>(
    cx: &Context<'_, S>,
    args: &AccessArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    match cx.subject().await {
        Ok((_, attr)) => {
            let mut granted = granted(&attr, &cx.rights.cred);
            if cx.rights.read_only {
                granted.remove(AccessBits::MODIFY | AccessBits::EXTEND | AccessBits::DELETE);
            }
            let result: AccessRes = Res::Ok(AccessOk {
                attributes: Some(cx.fattr(&attr)),
                access: granted & args.access,
            });
            answer(out, &result)
        }
        Err(error) => fail(out, error, false),
    }
}

/// Entries are changed by those who may both write and search the directory; DELETE is about
/// entries, so no other object grants it.
fn granted(attr: &Attr, cred: &Credentials) -> AccessBits {
    let rights = access::rights(attr, cred);
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
    let of_right = |(right, bits): &(Access, AccessBits)| rights.contains(*right).then_some(*bits);
    map.iter().filter_map(of_right).collect()
}
