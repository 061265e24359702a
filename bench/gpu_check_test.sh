#!/usr/bin/env bash
# Tests bench/gpu_check.sh without a GPU: first unchanged, then with an nvidia-smi that reports
# one and programs that pass, fail, and hang.
set -u
cd "$(dirname "$0")/.." || exit 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export TROUPE_GPU_WORK=$scratch/work
python=$(command -v python3) || { echo "python3 is not here: not tested"; exit 0; }
failures=0

expect() { # WHAT PATTERN FILE
  grep -qE "$2" "$3" && return
  echo "FAILED: $1: expected a line like \"$2\" in $3:"
  sed 's/^/    /' "$3"
  failures=$((failures + 1))
}
expect_code() { # WHAT WANTED GOT
  [ "$2" -eq "$3" ] && return
  echo "FAILED: $1: expected exit code $2, got $3"
  failures=$((failures + 1))
}
program() { # PATH TEXT...: a program of these lines
  mkdir -p "$(dirname "$1")"
  printf '%s\n' '#!/bin/bash' "${@:2}" > "$1"
  chmod +x "$1"
}
# result.json agrees with the table.
state_of() {
  "$python" -c 'import json,sys
for part in json.load(open(sys.argv[1]))["parts"]:
    print(part["name"], part["state"], part["note"])' "$1/result.json" > "$1/states"
}

# No GPU: reports it, lists the parts, fails nothing. Its nvidia-smi finds no device.
program "$scratch/none/nvidia-smi" 'echo "No devices were found"; exit 6'
PATH=$scratch/none:$PATH bench/gpu_check.sh "$scratch/a" > "$scratch/a.txt" 2>&1
expect_code "without a GPU" 0 $?
expect "without a GPU" 'no CUDA device on this machine; on one it would run:' "$scratch/a.txt"
expect "without a GPU" '^ +parity +at most +[0-9]+ s' "$scratch/a.txt"
state_of "$scratch/a"
expect "without a GPU" '^parity skipped no CUDA device' "$scratch/a/states"

# Arguments.
bench/gpu_check.sh > /dev/null 2>&1
expect_code "no arguments" 2 $?
bench/gpu_check.sh "$scratch/b" --only paritty > "$scratch/b.txt" 2>&1
expect_code "an unknown part" 2 $?
expect "an unknown part" 'unknown part paritty' "$scratch/b.txt"
bench/gpu_check.sh --help > "$scratch/help.txt"
expect_code "--help" 0 $?
expect "--help" 'Exit code: 0' "$scratch/help.txt"

# A machine with a GPU, a build that breaks, and an archive with programs.
program "$scratch/some/nvidia-smi" 'case $1 in
  -L) echo "GPU 0: Pretender" ;;
  *) echo "Pretender, 1.0, 2 MiB, 3 MHz, 4 MHz, 5 MHz, 6 W, 7" ;;
esac'
program "$scratch/some/cmake" 'echo "planted: cannot configure"; exit 1'
program "$scratch/some/nvcc" 'exit 1'
program "$scratch/some/compute-sanitizer" 'echo "planted: no memory errors"'
program "$scratch/python" 'case $2 in
  *find_spec*) echo /nowhere/torch ;;
  *) exec '"$python"' "$@" ;;
esac'
programs=$scratch/archive/programs
program "$programs/test_gpu" 'echo "$LD_LIBRARY_PATH" > '"$scratch"'/seen; echo "All tests passed"'
program "$programs/test_torch" 'echo "planted: a wrong sum"; exit 3'
program "$programs/test_parity" 'sleep 60'
tar -C "$scratch/archive" -czf "$scratch/deps.tar.gz" .
began=$SECONDS
PYTHON=$scratch/python PATH=$scratch/some:$PATH bench/gpu_check.sh "$scratch/c" \
  --deps "$scratch/deps.tar.gz" --limit 12 --commit abc > "$scratch/c.txt" 2>&1
expect_code "parts that fail" 1 $?
[ $((SECONDS - began)) -lt 50 ] || { echo "FAILED: the limit was not kept"; failures=1; }
state_of "$scratch/c"
expect "a build that fails" '^build failed exit code 1: planted: cannot conf' "$scratch/c/states"
expect "a part after it" '^kernels passed All tests passed' "$scratch/c/states"
expect "under the sanitizer" '^sanitizer passed planted: no memory errors' "$scratch/c/states"
expect "a part that fails" '^torch failed exit code 3: planted: a wrong sum' "$scratch/c/states"
expect "a part that does not end" '^parity failed ran past its' "$scratch/c/states"
# Programs missing from both the build and the archive.
PYTHON=$scratch/python PATH=$scratch/some:$PATH bench/gpu_check.sh "$scratch/d" \
  --only bandwidth,vlm > "$scratch/d.txt" 2>&1
expect_code "programs that are not there" 0 $?
state_of "$scratch/d"
expect "no benchmark" '^bandwidth skipped needs bench/bench_gpu_kernels' "$scratch/d/states"
expect "no troupe" '^vlm skipped needs troupe, which was not built' "$scratch/d/states"
expect "a part that came too late" '^curve skipped no time was left' "$scratch/c/states"
expect "libraries of programs" '/deps/usr/lib/.*:/nowhere/torch/lib' "$scratch/seen"
expect "conditions" 'Pretender' "$scratch/c/table.txt"
expect "conditions" '^commit abc' "$scratch/c/table.txt"
expect "the log" 'planted: a wrong sum' "$scratch/c/log.txt"

[ "$failures" -eq 0 ] && echo "gpu_check.sh keeps its promises"
exit "$failures"
