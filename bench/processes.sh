#!/usr/bin/env bash
# Compares training in two processes with one process and the same ranks, and measures an idle job.
#   bench/processes.sh [BUILD]
# Alternates the two, so that other load affects both; prints medians of the step time, their
# ratio (target <= 1.10), and the CPU that the processes of a waiting job use (target < 1% of a core).
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${STEPS:-40}
repeats=${REPEATS:-7}
. bench/paired_runs.sh

print_conditions
for ((i = 1; i <= repeats; ++i)); do
  one=$(step_ms --local 1)
  two=$(step_ms --local 2)
  echo "$one $two $(awk "BEGIN { print $two / $one }")"
done >"$folder/pairs"
printf 'one process    %8.1f ms per step\ntwo processes  %8.1f ms per step\n' "$(column 1 | median)" \
  "$(column 2 | median)"
printf 'ratio          %8.3f (from %s to %s)\n' "$(column 3 | median)" "$(column 3 | least)" \
  "$(column 3 | most)"

# Passes that take a minute: the job waits.
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
