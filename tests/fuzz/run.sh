#!/usr/bin/env bash
# Builds the fuzz targets and runs each for SECONDS (10) on its corpus and from there on, two at a
# time. TARGETS (all) are names of files here without "_fuzz.cpp". An input that breaks something is
# left in build/fuzz/found and fails the script. FUZZ_SEED (1; 0 = any) makes another series of
# inputs. Does nothing where clang is not.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-10}
[ $# -gt 0 ] && shift
command -v clang++ >/dev/null || { echo "fuzz: no clang++ here, nothing is fuzzed"; exit 0; }
build=build/fuzz
cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DTROUPE_FUZZ=ON -DTROUPE_ARROW="${TROUPE_ARROW:-}" >/dev/null
cmake --build "$build" --target fuzz

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for file in tests/fuzz/*_fuzz.cpp; do
    target=$(basename "$file" _fuzz.cpp)
    [ "$target" = parquet ] && [ -z "${TROUPE_ARROW:-}" ] && { echo "fuzz: parquet is left out: TROUPE_ARROW is not set"; continue; }
    targets+=("$target")
  done
fi
mkdir -p "$build/found"

fuzz() { # SECONDS TARGET
  local found=build/fuzz/found/$2 log=build/fuzz/$2.log
  mkdir -p "$found" "build/fuzz/corpus/$2"
  # New inputs and findings go to the build folder; committed inputs are only read.
  if "build/fuzz/tests/fuzz/$2_fuzz" -max_total_time="$1" -seed="${FUZZ_SEED:-1}" -timeout=20 -rss_limit_mb=2560 \
    -artifact_prefix="$found/" "build/fuzz/corpus/$2" "tests/fuzz/corpus/$2" >"$log" 2>&1; then
    echo "fuzz: $2: $(grep -oE 'Done [0-9]+ runs in [0-9]+ second' "$log")s"
  else
    echo "fuzz: $2 failed; input in $found:"
    grep -vE '^#[0-9]' "$log" | head -40
    return 1
  fi
}
export -f fuzz
printf '%s\n' "${targets[@]}" |
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 xargs -P 2 -I{} bash -c "fuzz $seconds {}"
