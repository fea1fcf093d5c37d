//! Access and sharing (MS-SMB2 §2.2.13.1, §2.2.13). Not here: how access is decided.

use super::codec::bits;

bits! {
    /// The rights to an object (MS-SMB2 §2.2.13.1). The lowest bits have one name for files and
    /// pipes and another for directories.
    pub struct AccessMask: u32 {
        /// Read a file's data.
        const READ_DATA = 0x0000_0001;
        /// List a directory.
        const LIST_DIRECTORY = 0x0000_0001;
        /// Write a file's data.
        const WRITE_DATA = 0x0000_0002;
        /// Make files in a directory.
        const ADD_FILE = 0x0000_0002;
        /// Write at a file's end.
        const APPEND_DATA = 0x0000_0004;
        /// Make directories in a directory.
        const ADD_SUBDIRECTORY = 0x0000_0004;
        /// Read extended attributes.
        const READ_EA = 0x0000_0008;
        /// Write extended attributes.
        const WRITE_EA = 0x0000_0010;
        /// Run a file.
        const EXECUTE = 0x0000_0020;
        /// Go through a directory.
        const TRAVERSE = 0x0000_0020;
        /// Remove any object of a directory.
        const DELETE_CHILD = 0x0000_0040;
        /// Read attributes and times.
        const READ_ATTRIBUTES = 0x0000_0080;
        /// Write attributes and times.
        const WRITE_ATTRIBUTES = 0x0000_0100;
        /// Remove or rename the object.
        const DELETE = 0x0001_0000;
        /// Read the security descriptor without its SACL.
        const READ_CONTROL = 0x0002_0000;
        /// Write the DACL.
        const WRITE_DAC = 0x0004_0000;
        /// Write the owner.
        const WRITE_OWNER = 0x0008_0000;
        /// Use the open to synchronize; it grants nothing.
        const SYNCHRONIZE = 0x0010_0000;
        /// Read and write the SACL.
        const ACCESS_SYSTEM_SECURITY = 0x0100_0000;
        /// Every right that the caller has.
        const MAXIMUM_ALLOWED = 0x0200_0000;
        /// All rights.
        const GENERIC_ALL = 0x1000_0000;
        /// The rights to run.
        const GENERIC_EXECUTE = 0x2000_0000;
        /// The rights to write.
        const GENERIC_WRITE = 0x4000_0000;
        /// The rights to read.
        const GENERIC_READ = 0x8000_0000;
    }

    /// The access that other opens may have at the same time (MS-SMB2 §2.2.13).
    pub struct ShareAccess: u32 {
        /// To read.
        const READ = 1;
        /// To write.
        const WRITE = 2;
        /// To remove or rename.
        const DELETE = 4;
    }
}
