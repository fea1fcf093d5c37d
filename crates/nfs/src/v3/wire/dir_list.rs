//! Writing the list of entries in READDIR and READDIRPLUS results (`dirlist3`, `dirlistplus3`).

use super::attributes::Fattr3;
use super::status::Status;
use crate::xdr::{Encode, Writer};

/// Flag that ends the list, and the end-of-directory flag.
const TAIL_BYTES: usize = 8;

/// Writes a successful READDIR or READDIRPLUS result entry by entry, within the size the caller
/// allows.
#[derive(Debug)]
pub struct ListWriter<'w> {
    out: &'w mut Writer,
    /// The latest end of the last entry.
    end: usize,
}

impl<'w> ListWriter<'w> {
    /// Starts the result: status, the directory's attributes, the cookie verifier. `bytes_max` is
    /// the size allowed for all that follows the status (RFC 1813 §3.3.16 `count`, §3.3.17
    /// `maxcount`).
    pub fn begin(
        out: &'w mut Writer,
        dir_attributes: Option<Fattr3>,
        cookie_verifier: [u8; 8],
        bytes_max: usize,
    ) -> Self {
        Status::OK.encode(out);
        let end = out.position().saturating_add(bytes_max).saturating_sub(TAIL_BYTES);
        dir_attributes.encode(out);
        cookie_verifier.encode(out);
        Self { out, end }
    }

    /// Appends `entry` if it fits, and says whether it did. After a `false` call
    /// [`ListWriter::finish`]: entries may not be left out.
    #[must_use = "an entry that did not fit ends the list"]
    pub fn push(&mut self, entry: &impl Encode) -> bool {
        let start = self.out.position();
        self.out.bool(true);
        entry.encode(self.out);
        let fits = self.out.position() <= self.end;
        if !fits {
            self.out.truncate(start);
        }
        fits
    }

    /// Ends the list. `eof`: was the last entry the directory's last?
    pub fn finish(self, eof: bool) {
        self.out.bool(false);
        self.out.bool(eof);
    }
}
