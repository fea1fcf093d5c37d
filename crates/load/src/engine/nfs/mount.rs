//! Getting the export's handle by the MOUNT protocol, with an explanation where that fails.

use super::session::Session;
use crate::error::BenchError;
use crate::target::NfsTarget;
use weir_nfs::client::{Caller, ExportList, Mnt, Umnt};
use weir_nfs::mount::wire::{MntRes, MountStatus};

/// The handle of the export's top directory.
pub fn mount(target: &NfsTarget, caller: Caller) -> Result<Box<[u8]>, BenchError> {
    let mut session = Session::open(target.mount_address, None, caller)?;
    let granted = session.call(&Mnt(target.export.as_bytes()), |result| match result {
        MntRes::Ok(ok) => Ok(ok.handle.0.into()),
        MntRes::Fail(status) => Err(status),
    });
    match granted {
        Ok(Ok(handle)) => Ok(handle),
        Ok(Err(status)) => Err(refused(target, status, &mut session)),
        Err(error @ BenchError::Protocol { .. }) => Err(BenchError::Mount(format!(
            "{error}; if MOUNT is served on another port, give it with ?mountport=PORT"
        ))),
        Err(error) => Err(error),
    }
}

/// Tells the server that the mount is over; a courtesy whose failure changes nothing.
pub(super) fn unmount(target: &NfsTarget, caller: Caller) -> Result<(), BenchError> {
    let mut session = Session::open(target.mount_address, None, caller)?;
    session.call(&Umnt(target.export.as_bytes()), |()| ())
}

fn refused(target: &NfsTarget, status: MountStatus, session: &mut Session) -> BenchError {
    let why = match status {
        MountStatus::NOENT => "the export does not exist",
        MountStatus::ACCES | MountStatus::PERM => "this address may not mount it",
        MountStatus::NOTDIR => "it is not a directory",
        _ => "the server refused",
    };
    let offered = session.call(&ExportList, |result| {
        let path = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        result.exports.iter().map(|entry| path(entry.directory.0)).collect::<Vec<_>>()
    });
    let offered = match offered {
        Ok(paths) if paths.is_empty() => "; the server exports nothing".to_owned(),
        Ok(paths) => format!("; the server exports {}", paths.join(", ")),
        Err(_) => String::new(),
    };
    let (export, address) = (&target.export, target.mount_address);
    BenchError::Mount(format!(
        "cannot mount {export} from {address}: {why} (MOUNT status {}){offered}",
        status.0
    ))
}
