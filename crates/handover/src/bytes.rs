//! Fields of an image. Numbers are big-endian; what has no fixed length has it before it.

use crate::image::{Move, Unusable};
use std::net::{IpAddr, Ipv6Addr};
use weir_cluster::{GatewayId, Life};
use weir_core::limits::OBJECT_KEY_BYTES_MAX;
use weir_core::{FsError, ObjectKey, VolumeId};

/// Appends bytes with their length, which is known to fit.
pub(crate) fn put_text(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend(length.to_be_bytes());
    out.extend(bytes.get(..usize::from(length)).unwrap_or(bytes));
}

/// Appends the number of entries that follow.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

pub(crate) fn put_key(out: &mut Vec<u8>, key: &ObjectKey) {
    put_text(out, key.as_bytes());
    out.extend(key.birth().to_be_bytes());
}

/// Appends an address; IPv4 as its IPv6-mapped form.
pub(crate) fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    out.extend(address.octets());
}

pub(crate) fn put_move(out: &mut Vec<u8>, of: Move) {
    out.extend(of.volume.0.to_be_bytes());
    for life in [of.from, of.to] {
        out.extend(life.gateway.0.to_be_bytes());
        out.extend(life.number.to_be_bytes());
    }
}

/// The fields that were not read yet.
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], Unusable> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Unusable> {
        self.take().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Unusable> {
        self.take().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Unusable> {
        self.take().map(u64::from_be_bytes)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Unusable> {
        match self.take()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Unusable::Damaged("a flag is neither set nor not")),
        }
    }

    /// Reads at most `most` bytes with their length.
    pub(crate) fn text(&mut self, most: usize) -> Result<&'a [u8], Unusable> {
        let length = usize::from(self.u16()?);
        if length > most {
            return Err(Unusable::Damaged("a field is too long"));
        }
        let (text, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(text)
    }

    /// Reads a number of entries, each of which has at least `least` bytes.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize, Unusable> {
        let count = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        if count > self.0.len() / least {
            return Err(Unusable::Damaged("there are fewer entries than it says"));
        }
        Ok(count)
    }

    pub(crate) fn key(&mut self) -> Result<ObjectKey, Unusable> {
        let wrong = |_: FsError| Unusable::Damaged("a file has no key");
        let key = ObjectKey::new(self.text(OBJECT_KEY_BYTES_MAX)?).map_err(wrong)?;
        Ok(key.born(self.u32()?))
    }

    pub(crate) fn address(&mut self) -> Result<IpAddr, Unusable> {
        Ok(IpAddr::V6(Ipv6Addr::from(self.take::<16>()?)).to_canonical())
    }

    pub(crate) fn of_move(&mut self) -> Result<Move, Unusable> {
        let volume = VolumeId(self.u32()?);
        Ok(Move { volume, from: self.life()?, to: self.life()? })
    }

    fn life(&mut self) -> Result<Life, Unusable> {
        Ok(Life { gateway: GatewayId(self.u16()?), number: self.u32()? })
    }
}

const SHORT: Unusable = Unusable::Damaged("it ends too early");
