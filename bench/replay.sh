#!/usr/bin/env bash
# Measures the error of the simulator: a step simulated with its own durations against measured.
#   bench/replay.sh [BUILD]
# Prints medians over steps of the error (target: within 3%), and the number of steps in which all
# stages ran the simulated order.
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${STEPS:-24}
. bench/paired_runs.sh

echo "$steps steps of each, the first 3 not counted; $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
printf '%-46s %9s %9s %9s\n' configuration passes commands order
while read -r config sets; do
  rm -rf "$folder/runs"
  # shellcheck disable=SC2086
  "$program" train "configs/$config.toml" --set run.steps="$steps" --set run.dir="$folder/runs" \
    $sets >"$folder/out" 2>&1 || { cat "$folder/out" >&2; exit 1; }
  for ((step = 4; step <= steps; ++step)); do
    "$program" trace order "$folder"/runs/* --step "$step" | tail -2
  done >"$folder/orders"
  errors() { sed -n "s/.*$1 [^(]*(\([-+0-9.]*\)%).*/\1/p" "$folder/orders" | median; }
  printf '%-46s %8s%% %8s%% %5s/%s\n' "$config $(echo "$sets" | sed 's/--set //g')" \
    "$(errors 'own durations')" "$(errors 'to its answer')" \
    "$(grep -c 'in the same order' "$folder/orders" || true)" "$((steps - 3))"
done <<'CONFIGS'
shapes
shapes --set schedule.microbatches=8
shapes --set schedule.kind=zb-h1
shapes_frozen
synthetic_8stages
shapes_two_encoders
CONFIGS
