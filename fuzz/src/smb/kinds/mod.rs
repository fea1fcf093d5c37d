//! Everything of SMB that is decoded by itself, in a table: messages of both directions, and the
//! payloads in them.
//!
//! Each kind takes bytes, and gives the encoding of what they mean, if they mean anything. Where
//! that encoding has the whole meaning, it is decoded again and compared. Other invariants are
//! checked on the way.

mod messages;
mod payloads;
mod pipes;
mod security;

/// The encoding of the meaning of some bytes; for a message, of its body.
pub type Again = fn(&[u8]) -> Option<Vec<u8>>;

/// Every kind with its name. Inputs name a kind by its place, so new ones are added at the end.
pub const KINDS: [(&str, Again); 47] = [
    ("negotiate-request", messages::negotiate_request),
    ("session-setup-request", messages::session_setup_request),
    ("tree-connect-request", messages::tree_connect_request),
    ("create-request", messages::create_request),
    ("close-request", messages::close_request),
    ("flush-request", messages::flush_request),
    ("read-request", messages::read_request),
    ("write-request", messages::write_request),
    ("lock-request", messages::lock_request),
    ("ioctl-request", messages::ioctl_request),
    ("empty", messages::empty),
    ("query-directory-request", messages::query_directory_request),
    ("change-notify-request", messages::change_notify_request),
    ("query-info-request", messages::query_info_request),
    ("set-info-request", messages::set_info_request),
    ("oplock-break-request", messages::oplock_break_request),
    ("negotiate-response", messages::negotiate_response),
    ("session-setup-response", messages::session_setup_response),
    ("tree-connect-response", messages::tree_connect_response),
    ("create-response", messages::create_response),
    ("close-response", messages::close_response),
    ("read-response", messages::read_response),
    ("write-response", messages::write_response),
    ("ioctl-response", messages::ioctl_response),
    ("set-info-response", messages::set_info_response),
    ("output-response", messages::output_response),
    ("plain-error", messages::plain_error),
    ("too-small-error", messages::too_small_error),
    ("symlink-error", messages::symlink_error),
    ("header", messages::header),
    ("set-info", payloads::set_info),
    ("file-info", payloads::file_info),
    ("directory", payloads::directory),
    ("copy-chunks", payloads::copy_chunks),
    ("copy-result", payloads::copy_result),
    ("zero-data", payloads::zero_range),
    ("allocated-ranges-request", payloads::query_range),
    ("allocated-ranges", payloads::ranges),
    ("resume-key", payloads::resume_key),
    ("path", payloads::path),
    ("pattern", payloads::pattern),
    ("store-name", payloads::store_name),
    ("descriptor", security::descriptor),
    ("descriptor-of-directory", security::set_on_directory),
    ("descriptor-of-file", security::set_on_file),
    ("srvsvc", pipes::srvsvc),
    ("wkssvc", pipes::wkssvc),
];

/// The selector of a kind.
///
/// # Panics
/// If there is none of this name.
#[must_use]
pub fn selector(name: &str) -> u8 {
    let place = KINDS.iter().position(|(known, _)| *known == name);
    u8::try_from(place.expect("a kind of this name")).expect("few kinds")
}
