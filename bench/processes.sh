#!/usr/bin/env bash
# Training in two processes against one with the same ranks, and what an idle job costs.
#   bench/processes.sh [BUILD]
# Alternates the two, so that a busy machine is busy for both; prints medians of the step time, their
# ratio (target <= 1.10), and the CPU that the processes of a waiting job use (target < 1% of a core).
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/cpu}/troupe
config=${CONFIG:-configs/shapes.toml}
steps=${STEPS:-40}
repeats=${REPEATS:-7}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The median step time of one run in ms, without its first five steps.
step_ms() {
  rm -rf "$folder/runs"
  "$program" train "$config" --set run.steps="$steps" --set run.dir="$folder/runs" --local "$1" \
    >"$folder/out" 2>&1 || { cat "$folder/out" >&2; exit 1; }
  sed -n 's/.*"kind":"step","step":\([0-9]*\),.*"seconds":\([0-9.e-]*\),.*/\1 \2/p' \
    "$folder"/runs/*/metrics.jsonl | awk '$1 > 5 { print $2 * 1000 }' | sort -n |
    awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

echo "$config, $steps steps, $repeats runs of each, alternating; $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
for ((i = 1; i <= repeats; ++i)); do
  one=$(step_ms 1)
  two=$(step_ms 2)
  echo "$one $two $(awk "BEGIN { print $two / $one }")"
done >"$folder/pairs"
median() { awk -v c="$1" '{ print $c }' "$folder/pairs" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
printf 'one process    %8.1f ms per step\ntwo processes  %8.1f ms per step\n' "$(median 1)" "$(median 2)"
printf 'ratio          %8.3f (from %s to %s)\n' "$(median 3)" \
  "$(awk '{ print $3 }' "$folder/pairs" | sort -n | head -1)" \
  "$(awk '{ print $3 }' "$folder/pairs" | sort -n | tail -1)"

# Passes that take a minute: everybody waits.
"$program" train configs/synthetic_8stages.toml --local 2 --set run.dir="$folder/idle" \
  --set modules.vision.forward_ms=60000 >"$folder/out" 2>&1 &
launcher=$!
sleep 4
ticks() { for pid in $(pgrep -P "$launcher"); do awk '{ print $14 + $15 }' "/proc/$pid/stat"; done; }
before=$(ticks)
sleep 10
after=$(ticks)
kill -KILL "$launcher" $(pgrep -P "$launcher") 2>/dev/null || true
wait 2>/dev/null || true
paste <(echo "$before") <(echo "$after") |
  awk -v hz="$(getconf CLK_TCK)" '{ printf "idle process   %8.2f %% of a core\n", ($2 - $1) / hz / 10 * 100 }'
