#!/usr/bin/env bash
# Builds the tools here: tests/wasm/build.sh OUTDIR [NAME…]. Needs clang, lld and wasi-libc: scripts/setup.
# Of components (components/*.c) it builds the core modules, as NAME.core.wasm: tests/tests/wasm.rs puts the types around them.
set -euo pipefail
out=$1
here=$(cd "$(dirname "$0")" && pwd)
shift
mkdir -p "$out"
if (($# == 0)); then
  for source in "$here"/*.c "$here"/components/*.c; do set -- "$@" "$(basename "$source" .c)"; done
fi
for name in "$@"; do
  source=$here/$name.c built=$out/$name.wasm kind=command
  if [[ -e $here/components/$name.c ]]; then
    source=$here/components/$name.c built=$out/$name.core.wasm kind=reactor
  fi
  clang --target=wasm32-wasi --sysroot=/usr -O2 -Wall -Werror -mexec-model=$kind -Wl,--strip-all "$source" -o "$built.new"
  mv "$built.new" "$built"
done
