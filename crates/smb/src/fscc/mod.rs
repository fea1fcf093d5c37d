//! Information classes of files, directories and file systems (MS-FSCC §2.4, §2.5), and the
//! payloads of file system controls (§2.3).
//!
//! Not here: which of them a server answers, with which access, and where the values come from.

#[cfg(any(test, feature = "client"))]
pub mod client;
mod control;
mod directory;
mod file;
mod info;
mod limits;
mod set;
#[cfg(test)]
mod tests;
mod time;
mod volume;

pub use control::{
    Chunk, CopyChunks, CopyError, CopyResult, OBJECT_ID_BYTES, RANGE_BYTES, RESUME_KEY_BYTES,
    Range, ResumeKey, encode_object_id, encode_ranges, encode_resume_key, query_ranges, set_sparse,
    zero_data,
};
pub use directory::{DirectoryClass, Listing};
pub use file::FileClass;
pub use info::{CLUSTER_BYTES, FileInfo, InfoError, OpenInfo, whole_clusters};
pub use limits::{COPY_BYTES_MAX, COPY_CHUNK_BYTES_MAX, COPY_CHUNKS_MAX, TARGET_BYTES_MAX};
pub use set::{Disposition, SetBasic, SetInfo, Target};
pub use time::{NtTime, TimeChange};
pub use volume::{FsAttributes, VolumeClass, VolumeInfo};
