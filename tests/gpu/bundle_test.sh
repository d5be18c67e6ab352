#!/usr/bin/env bash
# bundle_test.sh BUILD FOLDER: what `./dev bundle` packs, staged in FOLDER and moved elsewhere, runs by its own loader and libraries
# alone, and gpu-check says on a machine without a GPU that there is none.
set -u
build=$1 folder=$2
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fail() {
  echo "$*" >&2
  exit 1
}

rm -rf "$folder"
mkdir -p "$folder"
"$source/tests/gpu/stage-bundle" "$build" "$folder/staged" || fail "staging failed"
mv "$folder/staged" "$folder/moved"
bundle=$(cd "$folder/moved" && pwd)
for program in td reference_test cuda_test; do
  listed=$("$bundle/lib/ld-linux-x86-64.so.2" --library-path "$bundle/lib" --list "$bundle/bin/$program") ||
    fail "$program does not load: $listed"
  outside=$(awk '$2 == "=>" {print $3}' <<<"$listed" | grep -v "^$bundle/lib/") &&
    fail "$program loads from outside of the archive: $outside"
done
# Without devices, also where the machine has a GPU.
said=$(cd "$folder" && CUDA_VISIBLE_DEVICES='' TANDEM_PLUGINS='' "$bundle/gpu-check" report 2>&1)
status=$?
[ "$status" -eq 2 ] || fail "gpu-check exits with $status: $said"
grep -q 'Tandem finds no GPU here' <<<"$said" || fail "gpu-check does not say that there is no GPU: $said"
grep -q '^cuda: ' <<<"$said" || fail "gpu-check does not say why there is no GPU: $said"
