#!/usr/bin/env python3
"""Stands before an engine that dies when it has said what to run: dying_engine.py SOCKET MOVED PID.

Listens at SOCKET, which was the engine's, and passes on what a shim and the engine at MOVED say, up to the engine's first
message. Kills the engine, and gives the shim that message only when there is nobody left to hear an answer.
"""

import os
import signal
import socket
import struct
import sys

HEADER = struct.Struct("<IB")


def read(stream, length):
    data = stream.recv(length, socket.MSG_WAITALL)
    if len(data) != length:
        sys.exit("the connection ended too soon")
    return data


def frame(stream):
    """One frame; none of those passed on here has descriptors."""
    header = read(stream, HEADER.size)
    length, descriptors = HEADER.unpack(header)
    assert descriptors == 0
    return header + read(stream, length)


def main():
    here, moved, pid = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(here)
    listener.listen()
    print("ready", flush=True)
    shim, _ = listener.accept()
    engine = socket.socket(socket.AF_UNIX)
    engine.connect(moved)
    # The hello and the launch.
    for _ in range(2):
        engine.sendall(frame(shim))
    run = frame(engine)
    os.kill(int(pid), signal.SIGKILL)
    while engine.recv(4096):
        pass
    os.unlink(here)
    listener.close()
    # From here on writing to us fails, and what we write is read.
    shim.shutdown(socket.SHUT_RD)
    shim.sendall(run)


main()
