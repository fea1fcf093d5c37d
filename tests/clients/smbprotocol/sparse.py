#!/usr/bin/env python3
"""Files with data far apart, and with holes between."""

import struct
import sys

import suite
from cases import DELETE_ON_CLOSE, FILE, MEBIBYTE, OVERWRITE_IF, Client, same
from smbprotocol.file_info import FileInformationClass as Level


def writes_far_out(server):
    with Client(server) as client:
        file = client.open("far", disposition=OVERWRITE_IF, options=FILE | DELETE_ON_CLOSE)
        same(file.write(b"far out", 1 << 40), 7)
        same(file.read((1 << 40) - 1, 100), b"\0far out")
        file.close()


def with_holes(client, name):
    """A sparse file with 1 MiB and, after 7 MiB of nothing, 64 KiB of data; the second 64 KiB are made zero."""
    file = client.open(name, disposition=OVERWRITE_IF)
    client.control(file, 0x900C4, b"\1")
    file.write(b"x" * MEBIBYTE, 0)
    file.write(b"y" * 65536, 8 * MEBIBYTE)
    client.control(file, 0x980C8, struct.pack("<QQ", 65536, 131072))
    return file


def makes_ranges_zero(server):
    with Client(server) as client:
        file = with_holes(client, "zeros")
        same(file.read(65535, 65538), b"x" + bytes(65536) + b"x")
        same(file.read(MEBIBYTE - 1, 2), b"x\0")
        same(file.read(8 * MEBIBYTE - 1, 100000), b"\0" + b"y" * 65536)
        assert client.query(file, Level.FILE_BASIC_INFORMATION)[33] & 2


def makes_holes(server):
    with Client(server) as client:
        file = with_holes(client, "holes")
        ranges = client.control(file, 0x940CF, struct.pack("<QQ", 0, 16 * MEBIBYTE))
        pairs = [struct.unpack_from("<QQ", ranges, at) for at in range(0, len(ranges), 16)]
        same(pairs, [(0, 65536), (131072, MEBIBYTE - 131072), (8 * MEBIBYTE, 65536)])


TESTS = [writes_far_out, makes_ranges_zero, makes_holes]


def main():
    only = sys.argv[1:]
    tests = [test for test in TESTS if not only or test.__name__ in only]
    sys.exit(0 if suite.run(tests, suite.Server()) else 1)


main()
