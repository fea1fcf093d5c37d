//! The attributes of a file that DOS began and Windows added to (MS-FSCC §2.6).

bitflags::bitflags! {
    /// FILE_ATTRIBUTE_*. Bits without a name survive.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Attributes: u32 {
        /// Not to be written or deleted.
        const READONLY = 0x0000_0001;
        /// Not shown in ordinary listings.
        const HIDDEN = 0x0000_0002;
        /// Part of the operating system.
        const SYSTEM = 0x0000_0004;
        /// A directory.
        const DIRECTORY = 0x0000_0010;
        /// To be archived: changed since the last backup.
        const ARCHIVE = 0x0000_0020;
        /// None of the others; valid only alone.
        const NORMAL = 0x0000_0080;
        /// Used for a short time.
        const TEMPORARY = 0x0000_0100;
        /// May have ranges without storage.
        const SPARSE_FILE = 0x0000_0200;
        /// Has a reparse point, such as a symbolic link.
        const REPARSE_POINT = 0x0000_0400;
        /// Compressed by the file system.
        const COMPRESSED = 0x0000_0800;
        /// The data is elsewhere.
        const OFFLINE = 0x0000_1000;
        /// Left out of the index of contents.
        const NOT_CONTENT_INDEXED = 0x0000_2000;
        /// Encrypted by the file system.
        const ENCRYPTED = 0x0000_4000;
        /// Checked for integrity by the file system.
        const INTEGRITY_STREAM = 0x0000_8000;
        /// Left out of integrity scans.
        const NO_SCRUB_DATA = 0x0002_0000;
        /// Not wholly there; opening may fetch it.
        const RECALL_ON_OPEN = 0x0004_0000;
        /// Wanted to be kept here.
        const PINNED = 0x0008_0000;
        /// Wanted to be kept elsewhere.
        const UNPINNED = 0x0010_0000;
        /// Not wholly there; reading may fetch it.
        const RECALL_ON_DATA_ACCESS = 0x0040_0000;

        const _ = !0;
    }
}

impl Attributes {
    /// The attributes that a client may set and that a store keeps: the others follow from the
    /// object.
    pub const SETTABLE: Self = Self::READONLY
        .union(Self::HIDDEN)
        .union(Self::SYSTEM)
        .union(Self::ARCHIVE)
        .union(Self::TEMPORARY)
        .union(Self::OFFLINE)
        .union(Self::NOT_CONTENT_INDEXED);

    /// The form for a reply: [`Attributes::NORMAL`] if no other is set, and only then.
    #[must_use]
    pub const fn shown(self) -> Self {
        let others = self.difference(Self::NORMAL);
        if others.is_empty() { Self::NORMAL } else { others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_is_shown_alone() {
        assert_eq!(Attributes::empty().shown(), Attributes::NORMAL);
        assert_eq!((Attributes::NORMAL | Attributes::HIDDEN).shown(), Attributes::HIDDEN);
        assert_eq!(Attributes::SETTABLE.bits(), 0x3127);
    }
}
