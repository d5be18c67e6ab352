#!/usr/bin/env bash
# bundle_test.sh BUILD FOLDER PLUGIN DRIVER: what `./dev bundle` packs, staged in FOLDER and moved elsewhere, runs by its own loader
# and libraries alone. gpu-check says on a machine without a GPU that there is none; on the stand-in DRIVER, with the kernels of
# PLUGIN, every step passes on a small part of its work, and the reports have all of them.
set -u
build=$1 folder=$2 plugin=$3 driver=$4
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
for program in "$bundle"/bin/*; do
  listed=$("$bundle/lib/ld-linux-x86-64.so.2" --library-path "$bundle/lib" --list "$program") ||
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

# A wrong option is answered by the usage.
said=$("$bundle/gpu-check" --no-such-option 2>&1) && fail "gpu-check takes any option"
grep -q '^usage: ' <<<"$said" || fail "gpu-check does not say how it is used: $said"

# check NAME [VARIABLE=VALUE...]: on the stand-in, its report in the folder NAME.
check() {
  local report=$1
  shift
  said=$(cd "$folder" && env TANDEM_PLUGINS="$plugin" CUDA_STAND_IN_MIB=1024 CUDA_VISIBLE_DEVICES=0 TANDEM_MEMORY_GROWTH=1 \
    TANDEM_CUDA_HOST_READ_LIMIT=65536 TANDEM_BENCH_CUDA_DRIVER="$driver" TANDEM_CACHE_DIR="$folder/cache" GPU_CHECK_SMALL=1 \
    "$@" "$bundle/gpu-check" "$report" 2>&1) || {
    tail -n 40 "$folder/$report"/*.log >&2
    fail "gpu-check fails on the stand-in: $said"
  }
  python3 - "$folder/$report" <<'END' || fail "$report is not what it should be: $(cat "$folder/$report/report.json")"
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
report = json.loads((folder / "report.json").read_text())
steps = {step["name"]: step["result"] for step in report["steps"]}
assert list(steps) == ["devices", "conformance", "cases", "models", "faults", "sanitizer", "benches"], steps
assert steps["conformance"] == "skipped", "it is of a driver, which the stand-in's plug-in has for itself"
assert all(steps[name] == "passed" for name in ("devices", "cases", "models", "faults", "benches")), steps
assert report["benches"], "no row was measured"
for row in report["benches"]:
    assert row["ours"] > 0 if "ours" in row else row["answer"]["value"] > 0, row
text = (folder / "report.md").read_text()
assert all(f"| {name} |" in text for name in steps) and "Benches:" in text
END
}
check with_python
check without_python TANDEM_BENCH_PYTHON=no_such_python
