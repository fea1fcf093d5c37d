//! `sattr3`.

use super::time::NfsTime3;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};
use weir_core::{FsResult, SetAttr, SetTime};

/// Setuid, setgid, sticky and permission bits: all that `mode3` has.
const MODE_MASK: u32 = 0o7777;

xdr_struct! {
    /// Attributes to set (RFC 1813 §2.6, `sattr3`).
    pub struct Sattr3 {
        /// The mode.
        pub mode: Option<u32>,
        /// The owner.
        pub uid: Option<u32>,
        /// The group.
        pub gid: Option<u32>,
        /// The size, in bytes.
        pub size: Option<u64>,
        /// Last access.
        pub atime: SetTime3,
        /// Last change of the data.
        pub mtime: SetTime3,
    }
}

impl Sattr3 {
    /// Nothing is set.
    pub const NONE: Self = Self {
        mode: None,
        uid: None,
        gid: None,
        size: None,
        atime: SetTime3::DontChange,
        mtime: SetTime3::DontChange,
    };

    /// The attributes as the store takes them. Mode bits that the protocol does not define are
    /// dropped.
    ///
    /// # Errors
    /// [`FsError::Invalid`](weir_core::FsError::Invalid) if a time is none.
    pub fn to_set_attr(&self) -> FsResult<SetAttr> {
        Ok(SetAttr {
            mode: self.mode.map(|mode| mode & MODE_MASK),
            uid: self.uid,
            gid: self.gid,
            size: self.size,
            atime: self.atime.to_set_time()?,
            mtime: self.mtime.to_set_time()?,
        })
    }
}

/// The way to set a time (RFC 1813 §2.6, `time_how` and `set_atime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime3 {
    /// Leave it.
    DontChange,
    /// Set to the server's present time.
    ToServerTime,
    /// Set to this time.
    ToClientTime(NfsTime3),
}

impl SetTime3 {
    fn to_set_time(self) -> FsResult<SetTime> {
        Ok(match self {
            Self::DontChange => SetTime::Keep,
            Self::ToServerTime => SetTime::ServerNow,
            Self::ToClientTime(time) => SetTime::To(time.to_timestamp()?),
        })
    }
}

impl Decode<'_> for SetTime3 {
    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Self, XdrError> {
        match input.u32()? {
            0 => Ok(Self::DontChange),
            1 => Ok(Self::ToServerTime),
            2 => NfsTime3::decode(input).map(Self::ToClientTime),
            value => Err(XdrError::BadDiscriminant { what: "time_how", value }),
        }
    }
}

impl Encode for SetTime3 {
    #[inline]
    fn encode(&self, out: &mut Writer) {
        match self {
            Self::DontChange => out.u32(0),
            Self::ToServerTime => out.u32(1),
            Self::ToClientTime(time) => {
                out.u32(2);
                time.encode(out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::decode;
    use weir_core::{FsError, Timestamp};

    #[test]
    fn the_store_gets_what_was_asked_for() {
        let set = Sattr3 {
            mode: Some(0o10_4755),
            uid: Some(1),
            gid: None,
            size: Some(9),
            atime: SetTime3::ToServerTime,
            mtime: SetTime3::ToClientTime(NfsTime3 { seconds: 5, nseconds: 6 }),
        };
        let expected = SetAttr {
            mode: Some(0o4755),
            uid: Some(1),
            gid: None,
            size: Some(9),
            atime: SetTime::ServerNow,
            mtime: SetTime::To(Timestamp { secs: 5, nanos: 6 }),
        };
        assert_eq!(set.to_set_attr(), Ok(expected));
        assert_eq!(Sattr3::NONE.to_set_attr(), Ok(SetAttr::default()));
        let bad = SetTime3::ToClientTime(NfsTime3 { seconds: 5, nseconds: u32::MAX });
        assert_eq!(Sattr3 { atime: bad, ..set }.to_set_attr(), Err(FsError::Invalid));
    }

    #[test]
    fn an_unknown_way_to_set_a_time_is_named() {
        let error = XdrError::BadDiscriminant { what: "time_how", value: 3 };
        assert_eq!(decode::<SetTime3>(&3u32.to_be_bytes()), Err(error));
    }
}
