"""What can be said of the packages without installing them: package.py asks for it."""

import contextlib
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The libraries that each program may name (NEEDED): of the C library and the compiler, and of the desktop what its windows are made of.
C_LIBRARY = {"libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
MATHEMATICS = C_LIBRARY | {"libm.so.6"}
MAY_NEED = {
    "firedoor": MATHEMATICS,
    "firedoor-shim": C_LIBRARY,
    "firedoor-remote": MATHEMATICS,
    "firedoor-wasm": MATHEMATICS,
    "firedoor-desktop": MATHEMATICS | {
        "libwebkit2gtk-4.1.so.0", "libjavascriptcoregtk-4.1.so.0", "libsoup-3.0.so.0", "libgtk-3.so.0", "libgdk-3.so.0",
        "libgdk_pixbuf-2.0.so.0", "libcairo.so.2", "libpango-1.0.so.0", "libgio-2.0.so.0", "libgobject-2.0.so.0", "libglib-2.0.so.0",
    },
}
# Libraries, and windows' packages, whose licences have to be there: of each program one, and of each kind of licence.
KNOWN = ("clap", "encoding_rs", "landlock", "notify", "ring", "rusqlite", "selectors", "svelte", "@tauri-apps/api", "tauri", "tokio", "wasmtime")
PLACES = (
    "lib/systemd/user/firedoor.service", "share/applications/io.firedoor.Firedoor.desktop",
    "share/metainfo/io.firedoor.Firedoor.metainfo.xml", "share/doc/firedoor/README.md", "share/firedoor/restore.sh",
)


class Failed(Exception):
    """A step did not prove what it should."""


def expect(condition, what):
    """Ends the test when something is not so."""
    if not condition:
        raise Failed(what)


def step(text):
    print(f"- {text}", flush=True)


def said(*command, **options):
    """What a command of this machine says on its standard output; one that fails ends the test."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    expect(done.returncode == 0, f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


@contextlib.contextmanager
def unpacked(deb):
    """The directory with what a .deb brings."""
    with tempfile.TemporaryDirectory(prefix="fd-unpacked-") as place:
        said("dpkg-deb", "-x", deb, place)
        yield pathlib.Path(place)


def look_at_metadata():
    linux = ROOT / "installers/linux"
    for file in sorted(linux.glob("*.desktop")):
        said("desktop-file-validate", file)
    said("appstreamcli", "validate", "--no-net", *linux.glob("*.metainfo.xml"))
    for script in (*linux.glob("debian/p*"), *linux.glob("rpm/*"), linux / "every-user"):
        said("sh", "-n", script)


def look_at_links(files):
    """Each program needs the libraries that it may, and no other."""
    programs = sorted(path.name for path in (files / "usr/bin").iterdir())
    expect(programs == sorted(MAY_NEED), f"the programs are {programs}")
    for program in programs:
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", said("readelf", "-dW", files / "usr/bin" / program, env={**os.environ, "LC_ALL": "C"})))
        expect("libc.so.6" in needed, f"{program}: nothing is known of what it needs")
        expect(needed <= MAY_NEED[program], f"{program} needs {sorted(needed - MAY_NEED[program])}, which it may not")
    step("each of the programs needs the libraries that it may, and no other")


def commands(program, above=()):
    """Every command that the program says it has, as the words behind its name; the first is the program itself."""
    yield above
    listed = said(program, *above, "-h", env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}).partition("\nCommands:\n")[2].partition("\n\n")[0]
    for name in re.findall(r"^  (\S+)", listed, re.MULTILINE):
        if name != "help":
            yield from commands(program, (*above, name))


def look_at_documents(files):
    """Every command has a manual page that can be shown, every shell completes the commands, and the rest lies in its place."""
    for place in PLACES:
        expect((files / "usr" / place).is_file(), f"there is no /usr/{place}")
    documents = files / "usr/share/doc/firedoor"
    for page in (documents / "README.md", *documents.glob("docs/*.md")):
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text()):
            expect((page.parent / picture).is_file(), f"{page.name} shows {picture}, which the package has not")
    every = list(commands(files / "usr/bin/firedoor"))
    expect(len(every) > 20, f"it says that it has the commands {every}")
    pages = {"-".join(("firedoor", *command)): command for command in every}
    directory = files / "usr/share/man/man1"
    found = {path.name for path in directory.iterdir()}
    expect(found == {f"{name}.1.gz" for name in pages}, f"manual pages: {sorted(found ^ {f'{name}.1.gz' for name in pages})}")
    for name in pages:
        page = directory / f"{name}.1.gz"
        source = gzip.decompress(page.read_bytes()).decode()
        expect(re.search(rf"^\.TH {re.escape(name)} 1 ", source, re.MULTILINE), f"{page.name} has the title of another page")
        # As a reader sees it, with what the formatter has to say against it.
        env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "200", "MANROFFOPT": "-c", "HOME": "/nonexistent"}
        shown = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-P", "cat", "-l", page], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        words = " ".join(shown.stdout.split())
        expect(shown.returncode == 0 and not shown.stderr, f"{page.name}: exit {shown.returncode}: {shown.stderr}")
        for part in (f"NAME {name} - ", f"SYNOPSIS {' '.join(('firedoor', *pages[name]))} "):
            expect(part in words, f"{page.name} does not say {part!r}: {words[:300]}")
    first = {command[0] for command in every if command}
    offered = said(
        "bash", "--norc", "-c", 'source "$1"; complete -p firedoor >/dev/null; COMP_WORDS=(firedoor "") COMP_CWORD=1; _firedoor firedoor "" firedoor;'
        ' printf "%s\\n" "${COMPREPLY[@]}"', "bash", files / "usr/share/bash-completion/completions/firedoor",
    ).split()
    expect(first <= set(offered), f"bash completes all but {sorted(first - set(offered))}")
    # How the others are told what there is behind the name.
    for place, begins, form in (
        ("zsh/vendor-completions/_firedoor", "#compdef firedoor\n", "'{}:"),
        ("fish/vendor_completions.d/firedoor.fish", "#", '-a "{}"'),
    ):
        text = (files / "usr/share" / place).read_text()
        missing = [command for command in sorted(first) if form.format(command) not in text]
        expect(text.startswith(begins) and not missing, f"{place} completes all but {missing}")
    step(f"{len(pages)} manual pages, one for each command, are shown without a complaint; bash, zsh and fish complete {len(first)} commands")


def look_at_licences(files):
    """What other people wrote in the programs comes with its licences, each with a text."""
    file = files / "usr/share/doc/firedoor/THIRD-PARTY-LICENSES"
    expect(file.is_file(), "there are no licences of third parties")
    listed, *texts = re.split(r"\n\n={72}\n", file.read_text(encoding="utf-8"))
    # Libraries with their versions, and what data was made from by its name alone.
    libraries = set(re.findall(r"^(\S+(?: \d\S*)?) \(.+\)", listed, re.MULTILINE))
    missing = [name for name in KNOWN if not any(library.startswith(f"{name} ") for library in libraries)]
    expect(not missing and len(libraries) > 300, f"licences of {len(libraries)} libraries, but none of {missing}")
    covered = set()
    for text in texts:
        head, _, body = text.partition(f"\n{'-' * 72}\n")
        # What only says where the text is does not stand for it.
        if len(body) > 200:
            covered.update(head.partition(": ")[2].split(", "))
    expect(covered == libraries, f"with a text or listed, not both: {sorted(covered ^ libraries)}")
    for part in ("Apache License", "Permission is hereby granted, free of charge", "Mozilla Public License", "Copyright (c) "):
        expect(any(part in text for text in texts), f"no licence says {part!r}")
    expect(str(ROOT) not in listed and "/registry/src/" not in "".join(texts), "the licences name places of this machine")
    step(f"licences of {len(libraries)} libraries, {len(texts)} texts")


def look_at_rpm(package, deb):
    """The other package holds the same programs, and restores when it goes."""
    def ask(*what):
        return said("rpm", "-qp", *what, package)

    files = set(ask("-l").split())
    listed = said("dpkg-deb", "-c", deb).splitlines()
    in_deb = {line.split()[5][1:] for line in listed if not line.startswith("d")}
    # What the two families keep in different places.
    moved = ("/usr/share/zsh/", "/usr/share/doc/", "/usr/share/licenses/")
    differ = {path for path in files ^ in_deb if not path.startswith(moved)}
    expect(not differ, f"in one package only: {sorted(differ)}")
    for name in ("LICENSE", "THIRD-PARTY-LICENSES"):
        expect(f"/usr/share/licenses/firedoor/{name}" in files, f"the .rpm has no {name}")
    expect("every-user restore" in ask("--scripts"), "the .rpm does not restore")
    step(f"{package.name}: {package.stat().st_size / (1 << 20):.1f} MiB, the same files")


def look_at_lists(place, deb):
    """Every program in the package has a list of what it is made of, and every file has a checksum."""
    listed = said("dpkg-deb", "-c", deb).splitlines()
    programs = sorted(pathlib.Path(line.split()[5]).name for line in listed if line.split()[5].startswith("./usr/bin/") and not line.startswith("d"))
    expect(programs, f"{deb.name} has no programs")
    for program in programs:
        crate = "firedoor-cli" if program == "firedoor" else program
        file = place / f"{crate}.cdx.json"
        expect(file.is_file(), f"there is no {file.name}: nothing says what {program} is made of")
        made = json.loads(file.read_text())
        name = made["metadata"]["component"]["name"]
        expect(name == crate and made.get("components"), f"{file.name} is about {name} and names {len(made.get('components', []))} parts")
    # Those of an installer for Windows have a file of their own.
    sums = [file.read_text() for file in place.glob("SHA256SUMS*") if file.suffix != ".minisig"]
    summed = {line.split(maxsplit=1)[1] for line in "".join(sums).splitlines()}
    found = {path.name for path in place.iterdir() if not path.name.startswith("SHA256SUMS")}
    expect(found == summed, f"with a checksum or without a file: {sorted(found ^ summed)}")
    step(f"lists of contents: {', '.join(programs)}; {len(summed)} files with a checksum")


def try_signing(place):
    """The checksums, signed as `make package` signs them with a key that is made for this: a changed file or list is refused."""
    with tempfile.TemporaryDirectory(prefix="fd-signed-") as scratch:
        here = pathlib.Path(scratch)
        for key in ("ours", "others"):
            said("minisign", "-G", "-W", "-p", here / f"{key}.pub", "-s", here / f"{key}.key", stdin=subprocess.DEVNULL)
        files = here / "package"
        shutil.copytree(place, files)
        env = {name: value for name, value in os.environ.items() if name != "MINISIGN_KEY"}
        (files / "SHA256SUMS.minisig").unlink(missing_ok=True)
        unsigned = said(ROOT / "scripts/package", "--sign", files, env=env)
        expect("not signed" in unsigned and not (files / "SHA256SUMS.minisig").exists(), f"without a key: {unsigned}")
        said(ROOT / "scripts/package", "--sign", files, env={**env, "MINISIGN_KEY": str(here / "ours.key")}, stdin=subprocess.DEVNULL)

        def believed(key="ours"):
            """As somebody checks who has downloaded the files and has the public key."""
            for command in (["minisign", "-Vq", "-p", here / f"{key}.pub", "-m", "SHA256SUMS"], ["sha256sum", "--check", "--quiet", "SHA256SUMS"]):
                if subprocess.run(command, cwd=files, capture_output=True, check=False).returncode != 0:
                    return False
            return True

        expect(believed(), "what was signed is not believed")
        expect(not believed("others"), "another key's signature is believed")
        package = next(files.glob("*.deb"))
        whole = package.read_bytes()
        package.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        expect(not believed(), "a changed package is believed")
        with (files / "SHA256SUMS").open("w") as sums:
            subprocess.run(["sha256sum", "--", *sorted(p.name for p in files.iterdir() if not p.name.startswith("SHA256SUMS"))], cwd=files, stdout=sums, check=True)
        expect(not believed(), "a changed package with new checksums is believed")
        package.write_bytes(whole)
    step("signed with a key of its own, the checksums are believed; a changed package, changed checksums and another key are not")
