#!/usr/bin/env bash
# Compares training with and without traces, in turn.
#   bench/tracing.sh [BUILD]
# Prints medians of the step time and their ratio (target < 1.01).
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${STEPS:-60}
repeats=${REPEATS:-11}
. bench/paired_runs.sh

traced() { step_ms --set trace.messages=true; }
untraced() { step_ms --set trace.messages=false; }

print_conditions
for ((i = 1; i <= repeats; ++i)); do
  # On, off, off, on: a slowdown of the machine affects both.
  if ((i % 2)); then on=$(traced); off=$(untraced); else off=$(untraced); on=$(traced); fi
  echo "$on $off $(awk "BEGIN { print $on / $off }")"
done >"$folder/pairs"
printf 'traced      %8.2f ms per step\nnot traced  %8.2f ms per step\nratio       %8.4f (from %s to %s)\n' \
  "$(column 1 | median)" "$(column 2 | median)" "$(column 3 | median)" "$(column 3 | least)" \
  "$(column 3 | most)"
