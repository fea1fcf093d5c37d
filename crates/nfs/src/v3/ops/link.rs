//! LINK (RFC 1813 §3.3.15).

use super::{Context, Outcome, answer, fail, name};
use crate::v3::wire::{LinkArgs, LinkAttributes, LinkRes, Res, Status, WccData};
use crate::xdr::Writer;
use weir_core::attr::Change;
use weir_core::{Attr, Store};

pub(in crate::v3) async fn link<S: Store>(
    cx: &Context<'_, S>,
    args: LinkArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let file = match cx.resolve().await {
        Ok(file) => file,
        Err(error) => {
            let nothing = LinkAttributes { file_attributes: None, link_dir_wcc: WccData::NONE };
            return fail(out, error, nothing);
        }
    };
    let dir = match cx.second(args.link.dir).await {
        Ok(dir) => dir,
        Err(status) => {
            let file_attributes = cx.fattr_after(&file).await;
            let link_dir_wcc = WccData::NONE;
            return fail(out, status, LinkAttributes { file_attributes, link_dir_wcc });
        }
    };
    let status = match add(cx, &file, &dir, args.link.name).await {
        Ok((attr, change)) => {
            let result: LinkRes = Res::Ok(LinkAttributes {
                file_attributes: Some(cx.fattr(&attr)),
                link_dir_wcc: cx.wcc(&change),
            });
            return answer(out, &result);
        }
        Err(status) => status,
    };
    let file_attributes = cx.fattr_after(&file).await;
    let link_dir_wcc = cx.wcc_after(&dir).await;
    fail(out, status, LinkAttributes { file_attributes, link_dir_wcc })
}

async fn add<S: Store>(
    cx: &Context<'_, S>,
    file: &S::Object,
    dir: &S::Object,
    wire: &[u8],
) -> Result<(Attr, Change), Status> {
    cx.may_change()?;
    let name = name::new(wire)?;
    Ok(cx.volume.store.link(file, dir, name, &cx.rights.cred).await?)
}
