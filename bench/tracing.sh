#!/usr/bin/env bash
# Training with messages noted against without, in turn.
#   bench/tracing.sh [BUILD]
# Prints medians of the step time and their ratio (target < 1.01).
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/cpu}/troupe
config=${CONFIG:-configs/shapes.toml}
steps=${STEPS:-60}
repeats=${REPEATS:-11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The median step time of one run in ms, without its first five steps.
step_ms() {
  rm -rf "$folder/runs"
  "$program" train "$config" --set run.steps="$steps" --set run.dir="$folder/runs" \
    --set trace.messages="$1" >"$folder/out" 2>&1 || { cat "$folder/out" >&2; exit 1; }
  sed -n 's/.*"kind":"step","step":\([0-9]*\),.*"seconds":\([0-9.e-]*\),.*/\1 \2/p' \
    "$folder"/runs/*/metrics.jsonl | awk '$1 > 5 { print $2 * 1000 }' | sort -n |
    awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

echo "$config, $steps steps, $repeats runs of each, alternating; $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
for ((i = 1; i <= repeats; ++i)); do
  # On, off, off, on: a machine that slows down does it to both.
  if ((i % 2)); then on=$(step_ms true); off=$(step_ms false); else off=$(step_ms false); on=$(step_ms true); fi
  echo "$on $off $(awk "BEGIN { print $on / $off }")"
done >"$folder/pairs"
column() { awk -v c="$1" '{ print $c }' "$folder/pairs" | sort -n; }
median() { column "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
printf 'traced      %8.2f ms per step\nnot traced  %8.2f ms per step\nratio       %8.4f (from %s to %s)\n' \
  "$(median 1)" "$(median 2)" "$(median 3)" "$(column 3 | head -1)" "$(column 3 | tail -1)"
