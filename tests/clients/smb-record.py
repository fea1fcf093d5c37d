#!/usr/bin/env python3
"""Passes connections on to a server and writes all that they carry, both ways, to a file.

    smb-record.py FILE HOST:PORT

Listens on HOST, an address of this machine, prints the port there, and runs until it is killed."""

import socket
import sys
import threading


def carry(source, target, record):
    while data := source.recv(1 << 16):
        record.write(data)
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


def main():
    name, server = sys.argv[1:]
    host, port = server.rsplit(":", 1)
    listener = socket.create_server((host, 0))
    # Unbuffered, so that a signal loses nothing.
    record = open(name, "wb", buffering=0)
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        peer = socket.create_connection((host, int(port)))
        for pair in [(client, peer), (peer, client)]:
            threading.Thread(target=carry, args=(*pair, record), daemon=True).start()


main()
