#!/usr/bin/env bash
# Builds the tools here: tests/wasm/build.sh OUTDIR [NAME…]. Needs clang, lld and wasi-libc: scripts/setup.
set -euo pipefail
out=$1
here=$(cd "$(dirname "$0")" && pwd)
shift
mkdir -p "$out"
if (($# == 0)); then
  for source in "$here"/*.c; do set -- "$@" "$(basename "$source" .c)"; done
fi
for name in "$@"; do
  clang --target=wasm32-wasi --sysroot=/usr -O2 -Wall -Werror -Wl,--strip-all "$here/$name.c" -o "$out/$name.wasm.new"
  mv "$out/$name.wasm.new" "$out/$name.wasm"
done
