# One command each: every target installs what it needs through `setup`. Exit 2 from a target that is not built yet.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
BINARIES := -p firedoor-cli -p firedoor-shim -p firedoor-remote -p firedoor-wasm

# The newest cargo-deny whose rust-version allows our toolchain. Kept by version, so that a new one is built once.
DENY_VERSION := 0.20.2
DENY := $(TARGET)/tools/cargo-deny-$(DENY_VERSION)/bin/cargo-deny

FUZZ_VERSION := 0.13.2
FUZZ := $(TARGET)/tools/cargo-fuzz-$(FUZZ_VERSION)/bin/cargo-fuzz

cargo-deb-version := 3.8.0
cargo-generate-rpm-version := 0.21.1
cargo-cyclonedx-version := 0.5.9
# The newest whose rust-version allows our toolchain; its command is a feature of it.
cargo-about-version := 0.9.3
cargo-about-features := --features cli
CARGO_DEB := $(TARGET)/tools/cargo-deb-$(cargo-deb-version)/bin/cargo-deb
CARGO_GENERATE_RPM := $(TARGET)/tools/cargo-generate-rpm-$(cargo-generate-rpm-version)/bin/cargo-generate-rpm
CARGO_CYCLONEDX := $(TARGET)/tools/cargo-cyclonedx-$(cargo-cyclonedx-version)/bin/cargo-cyclonedx
CARGO_ABOUT := $(TARGET)/tools/cargo-about-$(cargo-about-version)/bin/cargo-about
PACKAGERS := $(CARGO_DEB) $(CARGO_GENERATE_RPM) $(CARGO_CYCLONEDX) $(CARGO_ABOUT)
PACK := CARGO_DEB="$(CARGO_DEB)" CARGO_GENERATE_RPM="$(CARGO_GENERATE_RPM)" CARGO_CYCLONEDX="$(CARGO_CYCLONEDX)" CARGO_ABOUT="$(CARGO_ABOUT)"
# A clean system is entered by changing the root directory.
AS_ROOT = $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: help setup ui build demo test lint audit bench app e2e honest eval escape guest conformance cross native package installer image fuzz

help: ## this list
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):.*## /  make \1\t/' | expand -t 20

setup: ## install what is needed on a fresh Debian or Ubuntu
	@scripts/setup

# What the desktop app embeds: cargo needs it before it can check or build that crate.
ui: ## the desktop app's windows, in ui/dist
	@scripts/setup desktop
	npm --prefix ui ci --no-fund --no-audit --loglevel=error
	npm --prefix ui run build

build: setup ## release binaries in target/release
	cargo build --release --locked $(BINARIES)
	@echo "built firedoor, firedoor-shim, firedoor-remote and firedoor-wasm in $(TARGET)/release"

demo: build ## the main job, end to end, in a scratch home
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/demo/demo.py

test: setup ui ## everything CI runs besides the lints
	@scripts/test

lint: setup ui $(DENY) ## format, clippy, walls and licences of dependencies, documentation
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(DENY) --locked check --hide-inclusion-graph -A unused-wrapper bans licenses sources
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --quiet

audit: setup $(DENY) ## known vulnerabilities of dependencies; fetches the RustSec database
	$(DENY) --locked check advisories

bench: build ## cost of inspection, of the sandbox, of a scan and of WebAssembly; latency, CPU and memory beside direct and beside a blind byte pump
	cargo build --release --locked -p firedoor-inspect --example speed
	@python3 tests/bench/inspection.py "$(TARGET)/release/examples/speed"
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/bench/sandbox.py
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/bench/scan.py
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/bench/wasm.py
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/bench/bench.py
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/bench/remote.py

# Its own target directory: the release profile of the workspace and its lints are not for a tool. Not optimised: it runs for ten
# seconds, and a fresh machine waits minutes less for it.
$(DENY):
	CARGO_PROFILE_DEV_DEBUG=0 cargo install --debug --locked --quiet cargo-deny --version $(DENY_VERSION) \
	  --root "$(TARGET)/tools/cargo-deny-$(DENY_VERSION)" --target-dir "$(TARGET)/tools/build"
	rm -rf "$(TARGET)/tools/build"

$(FUZZ):
	cargo install --locked --quiet cargo-fuzz --version $(FUZZ_VERSION) \
	  --root "$(TARGET)/tools/cargo-fuzz-$(FUZZ_VERSION)" --target-dir "$(TARGET)/tools/build"
	rm -rf "$(TARGET)/tools/build"

app: build ui ## start the tray app
	cargo build --release --locked -p firedoor-desktop
	"$(TARGET)/release/firedoor-desktop"

e2e: build ui ## real clients, real servers and the desktop
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/e2e/real_clients.py
	@scripts/setup servers
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/e2e/real_servers.py
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/e2e/observed_servers.py
	@scripts/setup desktop-test
	cargo build --locked $(BINARIES)
	cargo build --locked -p firedoor-desktop --features automation
	@FIREDOOR_BIN_DIR="$(TARGET)/debug" python3 tests/desktop/e2e.py
	@FIREDOOR_BIN_DIR="$(TARGET)/debug" python3 tests/desktop/trays.py
	@FIREDOOR_BIN_DIR="$(TARGET)/debug" python3 tests/desktop/gnome.py
	npm --prefix ui run e2e
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/demo/demo.py

honest: build ## honest work in many sessions with real servers, through the engine: how often is somebody asked; SESSIONS="office data" for some
	@scripts/setup servers
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/honest/honest.py $(SESSIONS)

eval: build ## detectors on the corpora given by CORPORA=dir
	@[ -n "$(CORPORA)" ] || { echo "make eval: name the folder of the corpora: make eval CORPORA=dir" >&2; exit 2; }
	@python3 tests/eval/evaluate.py "$(TARGET)/release/firedoor" "$(CORPORA)" --held-out tests/eval/held-out.tsv

escape: build ## sandbox escape probes, baseline first; RUNS=20 TRIES=100000 for long
	@FIREDOOR_BIN_DIR="$(TARGET)/release" python3 tests/escape/escape.py

guest: ## the sandbox under Debian's kernel, in an emulated machine
	@scripts/setup guest
	cargo build --locked -p firedoor-cli
	@tests/escape/guest.sh "$(TARGET)/debug"

conformance: build ## official SDKs' clients and servers and the MCP conformance suite, direct and through Firedoor
	@failed=0; export FIREDOOR_BIN_DIR="$(TARGET)/release"; \
	cargo build --release --locked --manifest-path tests/conformance/rust/Cargo.toml --target-dir "$(TARGET)" || failed=1; \
	for part in matrix endpoint oauth logins conformance; do \
	  echo "==> $$part"; \
	  python3 "tests/conformance/$$part.py" && continue; \
	  failed=1; echo "$$part.py FAILED" >&2; \
	done; \
	exit $$failed

cross: ## type-check macOS and Windows, crate by crate as far as each is ready; run Windows' command line and pipe under wine
	@scripts/setup cross
	@scripts/cross "$(TARGET)" $(CRATES)

native: ## on macOS and Windows: the unit tests of the crates that are meant for them
	@scripts/native "$(TARGET)"

package: build ui $(PACKAGERS) ## .deb and .rpm in target/package, tried in a clean copy of this machine's Debian or Ubuntu
	cargo build --release --locked -p firedoor-desktop
	cargo build --release --locked -p firedoor-cli --example documents
	@scripts/setup package-test
	@$(PACK) scripts/package "$(TARGET)"
# Once more, by somebody with other habits, elsewhere in time: the same files, byte for byte.
	@umask 077; MINISIGN_KEY= TZ=Pacific/Auckland $(PACK) scripts/package "$(TARGET)" "$(TARGET)/package-again" >/dev/null
	@diff --recursive --brief --exclude='*.minisig' "$(TARGET)/package" "$(TARGET)/package-again"
	@rm -r "$(TARGET)/package-again"
	@$(AS_ROOT) python3 -B tests/package/package.py "$(TARGET)/package"

installer: setup ui $(CARGO_ABOUT) $(CARGO_CYCLONEDX) ## an installer for Windows in target/package, tried under wine; PROGRAMS=dir packs those
	@scripts/setup cross
	@$(PACK) scripts/package-windows "$(TARGET)" $(PROGRAMS)
	@timeout 1800 python3 tests/windows/installer.py "$(TARGET)"/package/firedoor-*-setup.exe

image: $(CARGO_ABOUT) $(CARGO_CYCLONEDX) ## on a Mac: a disk image in target/package
	@$(PACK) scripts/package-macos "$(TARGET)"

$(PACKAGERS):
	cargo install --locked --quiet $(notdir $@) --version $($(notdir $@)-version) $($(notdir $@)-features) \
	  --root "$(patsubst %/bin/,%,$(dir $@))" --target-dir "$(TARGET)/tools/build"
	rm -rf "$(TARGET)/tools/build"

fuzz: setup $(FUZZ) ## each fuzz target for FUZZ_SECONDS (60); FUZZ_TARGETS="dns message" for some
	@CARGO_FUZZ="$(FUZZ)" scripts/fuzz
