//! Setting a security descriptor (MS-SMB2 §3.3.5.21.3, MS-FSA §2.1.5.17): as a change of owner,
//! mode and access control list.
//!
//! The open must have the access for it, and the store decides once more by the user's identity:
//! only the superuser gives files away, whatever the mask says.

use crate::host::Host;
use crate::ops::info::granted;
use crate::ops::{Failure, descriptor};
use crate::security::{Descriptor, DescriptorError};
use crate::wire::{AccessMask, SecurityInformation, Status};

pub(super) async fn set<H: Host>(
    host: &H,
    open: &H::Open,
    asked: SecurityInformation,
    bytes: &[u8],
) -> Result<(), Failure> {
    granted(open, needed(asked))?;
    let wanted = Descriptor::decode(bytes).map_err(|error| match error {
        DescriptorError::Malformed | DescriptorError::TooLong => Status::INVALID_SECURITY_DESCR,
        DescriptorError::Unsupported => Status::ACCESS_DENIED,
    })?;
    let wanted = wanted.restricted(asked);
    descriptor::set(host, &open.object, &wanted, &host.user().credentials).await?;
    Ok(())
}

/// The access that the open must have for these parts.
fn needed(asked: SecurityInformation) -> AccessMask {
    let owner =
        SecurityInformation::OWNER | SecurityInformation::GROUP | SecurityInformation::LABEL;
    let list = SecurityInformation::DACL | SecurityInformation::ATTRIBUTE;
    let audit =
        SecurityInformation::SACL | SecurityInformation::SCOPE | SecurityInformation::BACKUP;
    let mut needed = AccessMask::empty();
    needed.set(AccessMask::WRITE_OWNER, asked.intersects(owner));
    needed.set(AccessMask::WRITE_DAC, asked.intersects(list));
    needed.set(AccessMask::ACCESS_SYSTEM_SECURITY, asked.intersects(audit));
    needed
}
