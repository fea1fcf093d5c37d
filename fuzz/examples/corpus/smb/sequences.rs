//! Scripts of requests over the volume of the target. Opens are numbered from one in each session.

use super::pipes::listing;
use crate::save;
use std::io::Result;
use weir_fuzz::smb::server::{ELSEWHERE, END, FAILURE, OTHER, PIPE, RELATED, Servers};
use weir_fuzz::smb::{append_step, utf16};
use weir_smb::fscc::client::{encode_copy, encode_range, encode_zero_data};
use weir_smb::fscc::{Chunk, Disposition, Range, SetBasic, SetInfo, Target};
use weir_smb::wire::{
    AccessMask, Channel, CloseFlags, CloseRequest, Command, ControlCode, CreateContexts,
    CreateDisposition, CreateOptions, CreateRequest, FileAttributes, FileId, FlushRequest,
    ImpersonationLevel, InfoType, IoctlFlags, IoctlRequest, LockFlags, LockRange, LockRequest,
    OplockLevel, Payload, QueryDirectoryFlags, QueryDirectoryRequest, QueryInfoFlags,
    QueryInfoRequest, ReadFlags, ReadRequest, RequestContext, SecurityInformation, SetInfoRequest,
    ShareAccess, WriteFlags, WriteRequest,
};

/// The open with this number of the first session.
const fn open(number: u64) -> FileId {
    FileId { persistent: 1, volatile: number }
}

/// The open with this number of the second session.
const fn others(number: u64) -> FileId {
    FileId { persistent: 2, volatile: number }
}

fn payload(bytes: &[u8]) -> Payload<'_> {
    Payload { bytes, at: 0 }
}

/// A script, with the volume that it runs on.
struct Script(Vec<u8>);

impl Script {
    fn step(mut self, selector: u8, encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        // Encoders count offsets from a header in front of the body.
        let mut message = vec![0; weir_smb::wire::HEADER_BYTES];
        encode(&mut message);
        append_step(&mut self.0, selector, &message[weir_smb::wire::HEADER_BYTES..]);
        self
    }

    fn bits(self, selector: u8, bytes: &[u8]) -> Self {
        self.step(selector, |out| out.extend_from_slice(bytes))
    }

    fn create_with(
        self,
        bits: u8,
        name: &str,
        access: AccessMask,
        change: impl FnOnce(&mut CreateRequest<'_>),
    ) -> Self {
        let name = utf16(name);
        let mut buffer = Vec::new();
        let contexts = [RequestContext::MaximalAccess(None), RequestContext::DiskId];
        let mut request = CreateRequest {
            oplock: OplockLevel::NONE,
            impersonation: ImpersonationLevel::IMPERSONATION,
            desired_access: access,
            attributes: FileAttributes::empty(),
            share_access: ShareAccess::all(),
            disposition: CreateDisposition::OpenIf,
            options: CreateOptions::empty(),
            name: &name,
            contexts: CreateContexts::build(&mut buffer, contexts),
        };
        change(&mut request);
        self.step(Command::Create as u8 | bits, |out| request.encode(out))
    }

    fn create(self, bits: u8, name: &str, access: AccessMask) -> Self {
        self.create_with(bits, name, access, |_| {})
    }

    fn close(self, bits: u8, file: FileId) -> Self {
        let request = CloseRequest { flags: CloseFlags::all(), file };
        self.step(Command::Close as u8 | bits, |out| request.encode(out))
    }

    fn read(self, bits: u8, file: FileId, offset: u64) -> Self {
        let request = ReadRequest {
            flags: ReadFlags::empty(),
            length: 100,
            offset,
            file,
            minimum_count: 0,
            channel: Channel::NONE,
            remaining_bytes: 0,
        };
        self.step(Command::Read as u8 | bits, |out| request.encode(out))
    }

    fn write(self, bits: u8, file: FileId, offset: u64, data: &[u8]) -> Self {
        let (flags, data) = (WriteFlags::empty(), payload(data));
        let (channel, remaining_bytes) = (Channel::NONE, 0);
        let request = WriteRequest { offset, file, channel, remaining_bytes, flags, data };
        self.step(Command::Write as u8 | bits, |out| request.encode(out))
    }

    fn lock(self, bits: u8, file: FileId, ranges: &[LockRange]) -> Self {
        let encode = |out: &mut Vec<u8>| LockRequest::encode(0, file, ranges, out);
        self.step(Command::Lock as u8 | bits, encode)
    }

    fn ioctl(self, bits: u8, code: ControlCode, file: FileId, input: &[u8]) -> Self {
        let request = IoctlRequest {
            code,
            file,
            input: payload(input),
            max_input: 0,
            output_count: 0,
            max_output: 1000,
            flags: IoctlFlags::IS_FSCTL,
        };
        self.step(Command::Ioctl as u8 | bits, |out| request.encode(out))
    }

    fn list(self, file: FileId, class: u8, pattern: &str) -> Self {
        let pattern = utf16(pattern);
        let request = QueryDirectoryRequest {
            class,
            flags: QueryDirectoryFlags::empty(),
            file_index: 0,
            file,
            pattern: &pattern,
            max_output: 4096,
        };
        self.step(Command::QueryDirectory as u8, |out| request.encode(out))
    }

    fn ask(self, info_type: InfoType, class: u8, file: FileId) -> Self {
        let request = QueryInfoRequest {
            info_type,
            class,
            max_output: 1000,
            input: payload(&[]),
            security: SecurityInformation::from_bits_retain(7),
            flags: QueryInfoFlags::empty(),
            file,
        };
        self.step(Command::QueryInfo as u8, |out| request.encode(out))
    }

    fn set(self, file: FileId, info: &SetInfo<'_>) -> Self {
        let mut bytes = Vec::new();
        info.encode(&mut bytes);
        self.set_bytes(InfoType::FILE, info.class(), file, &bytes)
    }

    fn set_bytes(self, info_type: InfoType, class: u8, file: FileId, bytes: &[u8]) -> Self {
        let security = SecurityInformation::from_bits_retain(4);
        let request = SetInfoRequest { info_type, class, info: payload(bytes), security, file };
        self.step(Command::SetInfo as u8, |out| request.encode(out))
    }

    /// Runs the script once, and saves it.
    fn save(self, name: &str) -> Result<()> {
        let mut servers = Servers::default();
        for (selector, bytes) in weir_fuzz::smb::steps(&self.0) {
            servers.step(selector, bytes);
        }
        servers.close();
        save("smb_sequence", name, &self.0)
    }
}

const DATA: AccessMask = AccessMask::READ_DATA.union(AccessMask::WRITE_DATA);
const ALL: AccessMask = AccessMask::GENERIC_ALL;

fn script() -> Script {
    Script(Vec::new())
}

pub(super) fn sequences() -> Result<()> {
    files()?;
    locks()?;
    names()?;
    information()?;
    controls()?;
    script()
        .create(PIPE, "srvsvc", DATA)
        .write(PIPE, open(1), 0, &listing())
        .read(PIPE, open(1), 0)
        .ioctl(PIPE | RELATED, ControlCode::PIPE_PEEK, FileId::PREVIOUS, &[])
        .ioctl(PIPE, ControlCode::PIPE_TRANSCEIVE, open(1), &listing())
        .close(PIPE, open(1))
        .save("pipes")
}

fn files() -> Result<()> {
    script()
        .create(0, "new", DATA)
        .write(0, open(1), 4096, b"data")
        .step(Command::Flush as u8, |out| FlushRequest { file: open(1) }.encode(out))
        .read(0, open(1), 4090)
        .close(0, open(1))
        .create(0, "d\\G", AccessMask::MAXIMUM_ALLOWED)
        .read(RELATED, FileId::PREVIOUS, 0)
        .close(RELATED, FileId::PREVIOUS)
        .save("files")?;
    let alone = |request: &mut CreateRequest<'_>| request.share_access = ShareAccess::empty();
    script()
        .create_with(0, "f", DATA, alone)
        .create(OTHER, "F", DATA)
        .close(0, open(1))
        .create(OTHER, "F", AccessMask::READ_DATA)
        .create_with(0, "f", DATA, |request| request.disposition = CreateDisposition::Supersede)
        .create_with(OTHER, "x", DATA, |request| {
            request.options = CreateOptions::DELETE_ON_CLOSE | CreateOptions::NON_DIRECTORY_FILE;
            request.desired_access |= AccessMask::DELETE;
        })
        .bits(END | OTHER, &[])
        .save("sharing")
}

fn locks() -> Result<()> {
    let range = |offset, length, flags| LockRange { offset, length, flags };
    let at_once = LockFlags::EXCLUSIVE | LockFlags::FAIL_IMMEDIATELY;
    script()
        .create(0, "f", DATA)
        .create(OTHER, "f", AccessMask::READ_DATA)
        .lock(0, open(1), &[range(0, 10, at_once), range(20, 10, at_once)])
        .lock(OTHER, others(1), &[range(5, 1, LockFlags::SHARED)])
        .read(OTHER, others(1), 0)
        .write(0, open(1), 0, b"mine")
        .lock(0, open(1), &[range(0, 10, LockFlags::UNLOCK)])
        .lock(OTHER, others(1), &[range(25, 0, at_once), range(5, 1, LockFlags::UNLOCK)])
        .lock(OTHER, others(1), &[range(20, 1, LockFlags::SHARED)])
        .close(OTHER, others(1))
        .save("locks")
}

fn names() -> Result<()> {
    let name = utf16("d\\moved");
    let target = Target { replace: false, posix: false, name: &name };
    script()
        .create(0, "f", ALL)
        .set(open(1), &SetInfo::Rename(target))
        .set(open(1), &SetInfo::Link(Target { replace: true, ..target }))
        .set(open(1), &SetInfo::Disposition(Disposition::DELETE))
        .create(OTHER, "d\\moved", AccessMask::READ_DATA)
        .set(open(1), &SetInfo::Disposition(Disposition::empty()))
        .create_with(0, "d\\sub", ALL, |request| request.options = CreateOptions::DIRECTORY_FILE)
        .set(open(2), &SetInfo::Disposition(Disposition::all()))
        .bits(ELSEWHERE, &[2, 1, 4])
        .close(0, open(2))
        .bits(ELSEWHERE, &[0, 0, 0])
        .save("names")?;
    script()
        .create_with(0, "", AccessMask::READ_DATA, |request| {
            request.options = CreateOptions::DIRECTORY_FILE;
        })
        .list(open(1), 37, "*")
        .list(open(1), 37, "*")
        .create(OTHER, "", AccessMask::READ_DATA)
        .list(open(1), 60, "<.txt")
        .create(0, "d", AccessMask::READ_DATA)
        .list(open(2), 12, "g")
        .bits(FAILURE, &[0, 0])
        .list(open(2), 3, "*")
        .create(0, "l", AccessMask::READ_DATA)
        .create_with(0, "l", ALL, |request| {
            request.options = CreateOptions::from_bits_retain(0x0020_0000);
        })
        .save("directories")
}

fn information() -> Result<()> {
    let mut queries = script().create(0, "f", ALL);
    for class in [4, 5, 6, 7, 8, 14, 16, 17, 18, 22, 28, 34, 35, 48, 59] {
        queries = queries.ask(InfoType::FILE, class, open(1));
    }
    for class in 1..12 {
        queries = queries.ask(InfoType::FILESYSTEM, class, open(1));
    }
    queries.ask(InfoType::SECURITY, 0, open(1)).save("queries")?;
    let everyone = [1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let list = [&[2, 0, 28, 0, 1, 0, 0, 0, 0, 0, 20, 0, 0x89, 0, 0x12, 0][..], &everyone].concat();
    let head = [1, 0, 4, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0];
    script()
        .create(0, "f", ALL)
        .set(open(1), &SetInfo::EndOfFile(3))
        .set(open(1), &SetInfo::Allocation(1 << 16))
        .set(open(1), &SetInfo::Basic(SetBasic::default()))
        .set(open(1), &SetInfo::Position(5))
        .set(open(1), &SetInfo::Mode(2))
        .set_bytes(InfoType::SECURITY, 0, open(1), &[&head[..], &list].concat())
        .bits(FAILURE, &[1, 1])
        .set(open(1), &SetInfo::EndOfFile(1 << 40))
        .save("changes")
}

fn controls() -> Result<()> {
    let range = Range { offset: 1, length: 4 };
    let (mut zero, mut ranges, mut copy) = (Vec::new(), Vec::new(), Vec::new());
    encode_zero_data(range, &mut zero);
    encode_range(Range { offset: 0, length: 100 }, &mut ranges);
    let mut key = [0; 24];
    key[..8].copy_from_slice(&1_u64.to_le_bytes());
    key[8..16].copy_from_slice(&1_u64.to_le_bytes());
    let chunk = Chunk { source: 0, target: 4, length: 5 };
    encode_copy(&key, &[chunk, chunk, Chunk { source: 7, ..chunk }], &mut copy);
    script()
        .create(0, "f", ALL)
        .create(0, "copy", ALL)
        .ioctl(0, ControlCode::SET_SPARSE, open(1), &[1])
        .ioctl(0, ControlCode::SET_ZERO_DATA, open(1), &zero)
        .ioctl(0, ControlCode::QUERY_ALLOCATED_RANGES, open(1), &ranges)
        .ioctl(0, ControlCode::SRV_REQUEST_RESUME_KEY, open(1), &[])
        .ioctl(0, ControlCode::SRV_COPYCHUNK, open(2), &copy)
        .ioctl(0, ControlCode::CREATE_OR_GET_OBJECT_ID, open(1), &[])
        .ioctl(0, ControlCode::GET_REPARSE_POINT, open(1), &[])
        .save("controls")
}
