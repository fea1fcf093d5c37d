"""Names, patterns and numbers in requests on files, and access that was not granted."""

import os
import random
import struct

import frames as f
from frames import Closed, Session
from reactions import each, expect, reactions, with_file

NAMES = {
    "..": "..",
    "../": "../secret",
    "up": "..\\secret",
    "up and down": "a\\..\\..\\b",
    "in the middle": "a\\..\\b",
    "dot": ".\\a",
    "at the end": "a\\..",
    "root": "\\",
    "leading": "\\a",
    "leading two": "\\\\a\\b",
    "double": "a\\\\b",
    "trailing": "a\\",
    "nul": "a\0b",
    "only nul": "\0",
    "colon": ":",
    "stream": "a:b",
    "stream of data": "a::$DATA",
    "slash": "a/b",
    "control": "a\x01b",
    "quote": 'a"b',
    "star": "a*b",
    "question": "a?b",
    "less": "a<b",
    "bar": "a|b",
    "long": "a" * 256,
    "longest": "a" * 32000,
    "deep": "a\\" * 10000 + "a",
    "lone surrogate": b"a\x00\x00\xd8",
    "reversed surrogates": b"\x00\xdc\x00\xd8",
    "drive": "C:\\a",
    "share": "\\\\x\\work\\a",
}
REFUSED = [
    "OBJECT_NAME_INVALID",
    "OBJECT_PATH_SYNTAX_BAD",
    "OBJECT_PATH_INVALID",
    "OBJECT_PATH_NOT_FOUND",
    "OBJECT_NAME_NOT_FOUND",
    "INVALID_PARAMETER",
    "NAME_TOO_LONG",
    "NOT_SUPPORTED",
    "ILLEGAL_CHARACTER",
]


def names_of_files(server):
    """No name leads out of the share, and none is made that another client could not name."""
    session = Session(server)
    wrong = []
    for name, value in NAMES.items():
        reply = session.create(value, disposition=2)
        lenient = SMBD_NAMES if server.peer == "samba" else []
        if reply.status not in REFUSED and name not in lenient:
            wrong.append((name, reply.status))
        if reply.code == 0:
            session.ask(f.CLOSE, f.close_body(reply.body[64:80]))
    assert not wrong, wrong
    session.close()


# smbd goes up as long as it stays in the share.
SMBD_NAMES = ["in the middle", "at the end", "trailing"]


def new_names_of_files(server):
    """The same as the new names of a file, and as links."""
    session = Session(server)
    file = session.file("renamed", disposition=5, access=0x1F01FF)
    wrong = []
    for level in [10, 11]:
        for name, value in NAMES.items():
            value = value if isinstance(value, bytes) else value.encode("utf-16-le")
            data = struct.pack("<B7xQI", 0, 0, len(value)) + value
            message = session.message(f.SET_INFO, f.set_info_body(file, level, data))
            found = reactions(session, message)[0]
            if found not in REFUSED + ["ACCESS_DENIED", "OBJECT_NAME_COLLISION", "INVALID_INFO_CLASS"]:
                wrong.append((level, name, found))
        for length in [0, 1, 0xFFFF, 0xFFFFFFFF]:
            data = struct.pack("<B7xQI", 0, 0, length) + b"x\0"
            expect(
                server,
                reactions(session, session.message(f.SET_INFO, f.set_info_body(file, level, data))),
                *REFUSED,
                "INFO_LENGTH_MISMATCH",
                "INVALID_INFO_CLASS",
                "ACCESS_DENIED",
                "OBJECT_NAME_COLLISION",
                what="%d of %d" % (length, level)
            )
    assert not wrong, wrong
    session.close()


def places_of_names(server):
    """Names that lie outside of their message, or have half a character."""

    def build(**options):
        return lambda session: session.message(f.CREATE, f.create_body("name", **options))

    each(
        server,
        {
            "%r" % options: build(**options)
            for options in [
                {"name_length": 0xFFFF},
                {"name_length": 0xFFFE},
                {"name_offset": 0xFFFF},
                {"name_offset": 0},
                {"name_offset": 64},
                {"name_length": 7},
                {"name_length": 200},
                {"name_offset": 121, "name_length": 8},
            ]
        },
        *REFUSED,
        "closed",
        samba=["SUCCESS"]
    )


def create_contexts(server):
    """Counts, offsets and lengths in the contexts of CREATE that are not true."""

    def one(
        name=b"MxAc", data=b"", next=0, name_offset=16, name_length=None, data_offset=None, data_length=None
    ):
        head = struct.pack(
            "<IHHHHI",
            next,
            name_offset,
            len(name) if name_length is None else name_length,
            0,
            24 if data_offset is None else data_offset,
            len(data) if data_length is None else data_length,
        )
        return head + name + bytes(4) + data

    malformed = "INVALID_PARAMETER"
    # Each with the answer of Weir.
    lists = {
        "cut": (one()[:10], malformed),
        "next past the end": (one(next=0xFFFFFFF8), malformed),
        "next to itself": (one(next=1), malformed),
        "unaligned next": (one(next=25) + bytes(8) + one(), malformed),
        "name past the end": (one(name_offset=0xFFFF), malformed),
        "name too long": (one(name_length=0xFFFF), malformed),
        "no name": (one(name_length=0), malformed),
        "data past the end": (one(data_length=0xFFFFFFFF), malformed),
        "data far away": (one(data_offset=0xFFFF, data_length=8), malformed),
        # It grants no leases and no durable opens, and passes over requests for them.
        "lease cut": (one(b"RqLs", bytes(10)), "SUCCESS"),
        "durable cut": (one(b"DH2Q", bytes(3)), "SUCCESS"),
        "size cut": (one(b"AlSi", bytes(2)), malformed),
        "huge size": (one(b"AlSi", b"\xff" * 8), "DISK_FULL"),
        "large size": (one(b"AlSi", struct.pack("<Q", 1 << 60)), "DISK_FULL"),
        "access cut": (one(b"MxAc", bytes(3)), malformed),
        "descriptor cut": (one(b"SecD", bytes(5)), "INVALID_SECURITY_DESCR"),
        "descriptor with offsets": (one(b"SecD", b"\1\0\4\x80" + b"\xff" * 16), "INVALID_SECURITY_DESCR"),
        "attributes": (one(b"ExtA", b"\xff" * 20), "EAS_NOT_SUPPORTED"),
        "time": (one(b"TWrp", b"\xff" * 8), "OBJECT_NAME_NOT_FOUND"),
    }
    # The answers of smbd, which passes over some contexts, so that the file opens.
    known = REFUSED + [
        "closed",
        "BUFFER_TOO_SMALL",
        "ACCESS_DENIED",
        "INSUFFICIENT_RESOURCES",
        "EAS_NOT_SUPPORTED",
        "DISK_FULL",
        "INVALID_SECURITY_DESCR",
        "0x80000014",
    ]
    passed_over = [
        "durable cut",
        "lease cut",
        "size cut",
        "huge size",
        "large size",
        "access cut",
        "attributes",
        "time",
        "descriptor cut",
        "no name",
        "descriptor with offsets",
    ]
    for number, (name, (data, expected)) in enumerate(lists.items()):
        each(
            server,
            {
                name: lambda session: session.message(
                    f.CREATE, f.create_body("contexts%d" % number, contexts=data)
                )
            },
            expected,
            samba=known + (["SUCCESS"] if name in passed_over else [])
        )
        made = Session(server)
        there = made.create("contexts%d" % number, disposition=1).code == 0
        assert server.peer == "samba" or there == (expected == "SUCCESS"), name
        made.close()
    for options in [
        {"contexts_offset": 0xFFFFFFF8},
        {"contexts_offset": 8},
        {"contexts_length": 0xFFFFFFFF},
        {"contexts_length": 1000},
        {"contexts_offset": 0},
    ]:
        each(
            server,
            {
                repr(options): lambda session: session.message(
                    f.CREATE, f.create_body("contexts", contexts=one(), **options)
                )
            },
            malformed,
            samba=known + ["SUCCESS"]
        )
    many = one(next=24) * 2000 + one()
    each(
        server,
        {"many": lambda session: session.message(f.CREATE, f.create_body("contexts", contexts=many))},
        malformed,
        samba=known + ["SUCCESS"]
    )


def exploding_wildcards(server):
    """Patterns that take a simple matcher longer than the age of the world."""
    session = Session(server)
    session.file("a" * 200, disposition=5)
    starts = [
        "*a" * 100,
        "*" * 5000,
        "*a*?*a<a>*" * 20,
        "<" * 200,
        "<a" * 100 + '"',
        "?*" * 1000,
        "*." * 500,
        ">" * 250 + "*",
    ]
    patterns = [start + "no name ends like this" for start in starts]
    for pattern in patterns:
        directory = session.file("", access=1, options=1)
        expect(
            server,
            reactions(
                session, session.message(f.QUERY_DIRECTORY, f.query_directory_body(directory, pattern))
            ),
            "NO_SUCH_FILE",
            "OBJECT_NAME_INVALID",
            "INVALID_PARAMETER",
            "NAME_TOO_LONG",
            "OBJECT_NAME_NOT_FOUND",
        )
    session.ask(f.CREATE, f.create_body("a" * 200, options=0x1000, access=0x10000))
    session.close()


def numbers_of_requests(server):
    """Offsets, lengths and counts that are larger than what there is, or than there can be."""
    session = Session(server)
    file = session.file("numbers", disposition=5, access=0x1F01FF)
    directory = session.file("", access=0x81, options=1)
    far = (1 << 64) - 1
    messages = [
        ("read far", f.READ, f.read_body(file, 100, offset=far), 1),
        ("read huge", f.READ, f.read_body(file, 0xFFFFFFFF), 1),
        ("read at the end", f.READ, f.read_body(file, 100, offset=(1 << 63) - 50), 1),
        ("write far", f.WRITE, f.write_body(file, b"x", offset=far), 1),
        ("write outside", f.WRITE, f.write_body(file, b"x", data_offset=0xFFFF), 1),
        ("write more", f.WRITE, f.write_body(file, b"x", length=60000), 1),
        ("write all", f.WRITE, f.write_body(file, b"x", length=0xFFFFFFFF), 1),
        ("write the header", f.WRITE, f.write_body(file, b"x", data_offset=0, length=64), 1),
        ("no locks", f.LOCK, f.lock_body(file, []), 1),
        ("locks that are not there", f.LOCK, f.lock_body(file, [(0, 1, 2)], count=0xFFFF), 1),
        ("lock past all", f.LOCK, f.lock_body(file, [(far, far, 2 | 16)]), 1),
        ("lock of no kind", f.LOCK, f.lock_body(file, [(0, 1, 0xFF)]), 1),
        ("ioctl outside", f.IOCTL, f.ioctl_body(file, 0x980C8, bytes(16), offset=0xFFFFFFF0), 1),
        ("ioctl more", f.IOCTL, f.ioctl_body(file, 0x980C8, bytes(16), length=0xFFFF), 1),
        ("zero backwards", f.IOCTL, f.ioctl_body(file, 0x980C8, struct.pack("<qq", 100, 50)), 1),
        ("zero negative", f.IOCTL, f.ioctl_body(file, 0x980C8, struct.pack("<qq", -100, -50)), 1),
        ("ranges past all", f.IOCTL, f.ioctl_body(file, 0x940CF, struct.pack("<qq", -1, 100)), 1),
        ("ioctl unknown", f.IOCTL, f.ioctl_body(file, 0xFFFFFFFF), 1),
        ("ioctl not fs", f.IOCTL, f.ioctl_body(file, 0x980C8, bytes(16), flags=0), 1),
        ("pattern outside", f.QUERY_DIRECTORY, f.query_directory_body(directory, "*", offset=0xFFFF), 1),
        ("pattern longer", f.QUERY_DIRECTORY, f.query_directory_body(directory, "*", length=0xFFFF), 1),
        ("no room for entries", f.QUERY_DIRECTORY, f.query_directory_body(directory, "*", limit=0), 1),
        ("class", f.QUERY_DIRECTORY, f.query_directory_body(directory, "*", kind=0xFF), 1),
        (
            "info outside",
            f.QUERY_INFO,
            f.query_info_body(file, kind=1, level=15, offset=0xFFFF, length=0xFFFF),
            1,
        ),
        ("no room", f.QUERY_INFO, f.query_info_body(file, limit=0), 1),
        ("kind", f.QUERY_INFO, f.query_info_body(file, kind=9), 1),
        ("set outside", f.SET_INFO, f.set_info_body(file, 4, bytes(40), offset=0xFFFF), 1),
        ("set more", f.SET_INFO, f.set_info_body(file, 4, bytes(40), length=0xFFFF), 1),
        ("set less", f.SET_INFO, f.set_info_body(file, 4, bytes(3)), 1),
        ("end negative", f.SET_INFO, f.set_info_body(file, 20, b"\xff" * 8), 1),
        ("allocate all", f.SET_INFO, f.set_info_body(file, 19, b"\xff" * 7 + b"\x7f"), 1),
        (
            "descriptor",
            f.SET_INFO,
            f.set_info_body(file, 0, b"\1\0\4\x80" + b"\xff" * 16, kind=3, additional=4),
            1,
        ),
        (
            "descriptor entries",
            f.SET_INFO,
            f.set_info_body(
                file,
                0,
                b"\1\0\4\x80" + bytes(12) + struct.pack("<IBBHHH", 20, 2, 0, 0xFFFF, 0xFFFF, 0) + bytes(20),
                kind=3,
                additional=4,
            ),
            1,
        ),
        ("share outside", f.TREE_CONNECT, f.tree_connect_body("\\\\x\\work", offset=0xFFFF), 1),
        ("share longer", f.TREE_CONNECT, f.tree_connect_body("\\\\x\\work", length=0xFFFE), 1),
        ("share of 60 KiB", f.TREE_CONNECT, f.tree_connect_body("\\\\x\\" + "w" * 30000), 1),
        ("share up", f.TREE_CONNECT, f.tree_connect_body("\\\\x\\..\\work"), 1),
        ("share of half a character", f.TREE_CONNECT, f.tree_connect_body("\\\\x\\work", length=15), 1),
    ]
    wrong = []
    for name, command, body, charge in messages:
        found = reactions(session, session.message(command, body, charge=charge))[0]
        if found == "SUCCESS" and not (server.peer == "samba" and name in SMBD_NUMBERS):
            wrong.append(name)
        if found == "closed":
            session = Session(server)
            file = session.file("numbers", disposition=3, access=0x1F01FF)
            directory = session.file("", access=0x81, options=1)
    assert not wrong, wrong
    session.close()


# smbd says that it allocates what no disk has, and finds nothing in a range before the file.
SMBD_NUMBERS = ["allocate all", "ranges past all"]


def copies_beyond_access(server):
    """Copies of chunks by files that may not be read or written, with numbers that are too large."""
    session = Session(server)
    source = session.file("copied from", disposition=5, access=0x1F01FF)
    target = session.file("copied", disposition=5, access=0x1F01FF)
    assert session.ask(f.WRITE, f.write_body(source, bytes(range(256)) * 16)).code == 0
    writable = session.file("copied from", access=0x2 | 0x100)
    readable = session.file("copied", access=0x81)

    def key_of(file):
        reply = session.ask(f.IOCTL, f.ioctl_body(file, 0x140078))
        assert reply.code == 0, reply.status
        return reply.buffer(32, "I", 36, "I")[:24]

    def copy(key, to, chunks, count=None, code=0x1440F2):
        data = (
            key
            + struct.pack("<II", len(chunks) if count is None else count, 0)
            + b"".join(struct.pack("<QQII", *chunk, 0) for chunk in chunks)
        )
        return reactions(session, session.message(f.IOCTL, f.ioctl_body(to, code, data)))

    key, whole = key_of(source), [(0, 0, 4096)]
    expect(server, copy(key, target, whole), "SUCCESS")
    expect(server, copy(key_of(writable), target, whole), "ACCESS_DENIED")
    expect(server, copy(key, readable, whole), "ACCESS_DENIED")
    expect(server, copy(key, readable, whole, code=0x1480F2), "ACCESS_DENIED")
    for other in [bytes(24), b"\xff" * 24, key[:8] + os.urandom(16)]:
        # Whether the rest of a key means anything is the server's affair.
        expect(server, copy(other, target, whole), "OBJECT_NAME_NOT_FOUND", "FILE_CLOSED", samba=["SUCCESS"])
    thief = Session(server, user=server.other)
    stolen = thief.file("thief", disposition=5, access=0x1F01FF)
    data = key + struct.pack("<II", 1, 0) + struct.pack("<QQII", 0, 0, 4096, 0)
    expect(
        server,
        reactions(thief, thief.message(f.IOCTL, f.ioctl_body(stolen, 0x1440F2, data))),
        "OBJECT_NAME_NOT_FOUND",
        "FILE_CLOSED",
        samba=["ACCESS_DENIED"],
    )
    thief.close()
    for chunks, count in [
        (whole, 2),
        (whole, 0xFFFFFFFF),
        (whole * 300, None),
        ([(0, 0, 0xFFFFFFFF)], None),
        ([(0, 0, 0)], None),
        ([(0, 0, 1 << 20)] * 20, None),
    ]:
        expect(server, copy(key, target, chunks, count), "INVALID_PARAMETER")
    expect(
        server,
        copy(key, target, [((1 << 64) - 10, 0, 100)]),
        "INVALID_PARAMETER",
        "INVALID_VIEW_SIZE",
        "END_OF_FILE",
    )
    session.close()


def access_beyond_what_was_granted(server):
    """What an open was not granted it does not get by another message."""
    session = Session(server)
    session.file("granted", disposition=5)
    reader = session.file("granted", access=0x81)
    nobody = session.file("granted", access=0x80)
    for number, (file, command, body) in enumerate(
        [
            (reader, f.WRITE, f.write_body(reader, b"x")),
            (nobody, f.WRITE, f.write_body(nobody, b"x")),
            (nobody, f.READ, f.read_body(nobody, 1)),
            (reader, f.SET_INFO, f.set_info_body(reader, 20, struct.pack("<Q", 5))),
            (reader, f.SET_INFO, f.set_info_body(reader, 13, b"\1")),
            (reader, f.SET_INFO, f.set_info_body(reader, 4, bytes(40))),
            (reader, f.SET_INFO, f.set_info_body(reader, 10, struct.pack("<B7xQI", 0, 0, 2) + b"x\0")),
            (reader, f.QUERY_INFO, f.query_info_body(reader, kind=3, level=0, additional=4)),
            (reader, f.SET_INFO, f.set_info_body(reader, 0, b"\1\0\4\x80" + bytes(16), kind=3, additional=4)),
            (reader, f.IOCTL, f.ioctl_body(reader, 0x980C8, bytes(16))),
            (reader, f.IOCTL, f.ioctl_body(reader, 0x900C4, b"\1")),
            (reader, f.FLUSH, struct.pack("<HHI", 24, 0, 0) + reader),
        ]
    ):
        expect(server, reactions(session, session.message(command, body)), "ACCESS_DENIED", what=str(number))
    session.close()


def random_changes(server):
    """Whole messages with bytes changed, signed anew so that what is behind the signature sees them."""
    dice = random.Random(7)
    session, file, answered = None, None, 0
    for number in range(600):
        if session is None:
            session = Session(server)
            # A new one, because a change can have made the last one read-only.
            file = session.file("changed%d" % number, disposition=5, access=0x1F01FF)
        bodies = list(with_file(file).items()) + [
            (f.CREATE, f.create_body("changed")),
            (f.TREE_CONNECT, f.tree_connect_body("\\\\x\\work")),
        ]
        command, body = dice.choice(bodies)
        message = bytearray(session.message(command, body + bytes(dice.choice([0, 0, 8]))))
        for _ in range(dice.choice([1, 1, 2, 4])):
            place = dice.choice(
                [dice.randrange(64, len(message)), dice.randrange(64, min(len(message), 100)), 6, 14, 20]
            )
            message[place] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
        length = dice.choice([len(message), len(message), len(message) - 1])
        try:
            session.send(session.sign(bytes(message[:length])))
            assert echo(session) == "SUCCESS", message.hex()
            answered += 1
        except Closed:
            session.close()
            session = None
    # Most changes are no reason to end a connection.
    assert answered > 300, answered


def echo(session):
    """The status of an ECHO, whatever is answered before it. A lock that has to wait is answered later, or
    never."""
    message = session.message(f.ECHO, f.SHORT_BODY)
    session.send(message)
    number = f.Reply(message).message_id
    while True:
        for reply in session.replies():
            if reply.message_id == number:
                return reply.status


TESTS = [
    names_of_files,
    new_names_of_files,
    places_of_names,
    create_contexts,
    exploding_wildcards,
    numbers_of_requests,
    copies_beyond_access,
    access_beyond_what_was_granted,
    random_changes,
]
