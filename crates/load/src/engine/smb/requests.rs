//! Operations of a load as compounds of SMB, and the names of files.
//!
//! SMB knows no LOOKUP, ACCESS, REMOVE or RMDIR: each is an open of the name, which is closed in
//! the same compound.

use crate::engine::job::{Request as Asked, created_name, directory_name};
use weir_smb::fscc::{FileClass, SetBasic, SetInfo};
use weir_smb::utf16::{put_utf16, to_utf16};
use weir_smb::wire::{
    AccessMask, CreateContexts, CreateDisposition, CreateOptions, FileAttributes, FileId, InfoType,
    RequestContext,
};
use weir_smb_client::{Data, Open, Request, Write};

/// The number of FileNetworkOpenInformation: times, sizes and attributes (MS-FSCC §2.4).
const NETWORK_OPEN: u8 = 34;
/// The length of an answer of that class.
const NETWORK_OPEN_BYTES: u32 = 56;
const _: () = assert!(FileClass::NetworkOpen.fixed_bytes() == 56);
/// The number of FileBasicInformation.
const BASIC: u8 = 4;
/// The place of the WRITE in [`fill`].
pub(super) const FILL_AT: usize = 1;

/// An open and a close.
pub(super) type OpenClose<'a> = [Request<'a>; 2];

/// Paths below a directory, in UTF-16. The text of the one asked for last is kept.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// The directory and a separator.
    prefix: Vec<u8>,
    path: Vec<u8>,
}

impl Names {
    /// Below `directory`, whose parts are separated by `\`; the top if it is empty.
    pub(super) fn below(directory: &str) -> Self {
        let separator = if directory.is_empty() { "" } else { "\\" };
        let prefix = to_utf16(&[directory, separator].concat());
        Self { prefix, path: Vec::new() }
    }

    /// The path of `name`.
    pub(super) fn of(&mut self, name: &str) -> &[u8] {
        self.path.clear();
        self.path.extend_from_slice(&self.prefix);
        put_utf16(&mut self.path, name);
        &self.path
    }

    /// The path of the file that `job` creates under `serial`.
    pub(super) fn created(&mut self, job: u32, serial: u64) -> &[u8] {
        self.of(&created_name(job, serial))
    }

    /// The path of the directory that `job` makes under `serial`.
    pub(super) fn directory(&mut self, job: u32, serial: u64) -> &[u8] {
        self.of(&directory_name(job, serial))
    }
}

/// CREATE of `name`.
pub(super) fn open(
    name: &[u8],
    access: AccessMask,
    disposition: CreateDisposition,
    options: CreateOptions,
) -> Request<'_> {
    let contexts = CreateContexts::default();
    Request::Create(Open { name, access, disposition, options, contexts })
}

/// CREATE of a file that is there.
pub(super) fn open_file(name: &[u8], access: AccessMask) -> Request<'_> {
    open(name, access, CreateDisposition::Open, CreateOptions::NON_DIRECTORY_FILE)
}

const CLOSE: Request<'static> = Request::Close(FileId::PREVIOUS);

/// A LOOKUP.
pub(super) fn look_up(name: &[u8]) -> OpenClose<'_> {
    let (access, none) = (AccessMask::READ_ATTRIBUTES, CreateOptions::empty());
    [open(name, access, CreateDisposition::Open, none), CLOSE]
}

/// An ACCESS: the open asks for the user's greatest access, and for what that is. The context is
/// built in `buffer`.
pub(super) fn access<'a>(name: &'a [u8], buffer: &'a mut Vec<u8>) -> OpenClose<'a> {
    let contexts = CreateContexts::build(buffer, [RequestContext::MaximalAccess(None)]);
    let open = Open {
        name,
        access: AccessMask::MAXIMUM_ALLOWED,
        disposition: CreateDisposition::Open,
        options: CreateOptions::empty(),
        contexts,
    };
    [Request::Create(open), CLOSE]
}

/// A CREATE of a file that is not there.
pub(super) fn create(name: &[u8]) -> OpenClose<'_> {
    let access = AccessMask::WRITE_DATA | AccessMask::READ_ATTRIBUTES;
    let options = CreateOptions::NON_DIRECTORY_FILE;
    [open(name, access, CreateDisposition::Create, options), CLOSE]
}

/// A MKDIR.
pub(super) fn make_directory(name: &[u8]) -> OpenClose<'_> {
    let access = AccessMask::READ_ATTRIBUTES;
    [open(name, access, CreateDisposition::Create, CreateOptions::DIRECTORY_FILE), CLOSE]
}

/// A REMOVE, or a RMDIR of an empty directory.
pub(super) fn remove(name: &[u8], is_directory: bool) -> OpenClose<'_> {
    let kind = match is_directory {
        true => CreateOptions::DIRECTORY_FILE,
        false => CreateOptions::NON_DIRECTORY_FILE,
    };
    let options = CreateOptions::DELETE_ON_CLOSE | kind;
    [open(name, AccessMask::DELETE, CreateDisposition::Open, options), CLOSE]
}

/// A WRITE of data at an offset of a file that is there.
pub(super) fn fill<'a>(
    name: &'a [u8],
    (offset, data): (u64, &'a [u8]),
    through: bool,
) -> [Request<'a>; 3] {
    let data = Data { here: [data, &[]], behind: 0 };
    let write = Write { file: FileId::PREVIOUS, offset, through, data };
    [open_file(name, AccessMask::WRITE_DATA), Request::Write(write), CLOSE]
}

/// A GETATTR.
pub(super) const fn attributes(file: FileId) -> Request<'static> {
    Request::QueryInfo {
        file,
        info_type: InfoType::FILE,
        class: NETWORK_OPEN,
        max_output: NETWORK_OPEN_BYTES,
    }
}

/// Attributes that differ from one turn to the next.
pub(super) fn changed_attributes(turn: u64) -> Vec<u8> {
    let turn = turn.is_multiple_of(2);
    let attributes = if turn { FileAttributes::NORMAL } else { FileAttributes::ARCHIVE };
    let mut info = Vec::new();
    SetInfo::Basic(SetBasic { attributes: Some(attributes), ..SetBasic::default() })
        .encode(&mut info);
    info
}

/// A SETATTR.
pub(super) const fn set_attributes(file: FileId, info: &[u8]) -> Request<'_> {
    Request::SetInfo { file, class: BASIC, info }
}

/// The place in its compound of the request that moves data.
pub(super) const fn data_at(request: &Asked) -> usize {
    if matches!(request, Asked::Fill { .. }) { FILL_AT } else { 0 }
}
