#!/usr/bin/env python3
"""Honest texts that agents read most: the files of public programs, in many languages of programming.

  sources.py OUT REPOSITORY...
  sources.py --records FILE REPOSITORY...

REPOSITORY is a git directory. Writes up to 260 files of what HEAD holds to OUT/NAME, chosen by a hash of their paths, for `train` to
learn from as ordinary texts (hence their ending, .md); or up to 300, cut at 20,000 characters, to FILE as records that `firedoor
inspect` reads. The same commits give the same files.
"""

import hashlib
import json
import pathlib
import subprocess
import sys

LEARNT, TESTED, CUT = 260, 300, 20_000
# Bytes of a file.
SMALLEST, LARGEST = 300, 400_000


def texts(repository, most):
    """Paths and texts of so many files."""
    git = ["git", f"--git-dir={repository}"]
    tree = subprocess.run([*git, "ls-tree", "-r", "-l", "-z", "HEAD"], capture_output=True, check=True).stdout
    found = []
    for line in filter(None, tree.split(b"\0")):
        meta, path = line.split(b"\t", 1)
        mode, kind, blob, size = meta.split()
        # A snapshot may lack some.
        if kind == b"blob" and mode != b"120000" and size.isdigit() and SMALLEST <= int(size) <= LARGEST:
            found.append((hashlib.sha256(path).hexdigest(), blob.decode(), path.decode(errors="replace")))
    for _, blob, path in sorted(found):
        if most == 0:
            return
        content = subprocess.run([*git, "cat-file", "blob", blob], capture_output=True, check=False).stdout
        try:
            text = content.decode()
        except UnicodeDecodeError:
            continue
        if text and "\0" not in text:
            most -= 1
            yield path, text


def name(repository):
    """A clone's own name, or that of the directory that it is the work of."""
    path = pathlib.Path(repository)
    return path.parent.name if path.name in (".git", "repo") else path.stem


def main(out, repositories):
    """Writes the texts."""
    if out == "--records":
        file, *repositories = repositories
        with open(file, "w", encoding="utf-8") as records:
            for repository in repositories:
                for path, text in texts(repository, TESTED):
                    record = {"source": name(repository), "label": "benign", "kind": "tool_result", "text": text[:CUT]}
                    records.write(json.dumps(record | {"path": path}) + "\n")
        return
    for repository in repositories:
        directory = pathlib.Path(out) / name(repository)
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in texts(repository, LEARNT):
            digest = hashlib.sha256(path.encode()).hexdigest()
            (directory / f"{digest[:16]}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
