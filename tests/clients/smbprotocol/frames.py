"""SMB 3.1.1 as bytes: enough of it to say anything to a server, right or wrong.

Nothing here checks what it sends. A message is a header and a body, both plain bytes; `Wire` frames
them on a connection, and `Session` logs in with NTLM and then signs or seals."""

import hashlib
import hmac
import os
import socket
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

import ntlm

(
    NEGOTIATE,
    SESSION_SETUP,
    LOGOFF,
    TREE_CONNECT,
    TREE_DISCONNECT,
    CREATE,
    CLOSE,
    FLUSH,
    READ,
    WRITE,
    LOCK,
    IOCTL,
    CANCEL,
    ECHO,
    QUERY_DIRECTORY,
    CHANGE_NOTIFY,
    QUERY_INFO,
    SET_INFO,
    OPLOCK_BREAK,
) = range(19)
RESPONSE, ASYNC, RELATED, SIGNED = 1, 2, 4, 8
NO_FILE = b"\xff" * 16

STATUSES = {
    0x00000000: "SUCCESS",
    0x00000103: "PENDING",
    0x80000005: "BUFFER_OVERFLOW",
    0x80000006: "NO_MORE_FILES",
    0xC0000002: "NOT_IMPLEMENTED",
    0xC0000003: "INVALID_INFO_CLASS",
    0xC0000004: "INFO_LENGTH_MISMATCH",
    0xC0000008: "INVALID_HANDLE",
    0xC000000D: "INVALID_PARAMETER",
    0xC000000F: "NO_SUCH_FILE",
    0xC0000010: "INVALID_DEVICE_REQUEST",
    0xC0000011: "END_OF_FILE",
    0xC0000016: "MORE_PROCESSING_REQUIRED",
    0xC0000022: "ACCESS_DENIED",
    0xC0000023: "BUFFER_TOO_SMALL",
    0xC0000033: "OBJECT_NAME_INVALID",
    0xC0000034: "OBJECT_NAME_NOT_FOUND",
    0xC0000035: "OBJECT_NAME_COLLISION",
    0xC0000039: "OBJECT_PATH_INVALID",
    0xC000003A: "OBJECT_PATH_NOT_FOUND",
    0xC000003B: "OBJECT_PATH_SYNTAX_BAD",
    0xC0000043: "SHARING_VIOLATION",
    0xC000004F: "EAS_NOT_SUPPORTED",
    0xC0000054: "FILE_LOCK_CONFLICT",
    0xC0000055: "LOCK_NOT_GRANTED",
    0xC000006D: "LOGON_FAILURE",
    0xC0000079: "INVALID_SECURITY_DESCR",
    0xC000007E: "RANGE_NOT_LOCKED",
    0xC000007F: "DISK_FULL",
    0xC000009A: "INSUFFICIENT_RESOURCES",
    0xC00000BA: "FILE_IS_A_DIRECTORY",
    0xC00000BB: "NOT_SUPPORTED",
    0xC00000C9: "NETWORK_NAME_DELETED",
    0xC00000CC: "BAD_NETWORK_NAME",
    0xC00000D0: "REQUEST_NOT_ACCEPTED",
    0xC000001F: "INVALID_VIEW_SIZE",
    0xC0000106: "NAME_TOO_LONG",
    0xC0000120: "CANCELLED",
    0xC0000128: "FILE_CLOSED",
    0xC0000161: "ILLEGAL_CHARACTER",
    0xC0000203: "USER_SESSION_DELETED",
    0xC0000206: "INVALID_BUFFER_SIZE",
    0xC05D0000: "SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP",
}


def status_name(code):
    return STATUSES.get(code, "0x%08X" % code)


class Closed(Exception):
    """The server ended the connection."""


class Reply:
    def __init__(self, data):
        self.data = data
        _, _, self.code, self.command, self.credits, self.flags, self.next, self.message_id = (
            struct.unpack_from("<HHIHHIIQ", data, 4)
        )
        self.tree_id, self.session_id = struct.unpack_from("<IQ", data, 36)
        self.status = status_name(self.code)
        self.body = data[64:]

    def buffer(self, offset_at, offset_format, length_at, length_format):
        """The part of the message whose place its body tells."""
        (offset,) = struct.unpack_from("<" + offset_format, self.body, offset_at)
        (length,) = struct.unpack_from("<" + length_format, self.body, length_at)
        return self.data[offset : offset + length]


def header(
    command, message_id, session_id=0, tree_id=0, flags=0, charge=1, credits=64, next=0, size=64, status=0
):
    return b"\xfeSMB" + struct.pack(
        "<HHIHHIIQIIQ16x",
        size,
        charge,
        status,
        command,
        credits,
        flags,
        next,
        message_id,
        0xFEFF,
        tree_id,
        session_id,
    )


def chain(messages):
    """One compound of these messages, each with the offset of its successor."""
    out = b""
    for number, message in enumerate(messages):
        if number + 1 < len(messages):
            message += bytes(-len(message) % 8)
            message = message[:20] + struct.pack("<I", len(message)) + message[24:]
        out += message
    return out


def context(kind, data):
    return struct.pack("<HHI", kind, len(data), 0) + data + bytes(-len(data) % 8)


PREAUTH = context(1, struct.pack("<HHH", 1, 32, 1) + bytes(32))
CIPHERS = context(2, struct.pack("<HH", 1, 2))
SIGNINGS = context(8, struct.pack("<HH", 1, 1))


def negotiate_body(
    dialects=(0x311,), contexts=(PREAUTH, CIPHERS, SIGNINGS), count=None, offset=None, dialect_count=None
):
    names = b"".join(struct.pack("<H", dialect) for dialect in dialects)
    place = 64 + 36 + len(names) + (-(36 + len(names)) % 8)
    body = struct.pack(
        "<HHHHI16sIHH",
        36,
        len(dialects) if dialect_count is None else dialect_count,
        1,
        0,
        0x7F,
        b"hostile-client-x",
        place if offset is None else offset,
        len(contexts) if count is None else count,
        0,
    )
    body += names
    return body + bytes(-len(body) % 8) + b"".join(contexts)


def session_setup_body(token, offset=88, length=None, flags=0):
    return (
        struct.pack("<HBBIIHHQ", 25, flags, 1, 0, 0, offset, len(token) if length is None else length, 0)
        + token
    )


def tree_connect_body(path, offset=72, length=None):
    path = path.encode("utf-16-le")
    return struct.pack("<HHHH", 9, 0, offset, len(path) if length is None else length) + path


def create_body(
    name,
    access=0x12019F,
    disposition=3,
    options=0,
    share=7,
    contexts=b"",
    name_offset=120,
    name_length=None,
    contexts_offset=None,
    contexts_length=None,
    oplock=0,
    attributes=0,
):
    name = name if isinstance(name, bytes) else name.encode("utf-16-le")
    after = name + bytes(-len(name) % 8) if contexts else name
    place = 120 + len(after) if contexts else 0
    return struct.pack(
        "<HBBIQQIIIIIHHII",
        57,
        0,
        oplock,
        2,
        0,
        0,
        access,
        attributes,
        share,
        disposition,
        options,
        name_offset,
        len(name) if name_length is None else name_length,
        place if contexts_offset is None else contexts_offset,
        len(contexts) if contexts_length is None else contexts_length,
    ) + (after + contexts or b"\0")


def close_body(file):
    return struct.pack("<HHI", 24, 0, 0) + file


def read_body(file, length, offset=0):
    return struct.pack("<HBBIQ16sIIIHHB", 49, 80, 0, length, offset, file, 0, 0, 0, 0, 0, 0)


def write_body(file, data, offset=0, data_offset=112, length=None):
    return (
        struct.pack(
            "<HHIQ16sIIHHI",
            49,
            data_offset,
            len(data) if length is None else length,
            offset,
            file,
            0,
            0,
            0,
            0,
            0,
        )
        + data
    )


def lock_body(file, elements, count=None):
    out = struct.pack("<HHI", 48, len(elements) if count is None else count, 0) + file
    return out + b"".join(struct.pack("<QQII", *element, 0) for element in elements)


def ioctl_body(file, code, data=b"", limit=65536, offset=120, length=None, flags=1):
    return (
        struct.pack(
            "<HHI16sIIIIIIII",
            57,
            0,
            code,
            file,
            offset,
            len(data) if length is None else length,
            0,
            0,
            0,
            limit,
            flags,
            0,
        )
        + data
    )


def query_directory_body(file, pattern, kind=37, limit=65536, offset=96, length=None, flags=1):
    pattern = pattern.encode("utf-16-le")
    return (
        struct.pack(
            "<HBBI16sHHI", 33, kind, flags, 0, file, offset, len(pattern) if length is None else length, limit
        )
        + pattern
    )


def query_info_body(file, kind=1, level=18, limit=65536, offset=0, length=0, additional=0):
    return struct.pack("<HBBIHHIII", 41, kind, level, limit, offset, 0, length, additional, 0) + file


def set_info_body(file, level, data, kind=1, offset=96, length=None, additional=0):
    return (
        struct.pack(
            "<HBBIHHI", 33, kind, level, len(data) if length is None else length, offset, 0, additional
        )
        + file
        + data
    )


SHORT_BODY = struct.pack("<HH", 4, 0)


class Wire:
    """A connection, with the message ids and the hash of what was said before a login."""

    def __init__(self, address, seconds=30, source=None):
        self.socket = socket.create_connection(
            address, timeout=seconds, source_address=source and (source, 0)
        )
        self.message_id = 0
        self.preauth = bytes(64)

    def close(self):
        self.socket.close()

    def send(self, payload, claim=None):
        length = len(payload) if claim is None else claim
        self.send_bytes(struct.pack(">I", length) + payload)

    def send_bytes(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def _exactly(self, count):
        out = b""
        while len(out) < count:
            try:
                part = self.socket.recv(count - len(out))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Closed
            out += part
        return out

    def receive(self):
        """The payload of the next frame."""
        (length,) = struct.unpack(">I", self._exactly(4))
        return self._exactly(length)

    def take_id(self, charge=1):
        taken = self.message_id
        self.message_id += max(charge, 1)
        return taken

    def mix(self, data):
        self.preauth = hashlib.sha512(self.preauth + data).digest()

    def negotiate(self, **options):
        message = header(NEGOTIATE, self.take_id(), charge=0) + negotiate_body(**options)
        self.send(message)
        answer = self.receive()
        self.mix(message)
        self.mix(answer)
        return Reply(answer)

    def setup(self, token, session_id=0, **options):
        """One round of SESSION_SETUP, unsigned."""
        message = header(SESSION_SETUP, self.take_id(), session_id) + session_setup_body(token, **options)
        self.send(message)
        answer = self.receive()
        reply = Reply(answer)
        self.mix(message)
        if reply.status == "MORE_PROCESSING_REQUIRED":
            self.mix(answer)
        return reply

    def token_of(self, reply):
        return reply.buffer(4, "H", 6, "H")


def derive(key, label, hash):
    data = b"\0\0\0\1" + label + b"\0\0" + hash + struct.pack(">I", 128)
    return hmac.new(key, data, hashlib.sha256).digest()[:16]


def signed(key, message):
    """The message with its signature by the key of a session."""
    (flags,) = struct.unpack_from("<I", message, 16)
    message = message[:16] + struct.pack("<I", flags | SIGNED) + message[20:48] + bytes(16) + message[64:]
    mac = CMAC(AES(key))
    mac.update(message)
    return message[:48] + mac.finalize() + message[64:]


class Session:
    """A login of its own connection unless `wire` is given, and a share unless it is empty. Requests
    are signed, or sealed if `sealed`."""

    def __init__(self, server, user=None, share="work", wire=None, sealed=False, token=None):
        self.wire = wire or Wire(server.address)
        if wire is None:
            self.wire.negotiate()
        user = user or server.user
        hash_before = self.wire.preauth
        challenge = self.wire.setup(ntlm.NEGOTIATE)
        self.id = challenge.session_id
        answer = token or ntlm.answer
        message, key = answer(self.wire.token_of(challenge), user, server.passwords.get(user, "none"))
        self.reply = self.wire.setup(message, self.id)
        self.hash = self.wire.preauth
        self.wire.preauth = hash_before
        self.sealed = False
        self.tree = 0
        self.ids = 0
        if self.reply.code == 0:
            self.signing = derive(key, b"SMBSigningKey", self.hash)
            self.sealing = derive(key, b"SMBC2SCipherKey", self.hash)
            self.opening = derive(key, b"SMBS2CCipherKey", self.hash)
            self.sealed = sealed
            if share:
                self.tree = self.ask(
                    TREE_CONNECT, tree_connect_body("\\\\%s\\%s" % (server.address[0], share))
                ).tree_id

    def message(self, command, body, signed=True, charge=1, **options):
        """A message with this session's ids, unless others are given."""
        options = {"session_id": self.id, "tree_id": self.tree, "charge": charge} | options
        if "message_id" not in options:
            options["message_id"] = self.wire.take_id(charge)
        message = header(command, **options) + body
        return self.sign(message) if signed and not self.sealed else message

    def compound(self, *messages):
        """Signs each message anew at its place in a compound."""
        whole = chain(list(messages))
        out, place = b"", 0
        while True:
            (next,) = struct.unpack_from("<I", whole, place + 20)
            part = whole[place : place + next] if next else whole[place:]
            out += part if self.sealed else self.sign(part)
            place += next
            if not next:
                return out

    def sign(self, message):
        return signed(self.signing, message)

    def seal(self, payload, session_id=None, nonce=None, size=None, flags=1):
        nonce = nonce or os.urandom(12)
        rest = (
            nonce
            + bytes(4)
            + struct.pack(
                "<IHHQ",
                len(payload) if size is None else size,
                0,
                flags,
                self.id if session_id is None else session_id,
            )
        )
        sealed = AESGCM(self.sealing).encrypt(nonce, payload, rest)
        return b"\xfdSMB" + sealed[-16:] + rest + sealed[:-16]

    def open(self, frame):
        if frame[:4] != b"\xfdSMB":
            return frame
        return AESGCM(self.opening).decrypt(frame[20:32], frame[52:] + frame[4:20], frame[20:52])

    def send(self, message):
        self.wire.send(self.seal(message) if self.sealed else message)

    def replies(self):
        """The messages of the next frame that are no interim answers."""
        while True:
            frame, out = self.open(self.wire.receive()), []
            while frame:
                reply = Reply(frame)
                if not (reply.status == "PENDING" and reply.flags & ASYNC):
                    out.append(reply)
                frame = frame[reply.next :] if reply.next else b""
            if out:
                return out

    def ask(self, command, body, **options):
        self.send(self.message(command, body, **options))
        return self.replies()[0]

    def ask_raw(self, message, count=1):
        """Sends these bytes as they are and returns `count` replies."""
        self.send(message)
        out = []
        while len(out) < count:
            out += self.replies()
        return out

    def create(self, name, **options):
        return self.ask(CREATE, create_body(name, **options))

    def file(self, name, **options):
        """The id of a file, which is made if it is missing."""
        reply = self.create(name, **options)
        assert reply.code == 0, "opening %s: %s" % (name, reply.status)
        return reply.body[64:80]

    def alive(self):
        return self.ask(ECHO, SHORT_BODY).status

    def close(self):
        self.wire.close()
