//! Credentials of a call: AUTH_NONE and AUTH_SYS (RFC 5531 §8.2 and appendix A).

use crate::limits::MACHINE_NAME_BYTES_MAX;
use crate::xdr::{Decode, Reader, Writer, XdrError};
use weir_core::Credentials;
use weir_core::limits::GROUPS_AS_GIVEN_MAX;

/// Flavor number of AUTH_NONE.
pub const AUTH_NONE: u32 = 0;

/// Flavor number of AUTH_SYS.
pub const AUTH_SYS: u32 = 1;

/// Flavor number of RPCSEC_GSS (RFC 2203), which this crate does not speak.
pub const RPCSEC_GSS: u32 = 6;

/// The caller's claimed identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// AUTH_NONE: nobody in particular.
    None,
    /// AUTH_SYS: numeric ids, believed as far as the export rule says.
    Sys(AuthSys),
    /// A flavor that is not spoken here, by its number.
    Other(u32),
}

/// An AUTH_SYS credential (RFC 5531 appendix A, `authsys_parms`). The machine name is checked and
/// dropped: it proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSys {
    /// An arbitrary number of the client's choice.
    pub stamp: u32,
    /// The caller's numeric ids, not yet squashed.
    pub credentials: Credentials,
}

impl AuthSys {
    /// Appends the body of the credential, without groups beyond the sixteenth, with `machine` as
    /// the name of the caller's machine.
    pub fn encode(&self, machine: &[u8], out: &mut Writer) {
        out.u32(self.stamp);
        out.opaque(machine.get(..MACHINE_NAME_BYTES_MAX).unwrap_or(machine));
        out.u32(self.credentials.uid);
        out.u32(self.credentials.gid);
        let groups = self.credentials.groups().as_slice();
        let groups = groups.get(..GROUPS_AS_GIVEN_MAX).unwrap_or(groups);
        out.u32(u32::try_from(groups.len()).unwrap_or(0));
        for group in groups {
            out.u32(*group);
        }
    }
}

impl Decode<'_> for AuthSys {
    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Self, XdrError> {
        let stamp = input.u32()?;
        input.opaque("AUTH_SYS machine name", MACHINE_NAME_BYTES_MAX)?;
        let credentials = Credentials::new(input.u32()?, input.u32()?);
        let count = input.count("AUTH_SYS groups", GROUPS_AS_GIVEN_MAX)?;
        let (words, _) = input.bytes(count.saturating_mul(4))?.as_chunks();
        let mut groups = [0; GROUPS_AS_GIVEN_MAX];
        for (group, word) in groups.iter_mut().zip(words) {
            *group = u32::from_be_bytes(*word);
        }
        let credentials = credentials.with_groups(groups.get(..count).unwrap_or(&[]));
        Ok(Self { stamp, credentials })
    }
}

impl From<&AuthSys> for Credentials {
    fn from(auth: &AuthSys) -> Self {
        auth.credentials.clone()
    }
}
