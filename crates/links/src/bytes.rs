//! Fields that several messages have: lives and versions. Numbers are big-endian.

use weir_cluster::{GatewayId, Life, Version};

/// There are fewer bytes than a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooShort;

/// Appends a life.
pub(crate) fn put_life(bytes: &mut Vec<u8>, life: Life) {
    bytes.extend(life.gateway.0.to_be_bytes());
    bytes.extend(life.number.to_be_bytes());
}

/// The bytes of a message that were not read yet.
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl Rest<'_> {
    /// Reads so many bytes.
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], TooShort> {
        let (taken, behind) = self.0.split_first_chunk::<N>().ok_or(TooShort)?;
        self.0 = behind;
        Ok(*taken)
    }

    /// Reads a life.
    pub(crate) fn life(&mut self) -> Result<Life, TooShort> {
        let gateway = GatewayId(u16::from_be_bytes(self.take()?));
        Ok(Life { gateway, number: u32::from_be_bytes(self.take()?) })
    }

    /// Reads a version.
    pub(crate) fn version(&mut self) -> Result<Version, TooShort> {
        self.take().map(u16::from_be_bytes).map(Version)
    }
}
