//! The targets of loads: exports and shares, and the user of the shares.

use super::cases::{Case, Load};
use crate::operator::Operator;
use crate::server::TestServer;
use anyhow::{Result, bail};
use rustix::process::geteuid;
use weir_api::Protocol;
use weir_core::Credentials;
use weir_load::engine::{Session, status_name};
use weir_load::{NfsTarget, Password, SmbTarget, Target};
use weir_nfs::client::Caller;
use weir_nfs::v3::wire::{FileHandle3, Res, Sattr3, SetattrArgs};

/// The user of all shares. A password need not be secret on a server of some minutes on loopback.
const USER: &str = "demo";
const PASSWORD: &str = "a password of the demonstration";
/// The user's ID if the server runs as root. Otherwise only the server's own user may create files.
const UID: u32 = 40_000;

/// The target of one load on the volume of `case`.
pub(super) fn target(server: &TestServer, case: &Case, load: &Load) -> Target {
    match load.protocol {
        Protocol::Nfs => Target::Nfs(NfsTarget::new(server.address(), format!("/{}", case.volume))),
        Protocol::Smb => {
            let password = Password::new(PASSWORD.to_owned());
            Target::Smb(SmbTarget::new(server.smb_address(), case.volume, USER, password))
        }
    }
}

/// Makes the user, and shares of the volumes of `cases` with SMB clients.
pub(super) fn share(server: &mut TestServer, operator: &Operator, cases: &[Case]) -> Result<()> {
    let own = geteuid();
    operator.make_user(USER, if own.is_root() { UID } else { own.as_raw() }, PASSWORD)?;
    let has_smb = |case: &&Case| case.loads.iter().any(|load| load.protocol == Protocol::Smb);
    for case in cases.iter().filter(has_smb) {
        operator.share(case.volume)?;
        let_everybody_write(server, case.volume)?;
    }
    Ok(())
}

/// Sets the mode of a volume's top directory, which belongs to root.
fn let_everybody_write(server: &mut TestServer, volume: &str) -> Result<()> {
    let caller = || Caller::sys(&Credentials::ROOT, b"weir-lab");
    let top = server.mount(&format!("/{volume}"), &caller())?;
    let mut session = Session::open(server.address(), None, caller())?;
    let new_attributes = Sattr3 { mode: Some(0o777), ..Sattr3::NONE };
    let args = SetattrArgs { object: FileHandle3(&top), new_attributes, guard: None };
    let failed = session.call(&args, |result| match result {
        Res::Ok(_) => None,
        Res::Fail(status, _) => Some(status),
    })?;
    match failed {
        Some(status) => bail!("setting the mode of {volume}: {}", status_name(status)),
        None => Ok(()),
    }
}
