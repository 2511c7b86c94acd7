#!/usr/bin/env python3
"""Reads files below one folder: files_server.py FOLDER. Tools read_file and list_directory."""

import os
import sys

from stdio_mcp import Tool, serve

ROOT = os.path.realpath(sys.argv[1])
LIMIT = 1 << 20


def resolve(path):
    """The real path, if it lies below the folder."""
    real = os.path.realpath(os.path.join(ROOT, path))
    if real != ROOT and not real.startswith(ROOT + os.sep):
        raise ValueError("outside the folder")
    return real


def read_file(arguments):
    """The text of one file."""
    with open(resolve(arguments["path"]), encoding="utf-8") as file:
        return file.read(LIMIT)


def list_directory(arguments):
    """The names in one directory, a line each."""
    return "\n".join(sorted(os.listdir(resolve(arguments.get("path", ".")))))


serve(
    "files",
    [
        Tool("read_file", "Reads a text file below the folder.", read_file, ["path"], path="string"),
        Tool("list_directory", "Lists a directory below the folder.", list_directory, path="string"),
    ],
)
