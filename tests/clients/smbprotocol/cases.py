#!/usr/bin/env python3
"""Requests of an honest client, one by one, by smbprotocol: a codec and a login by SPNEGO that are
neither ours nor Samba's."""

import struct
import sys
import time
import uuid

import frames
import suite
from smbprotocol.connection import Ciphers, Connection, Dialects, SigningAlgorithms
from smbprotocol.create_contexts import (
    CreateContextName,
    SMB2CreateContextRequest,
    SMB2CreateQueryMaximalAccessRequest,
    SMB2CreateRequestLeaseV2,
)
from smbprotocol.exceptions import LogonFailure, SMBResponseException
from smbprotocol.file_info import FileInformationClass as Level
from smbprotocol.file_info import InfoType
from smbprotocol.ioctl import IOCTLFlags, SMB2IOCTLRequest, SMB2IOCTLResponse
from smbprotocol.open import (
    CreateAction,
    Open,
    SMB2LockElement,
    SMB2QueryInfoRequest,
    SMB2QueryInfoResponse,
    SMB2SetInfoRequest,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

# As much as the owner of a new file has by its mode: neither to execute it nor to give it away.
ALL, READ, DELETE, ATTRIBUTES = 0x17019F, 0x120089, 0x10000, 0x80
SUPERSEDE, OPEN, CREATE, OPEN_IF, OVERWRITE, OVERWRITE_IF = range(6)
DIRECTORY, FILE, DELETE_ON_CLOSE = 1, 0x40, 0x1000
SHARED, EXCLUSIVE, UNLOCK, AT_ONCE = 1, 2, 4, 16
MEBIBYTE = 1 << 20

ACCESS_DENIED, SHARING_VIOLATION, COLLISION, NOT_FOUND = 0xC0000022, 0xC0000043, 0xC0000035, 0xC0000034
LOCK_NOT_GRANTED, LOCK_CONFLICT, RANGE_NOT_LOCKED, CANCELLED = 0xC0000055, 0xC0000054, 0xC000007E, 0xC0000120
DELETE_PENDING, IS_A_DIRECTORY, NOT_A_DIRECTORY, NOT_EMPTY = 0xC0000056, 0xC00000BA, 0xC0000103, 0xC0000101
END_OF_FILE, NO_MORE_FILES, NO_SUCH_FILE, LOGON_FAILURE, USER_SESSION_DELETED = (
    0xC0000011,
    0x80000006,
    0xC000000F,
    0xC000006D,
    0xC0000203,
)
OBJECT_PATH_NOT_FOUND = 0xC000003A


class Client:
    """A connection, a login, and a share."""

    def __init__(self, server, user=None, share="work", sealed=False, ciphers=None, signings=None):
        user = user or server.user
        self.connection = Connection(uuid.uuid4(), server.address[0], server.address[1])
        self.connection.connect(
            Dialects.SMB_3_1_1,
            timeout=30,
            preferred_encryption_algos=ciphers,
            preferred_signing_algos=signings,
        )
        self.session = Session(
            self.connection, user, server.passwords[user], require_encryption=sealed, auth_protocol="ntlm"
        )
        self.session.connect()
        self.tree = TreeConnect(self.session, r"\\%s\%s" % (server.address[0], share))
        self.tree.connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.disconnect()

    def open(
        self,
        name,
        access=ALL,
        disposition=OPEN_IF,
        options=FILE,
        share=7,
        contexts=None,
        oplock=0,
        attributes=0,
    ):
        """The open, with what its contexts were answered as `contexts`."""
        file = Open(self.tree, name)
        file.contexts = (
            file.create(2, access, attributes, share, disposition, options, contexts, oplock) or []
        )
        return file

    def directory(self, name="", disposition=OPEN_IF, **options):
        return self.open(name, disposition=disposition, options=DIRECTORY, **options)

    def ask(self, message, reply=None):
        request = self.connection.send(message, self.session.session_id, self.tree.tree_connect_id)
        answer = self.connection.receive(request, timeout=30)
        if reply:
            reply.unpack(answer["data"].get_value())
        return reply

    def query(self, file, level, kind=InfoType.SMB2_0_INFO_FILE, additional=0, limit=65536):
        request = SMB2QueryInfoRequest()
        request["info_type"] = kind
        request["file_info_class"] = level
        request["output_buffer_length"] = limit
        request["additional_information"] = additional
        request["file_id"] = file.file_id
        return self.ask(request, SMB2QueryInfoResponse())["buffer"].get_value()

    def set(self, file, level, data, kind=InfoType.SMB2_0_INFO_FILE):
        request = SMB2SetInfoRequest()
        request["info_type"] = kind
        request["file_info_class"] = level
        request["file_id"] = file.file_id
        request["buffer"] = data
        self.ask(request)

    def control(self, file, code, data=b"", limit=65536):
        request = SMB2IOCTLRequest()
        request["ctl_code"] = code
        request["file_id"] = file.file_id
        request["max_output_response"] = limit
        request["flags"] = IOCTLFlags.SMB2_0_IOCTL_IS_FSCTL
        request["buffer"] = data
        return self.ask(request, SMB2IOCTLResponse())["buffer"].get_value()

    def rename(self, file, name, replace=False):
        name = name.encode("utf-16-le")
        self.set(file, Level.FILE_RENAME_INFORMATION, struct.pack("<B7xQI", replace, 0, len(name)) + name)


def fails(status, action, *arguments, **options):
    try:
        action(*arguments, **options)
    except SMBResponseException as error:
        assert error.status == status, "%#x instead of %#x" % (error.status, status)
    else:
        raise AssertionError("success instead of %#x" % status)


def same(found, expected):
    assert found == expected, "%r instead of %r" % (found, expected)


def locks(*elements):
    out = []
    for offset, length, flags in elements:
        element = SMB2LockElement()
        element["offset"], element["length"], element["flags"] = offset, length, flags
        out.append(element)
    return out


# Connections and logins


def negotiates(server):
    with Client(server) as client:
        connection = client.connection
        same(connection.dialect, Dialects.SMB_3_1_1)
        assert connection.supports_encryption and connection.supports_multi_credit
        assert connection.max_read_size >= MEBIBYTE and connection.max_write_size >= MEBIBYTE
        assert client.session.signing_required
        connection.echo(client.session.session_id)


def signs_and_seals_by_every_algorithm(server):
    for cipher in [Ciphers.AES_128_GCM, Ciphers.AES_128_CCM, Ciphers.AES_256_GCM, Ciphers.AES_256_CCM]:
        with Client(server, sealed=True, ciphers=[cipher]) as client:
            same(client.connection.cipher_id, cipher)
            round_trip(client)
    for signing in [SigningAlgorithms.AES_GMAC, SigningAlgorithms.AES_CMAC, SigningAlgorithms.HMAC_SHA256]:
        with Client(server, signings=[signing]) as client:
            same(client.connection.signing_algorithm_id, signing)
            round_trip(client)
    with Client(server, share="sealed") as client:
        assert client.tree.encrypt_data
        round_trip(client)


def round_trip(client):
    file = client.open("round", disposition=OVERWRITE_IF)
    file.write(b"there and back" * 1000)
    same(file.read(0, 14000), b"there and back" * 1000)
    file.close()


def refuses_wrong_logins(server):
    for user, password in [
        (server.user, "wrong"),
        (server.user, ""),
        ("nobody-here", "x"),
        (server.user, server.passwords[server.other]),
    ]:
        connection = Connection(uuid.uuid4(), *server.address)
        connection.connect(Dialects.SMB_3_1_1)
        try:
            Session(connection, user, password, require_encryption=False, auth_protocol="ntlm").connect()
        except LogonFailure:
            pass
        else:
            raise AssertionError("%s logs in by %r" % (user, password))
        finally:
            connection.disconnect()


def logs_off(server):
    with Client(server) as client:
        file = client.open("left open", options=FILE | DELETE_ON_CLOSE)
        client.session.disconnect(close=False)
        fails(USER_SESSION_DELETED, file.read, 0, 1)
    with Client(server) as client:
        # The session took its opens with it.
        fails(NOT_FOUND, client.open, "left open", disposition=OPEN)


def holds_many_sessions(server):
    clients = [Client(server, user=user) for user in [server.user, server.other] * 20]
    for number, client in enumerate(clients):
        client.file = client.open("session%d" % number, disposition=OVERWRITE_IF)
        client.file.write(b"%d" % number)
    for number, client in enumerate(clients):
        same(client.file.read(0, 10), b"%d" % number)
        client.connection.disconnect()


# Opens


def creates_by_every_disposition(server):
    with Client(server) as client:
        for name in ["new", "there"]:
            for disposition, action, left in [
                (SUPERSEDE, CreateAction.FILE_SUPERSEDED, 0),
                (OPEN, CreateAction.FILE_OPENED, 5),
                (OPEN_IF, CreateAction.FILE_OPENED, 5),
                (OVERWRITE, CreateAction.FILE_OVERWRITTEN, 0),
                (OVERWRITE_IF, CreateAction.FILE_OVERWRITTEN, 0),
                (CREATE, None, 5),
            ]:
                if name == "there":
                    file = client.open(name, disposition=OVERWRITE_IF)
                    file.write(b"there")
                    file.close()
                if name == "there" and action is None:
                    fails(COLLISION, client.open, name, disposition=disposition)
                    continue
                if name == "new" and disposition in [OPEN, OVERWRITE]:
                    fails(NOT_FOUND, client.open, name, disposition=disposition)
                    continue
                file = client.open(name, disposition=disposition, options=FILE | DELETE_ON_CLOSE)
                same(file.create_action, action if name == "there" else CreateAction.FILE_CREATED)
                same(file.end_of_file, left if name == "there" else 0)
                file.close()


def tells_files_from_directories(server):
    with Client(server) as client:
        client.directory("d").close()
        client.open("f").close()
        fails(IS_A_DIRECTORY, client.open, "d", options=FILE, disposition=OPEN)
        fails(NOT_A_DIRECTORY, client.directory, "f", disposition=OPEN)
        fails(OBJECT_PATH_NOT_FOUND, client.open, r"absent\f")
        client.open(r"d\f").close()
        directory = client.directory("d", disposition=OPEN)
        fails(NOT_EMPTY, client.set, directory, Level.FILE_DISPOSITION_INFORMATION, b"\1")
        directory.close()


def shares_as_it_was_told(server):
    """Every pair of what one open wants and another one admits."""
    with Client(server) as first, Client(server) as second:
        first.open("modes", disposition=OVERWRITE_IF).close()
        for bit, access in [(1, 1), (2, 2), (4, DELETE)]:
            for share in range(8):
                holder = first.open("modes", access=ATTRIBUTES | 1, share=share, disposition=OPEN)
                # What may be shared is what the second one wants and the first one admits, and the other way.
                if share & bit:
                    second.open("modes", access=access, share=7, disposition=OPEN).close()
                else:
                    fails(SHARING_VIOLATION, second.open, "modes", access=access, share=7, disposition=OPEN)
                # Attributes are free to see.
                second.open("modes", access=ATTRIBUTES, share=0, disposition=OPEN).close()
                holder.close()
                holder = first.open("modes", access=access, share=7, disposition=OPEN)
                if share & bit:
                    second.open("modes", access=1, share=share, disposition=OPEN).close()
                else:
                    fails(SHARING_VIOLATION, second.open, "modes", access=1, share=share, disposition=OPEN)
                holder.close()


def grants_no_more_than_was_asked(server):
    with Client(server) as client:
        client.open("granted", disposition=OVERWRITE_IF).close()
        reader = client.open("granted", access=READ, disposition=OPEN)
        fails(ACCESS_DENIED, reader.write, b"x")
        fails(ACCESS_DENIED, client.set, reader, Level.FILE_END_OF_FILE_INFORMATION, struct.pack("<Q", 3))
        fails(ACCESS_DENIED, client.set, reader, Level.FILE_DISPOSITION_INFORMATION, b"\1")
        fails(ACCESS_DENIED, client.open("granted", access=ATTRIBUTES, disposition=OPEN).read, 0, 1)


def answers_contexts(server):
    with Client(server) as client:
        asked = []
        for name, data in [
            (
                CreateContextName.SMB2_CREATE_QUERY_MAXIMAL_ACCESS_REQUEST,
                SMB2CreateQueryMaximalAccessRequest(),
            ),
            (CreateContextName.SMB2_CREATE_QUERY_ON_DISK_ID, b""),
        ]:
            context = SMB2CreateContextRequest()
            context["buffer_name"], context["buffer_data"] = name, data
            asked.append(context)
        file = client.open("contexts", contexts=asked)
        same(len(file.contexts), 2)
        access, place = file.contexts
        same(access["query_status"].get_value(), 0)
        same(access["maximal_access"].get_value() & 0x10003, 0x10003)
        same(
            struct.pack("<Q", place["disk_file_id"].get_value() & (1 << 64) - 1),
            client.query(file, Level.FILE_INTERNAL_INFORMATION),
        )


def grants_no_oplocks(server):
    """None yet: a client that asks for one works without."""
    expected = (0, 0) if server.peer == "weir" else (9, 0xFF)
    with Client(server) as client:
        same(client.open("oplock", oplock=9).oplock_level, expected[0])
        lease = SMB2CreateRequestLeaseV2()
        lease["lease_key"] = b"k" * 16
        lease["lease_state"] = 7
        lease["parent_lease_key"] = bytes(16)
        lease["epoch"] = bytes(2)
        context = SMB2CreateContextRequest()
        context["buffer_name"], context["buffer_data"] = CreateContextName.SMB2_CREATE_REQUEST_LEASE_V2, lease
        same(client.open("lease", oplock=0xFF, contexts=[context]).oplock_level, expected[1])


def deletes_on_close(server):
    with Client(server) as first, Client(server) as second:
        file = first.open("doomed", options=FILE | DELETE_ON_CLOSE)
        other = second.open("doomed", access=READ, disposition=OPEN)
        file.close()
        fails(DELETE_PENDING, first.open, "doomed", disposition=OPEN)
        other.close()
        fails(NOT_FOUND, first.open, "doomed", disposition=OPEN)
        file = first.open("spared")
        first.set(file, Level.FILE_DISPOSITION_INFORMATION, b"\1")
        first.set(file, Level.FILE_DISPOSITION_INFORMATION, b"\0")
        file.close()
        first.open("spared", disposition=OPEN, options=FILE | DELETE_ON_CLOSE).close()
        # What is deleted is the file that was opened, and not its namesake.
        old = first.open("namesake")
        first.set(old, Level.FILE_DISPOSITION_INFORMATION, b"\1")
        first.rename(first.open("newer", disposition=OVERWRITE_IF), "newer2", replace=True)
        old.close()
        fails(NOT_FOUND, first.open, "namesake", disposition=OPEN)
        first.open("newer2", disposition=OPEN, options=FILE | DELETE_ON_CLOSE).close()


def renames(server):
    with Client(server) as client:
        client.open("target", disposition=OVERWRITE_IF).write(b"old")
        file = client.open("source", disposition=OVERWRITE_IF)
        file.write(b"new")
        fails(COLLISION, client.rename, file, "target")
        fails(OBJECT_PATH_NOT_FOUND, client.rename, file, r"absent\target")
        client.rename(file, "moved")
        fails(NOT_FOUND, client.open, "source", disposition=OPEN)
        same(file.read(0, 3), b"new")
        client.rename(file, "MOVED")
        assert "MOVED" in names(client, "moved*")
        file.close()
        client.open("moved", disposition=OPEN, options=FILE | DELETE_ON_CLOSE).close()


# Data


def reads_and_writes(server):
    with Client(server) as client:
        file = client.open("data", disposition=OVERWRITE_IF)
        fails(END_OF_FILE, file.read, 0, 1)
        same(file.write(b"abc", 5), 3)
        same(file.read(0, 100), b"\0\0\0\0\0abc")
        fails(END_OF_FILE, file.read, 8, 1)
        fails(END_OF_FILE, file.read, 0, 100, 50)
        same(file.write(b"through", write_through=True), 7)
        file.flush()
        same(file.read(0, 7), b"through")
        large = bytes(range(256)) * 4096
        same(file.write(large, 1 << 32), MEBIBYTE)
        same(file.read((1 << 32) + 4096, MEBIBYTE - 4096), large[4096:])
        client.set(file, Level.FILE_END_OF_FILE_INFORMATION, struct.pack("<Q", 3))
        same(file.read(0, 100), b"thr")
        file.close(get_attributes=True)
        same(file.end_of_file, 3)


def keeps_many_requests_apart(server):
    """As many at once as the server gives credits for."""
    with Client(server) as client:
        file = client.open("apart", disposition=OVERWRITE_IF)
        client.connection.echo(client.session.session_id, credit_request=128)
        window = client.connection.sequence_window
        at_once = min(window["high"] - window["low"], 100)
        assert at_once >= 8, at_once

        def all_at_once(calls):
            asked = []
            for message, receive in calls:
                request = client.connection.send(
                    message, client.session.session_id, client.tree.tree_connect_id
                )
                asked.append((request, receive))
            return [receive(request) for request, receive in asked]

        for start in range(0, 400, at_once):
            numbers = range(start, start + at_once)
            blocks = [struct.pack("<I", number) * 1024 for number in numbers]
            writes = [file.write(block, number * 4096, send=False) for number, block in zip(numbers, blocks)]
            same(all_at_once(writes), [4096] * at_once)
            same(all_at_once([file.read(number * 4096, 4096, send=False) for number in numbers]), blocks)


def send_compound(client, *parts):
    """Sends requests that were made with `send=False` as a related compound. Gives the requests."""
    messages = [message for message, _ in parts]
    return client.connection.send_compound(
        messages, client.session.session_id, client.tree.tree_connect_id, related=True
    )


def compound(client, *parts):
    """The same. Gives functions that receive the responses."""
    asked = send_compound(client, *parts)
    return [
        lambda request=request, receive=receive: receive(request) for request, (_, receive) in zip(asked, parts)
    ]


def answers_compounds(server):
    with Client(server) as client:
        file = Open(client.tree, "compound")
        answers = compound(
            client,
            file.create(2, ALL, 0, 7, OVERWRITE_IF, FILE, send=False),
            file.write(b"compound", 0, send=False),
            file.read(0, 8, send=False),
            file.close(send=False),
        )
        found = [answer() for answer in answers]
        same(found[1:3], [8, b"compound"])
        # The failure of the first is that of the others.
        file = Open(client.tree, r"absent\file")
        answers = compound(
            client,
            file.create(2, READ, 0, 7, OPEN, FILE, send=False),
            file.read(0, 8, send=False),
            file.close(send=False),
        )
        for answer in answers:
            fails(OBJECT_PATH_NOT_FOUND, answer)


def closes_after_a_failure_in_a_compound(server):
    """A request that fails between CREATE and CLOSE does not keep the open from being closed."""
    with Client(server) as client:
        client.open("failing", disposition=OVERWRITE_IF).close()
        file = Open(client.tree, "failing")
        create, write, close = compound(
            client,
            file.create(2, READ | DELETE, 0, 0, OPEN, FILE, send=False),
            file.write(b"not allowed", 0, send=False),
            file.close(send=False),
        )
        create()
        fails(ACCESS_DENIED, write)
        close()
        # The open shared nothing: while it lasts nobody opens the file.
        client.open("failing", disposition=OPEN).close()


def answers_many_compounds_on_one_connection(server):
    """Compounds that wait for the disk, more of them than a connection may have buffers."""
    with Client(server) as client:
        for number in range(100):
            file = Open(client.tree, "many")
            answers = compound(
                client,
                file.create(2, ALL, 0, 7, OVERWRITE_IF, FILE, send=False),
                file.write(b"%d" % number, 0, send=False),
                file.flush(send=False),
                file.close(send=False),
            )
            for answer in answers:
                answer()
        same(client.open("many", disposition=OPEN).read(0, 10), b"99")


# Locks


def locks_ranges(server):
    with Client(server) as first, Client(server) as second:
        one = first.open("locked", disposition=OVERWRITE_IF)
        one.write(bytes(100))
        two = second.open("locked", disposition=OPEN)
        one.lock(locks((10, 10, EXCLUSIVE | AT_ONCE)))
        fails(LOCK_NOT_GRANTED, two.lock, locks((15, 1, SHARED | AT_ONCE)))
        # An own lock is in the way of another, and an exact range ends one.
        fails(LOCK_NOT_GRANTED, one.lock, locks((10, 10, EXCLUSIVE | AT_ONCE)))
        fails(RANGE_NOT_LOCKED, one.lock, locks((10, 5, UNLOCK)))
        # It is mandatory.
        fails(LOCK_CONFLICT, two.read, 0, 11)
        fails(LOCK_CONFLICT, two.write, b"x", 19)
        same(len(two.read(0, 10)), 10)
        same(two.write(b"x", 20), 1)
        same(len(one.read(0, 100)), 100)
        one.lock(locks((10, 10, UNLOCK)))
        same(two.write(b"x", 19), 1)
        one.lock(locks((0, 50, SHARED | AT_ONCE)))
        two.lock(locks((0, 50, SHARED | AT_ONCE)))
        fails(LOCK_CONFLICT, two.write, b"x", 0)
        # All of a request, or nothing.
        fails(LOCK_NOT_GRANTED, two.lock, locks((60, 1, EXCLUSIVE | AT_ONCE), (0, 1, EXCLUSIVE | AT_ONCE)))
        one.lock(locks((60, 1, EXCLUSIVE | AT_ONCE)))
        one.close()
        two.lock(locks((60, 1, EXCLUSIVE | AT_ONCE)))


def wait_for_lock(client, file):
    """A request for a lock that waits: the server has said so by an interim answer."""
    message, _ = file.lock(locks((0, 10, EXCLUSIVE)), send=False)
    request = client.connection.send(message, client.session.session_id, client.tree.tree_connect_id)
    until_async(request)
    return request


def until_async(request):
    """Waits until the server has sent the interim response to a request."""
    deadline = time.monotonic() + 30
    while request.async_id is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert request.async_id is not None


def waits_for_locks(server):
    with Client(server) as first, Client(server) as second:
        one, two = first.open("waited"), second.open("waited", disposition=OPEN)
        one.lock(locks((0, 10, EXCLUSIVE | AT_ONCE)))
        request = wait_for_lock(second, two)
        # Work goes on beside it.
        second.open("beside").close()
        one.lock(locks((0, 10, UNLOCK)))
        second.connection.receive(request, timeout=30)
        fails(LOCK_NOT_GRANTED, one.lock, locks((0, 10, EXCLUSIVE | AT_ONCE)))


def waits_no_more_when_cancelled(server):
    with Client(server) as first, Client(server) as second:
        one, two = first.open("cancelled"), second.open("cancelled", disposition=OPEN)
        one.lock(locks((0, 10, EXCLUSIVE | AT_ONCE)))
        request = wait_for_lock(second, two)
        request.cancel()
        fails(CANCELLED, second.connection.receive, request, timeout=30)
        one.lock(locks((0, 10, UNLOCK)))
        one.lock(locks((0, 10, EXCLUSIVE | AT_ONCE)))


def waits_for_locks_in_compounds(server):
    """The LOCK is the last element: Samba lets no other one wait."""
    with Client(server) as first, Client(server) as second:
        one = first.open("compounded")
        one.lock(locks((0, 10, EXCLUSIVE | AT_ONCE)))

        def create_and_lock():
            file = Open(second.tree, "compounded")
            create = file.create(2, ALL, 0, 7, OPEN, FILE, send=False)
            lock = file.lock(locks((0, 10, EXCLUSIVE)), send=False)
            asked = send_compound(second, create, lock)
            until_async(asked[1])
            return asked, create[1]

        (create, lock), opened = create_and_lock()
        lock.cancel()
        opened(create)
        fails(CANCELLED, second.connection.receive, lock, timeout=30)
        (create, lock), opened = create_and_lock()
        one.lock(locks((0, 10, UNLOCK)))
        opened(create)
        second.connection.receive(lock, timeout=30)
        fails(LOCK_NOT_GRANTED, one.lock, locks((0, 10, EXCLUSIVE | AT_ONCE)))


def inherits_the_locks_of_a_lost_client(server):
    """By the client of the hostile half: smbprotocol's own sometimes misses this answer."""
    first, second = frames.Session(server), frames.Session(server)
    one = first.file("inherited", access=ALL)
    two = second.file("inherited", access=ALL)
    assert first.ask(frames.LOCK, frames.lock_body(one, [(0, 10, EXCLUSIVE | AT_ONCE)])).code == 0
    second.send(second.message(frames.LOCK, frames.lock_body(two, [(0, 10, EXCLUSIVE)])))
    same(frames.Reply(second.wire.receive()).status, "PENDING")
    first.close()
    same(frames.Reply(second.wire.receive()).status, "SUCCESS")
    second.close()


# Directories and information


def names(client, pattern="*", name=""):
    directory = client.directory(name, access=READ, disposition=OPEN)
    found = []
    try:
        while True:
            entries = directory.query_directory(pattern, Level.FILE_NAMES_INFORMATION)
            found += [entry["file_name"].get_value().decode("utf-16-le") for entry in entries]
    except SMBResponseException as error:
        assert error.status in [NO_MORE_FILES, NO_SUCH_FILE], hex(error.status)
    directory.close()
    return found


def lists_by_every_class(server):
    with Client(server) as client:
        client.directory("listed").close()
        for number in range(300):
            client.open(r"listed\entry %03d" % number).close()
        client.open(r"listed\entry 007", disposition=OVERWRITE).write(b"seven")
        expected = [".", ".."] + ["entry %03d" % number for number in range(300)]
        for level in [
            Level.FILE_DIRECTORY_INFORMATION,
            Level.FILE_FULL_DIRECTORY_INFORMATION,
            Level.FILE_BOTH_DIRECTORY_INFORMATION,
            Level.FILE_ID_BOTH_DIRECTORY_INFORMATION,
            Level.FILE_ID_FULL_DIRECTORY_INFORMATION,
            Level.FILE_NAMES_INFORMATION,
        ]:
            directory = client.directory("listed", access=READ, disposition=OPEN)
            entries = []
            try:
                while True:
                    entries += directory.query_directory("*", level, max_output=8000)
            except SMBResponseException as error:
                same(error.status, NO_MORE_FILES)
            same(sorted(entry["file_name"].get_value().decode("utf-16-le") for entry in entries), expected)
            if level != Level.FILE_NAMES_INFORMATION:
                seven = next(
                    entry
                    for entry in entries
                    if entry["file_name"].get_value() == "entry 007".encode("utf-16-le")
                )
                same(seven["end_of_file"].get_value(), 5)
            directory.close()
        same(sorted(names(client, "entry 00?", "listed")), ["entry 00%d" % number for number in range(10)])
        same(sorted(names(client, "ENTRY 1*5", "listed")), ["entry 1%d5" % number for number in range(10)])
        same(sorted(names(client, "absent*", "listed")), [])


def tells_of_files(server):
    with Client(server) as client:
        file = client.open("told", disposition=OVERWRITE_IF)
        file.write(b"told of")
        allocation, end, links, pending, directory = struct.unpack_from(
            "<QQIBB", client.query(file, Level.FILE_STANDARD_INFORMATION)
        )
        same((end, links, pending, directory), (7, 1, 0, 0))
        assert allocation >= end
        for level in [
            Level.FILE_BASIC_INFORMATION,
            Level.FILE_INTERNAL_INFORMATION,
            Level.FILE_EA_INFORMATION,
            Level.FILE_ACCESS_INFORMATION,
            Level.FILE_POSITION_INFORMATION,
            Level.FILE_MODE_INFORMATION,
            Level.FILE_ALIGNMENT_INFORMATION,
            Level.FILE_ALL_INFORMATION,
            Level.FILE_NETWORK_OPEN_INFORMATION,
            Level.FILE_ATTRIBUTE_TAG_INFORMATION,
            Level.FILE_COMPRESSION_INFORMATION,
        ]:
            assert client.query(file, level), level
        times = struct.pack(
            "<QQQQI4x", *[132223104000000000 + n for n in [0, 10000000, 20000000, 30000000]], 0x22
        )
        client.set(file, Level.FILE_BASIC_INFORMATION, times)
        same(client.query(file, Level.FILE_BASIC_INFORMATION)[:24], times[:24])
        same(client.query(file, Level.FILE_BASIC_INFORMATION)[32:36], times[32:36])
        file.close()
        client.open("told", disposition=OPEN, options=FILE | DELETE_ON_CLOSE).close()


def tells_of_the_file_system(server):
    with Client(server) as client:
        file = client.directory("", disposition=OPEN)
        for level, size in [(1, 18), (3, 24), (4, 8), (5, 12), (7, 32), (11, 28)]:
            data = client.query(file, level, kind=InfoType.SMB2_0_INFO_FILESYSTEM)
            assert len(data) >= size, (level, len(data))
        total, free, sectors, bytes_of_sector = struct.unpack(
            "<QQII", client.query(file, 3, kind=InfoType.SMB2_0_INFO_FILESYSTEM)
        )
        assert 0 < free <= total and sectors * bytes_of_sector in range(512, MEBIBYTE)


def tells_who_owns_what(server):
    """The descriptor of a file: an owner, a group, and a list with entries."""
    with Client(server) as client:
        file = client.open("owned")
        data = client.query(file, 0, kind=InfoType.SMB2_0_INFO_SECURITY, additional=7)
        revision, control, owner, group, _, entries = struct.unpack_from("<BxHIIII", data)
        same(revision, 1)
        assert control & 0x8004 == 0x8004 and owner and group and entries
        (count,) = struct.unpack_from("<H", data, entries + 4)
        assert count >= 1
        fails(0xC0000023, client.query, file, 0, kind=InfoType.SMB2_0_INFO_SECURITY, additional=7, limit=8)


# Controls


def copies_chunks(server):
    with Client(server) as client:
        source = client.open("chunks", disposition=OVERWRITE_IF)
        source.write(bytes(range(256)) * 4096)
        target = client.open("chunks2", disposition=OVERWRITE_IF)
        key = client.control(source, 0x140078)[:24]
        chunks = [(0, 0, 4096), (100, 8192, 1000), (1000, 5000, 10)]
        data = (
            key
            + struct.pack("<II", len(chunks), 0)
            + b"".join(struct.pack("<QQII", *chunk, 0) for chunk in chunks)
        )
        same(struct.unpack("<III", client.control(target, 0x1440F2, data)), (3, 0, 5106))
        same(target.read(8192, 1000), (bytes(range(256)) * 5)[100:1100])
        same(target.read(5000, 10), (bytes(range(256)) * 5)[1000:1010])


TESTS = [
    negotiates,
    signs_and_seals_by_every_algorithm,
    refuses_wrong_logins,
    logs_off,
    holds_many_sessions,
    creates_by_every_disposition,
    tells_files_from_directories,
    shares_as_it_was_told,
    grants_no_more_than_was_asked,
    answers_contexts,
    grants_no_oplocks,
    deletes_on_close,
    renames,
    reads_and_writes,
    keeps_many_requests_apart,
    answers_compounds,
    closes_after_a_failure_in_a_compound,
    answers_many_compounds_on_one_connection,
    locks_ranges,
    waits_for_locks,
    waits_no_more_when_cancelled,
    waits_for_locks_in_compounds,
    inherits_the_locks_of_a_lost_client,
    lists_by_every_class,
    tells_of_files,
    tells_of_the_file_system,
    tells_who_owns_what,
    copies_chunks,
]


if __name__ == "__main__":
    only = sys.argv[1:]
    sys.exit(
        0 if suite.run([test for test in TESTS if not only or test.__name__ in only], suite.Server()) else 1
    )
