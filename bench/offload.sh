#!/usr/bin/env bash
# Measures the gain and the cost of offloading a colocated encoder's state: the peak of device memory,
# and the share of the time in which the encoder's backward waited for its state alone.
#   bench/offload.sh [BUILD]       a folder with the program troupe; build/cpu by default
#   bench/offload.sh --help
# Variables change the runs:
#   STEPS=6        of each run; the first is not timed, so 2 at least
#   AHEAD=1        modules.vision.offload_ahead of the runs that offload
#   CONFIG=FILE    configs/shapes_colocated.toml, on top of which the encoder is made large
#   SET="K=V ..."  further keys, such as cluster.backend=cuda
#   JSON=FILE      writes the rows there, too
# One run of each of none, parameters, state; a minute on a CPU with STEPS=2. On the CPU backend the
# devices' memory is the process's, without the offloaded copies. Losses must be equal, else it
# prints WRONG and exits with 1. Target: exposed < 2% of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  -h | --help) sed -n '/^#!/d; /^#/!q; s/^# \{0,1\}//p' "bench/${0##*/}"; exit ;;
  -*) echo "offload.sh: unknown option $1; expected --help or a build folder" >&2; exit 2 ;;
esac
[ -x "${1:-build/cpu}/troupe" ] || {
  echo "offload.sh: expected a build with the program troupe, found none in ${1:-build/cpu}" >&2
  exit 2
}
steps=${STEPS:-6}
[[ $steps =~ ^[0-9]{1,6}$ ]] && ((10#$steps >= 2)) || {
  echo "offload.sh: STEPS: expected 2 or more, as the first is not timed, got $steps" >&2
  exit 2
}
repeats=1
ahead=${AHEAD:-1}
CONFIG=${CONFIG:-configs/shapes_colocated.toml}
. bench/paired_runs.sh
# The C library's heap keeps freed memory, which would hide the memory that state has freed.
export MALLOC_MMAP_THRESHOLD_=131072

# An encoder of 22 million parameters, 88 MB and as much again for gradients and each moment on each
# of two ranks, before a language model whose activations are most of a pipeline stage's memory.
# Creating 22 million parameters takes long and sends no message; it must not count as a stall.
big=(cluster.ranks=2 modules.vision.ranks=0-1 modules.vision.layout={dp=2}
  modules.vision.hidden=512 modules.vision.layers=8 modules.vision.mlp_hidden=2048
  modules.vision.recompute=full modules.language.ranks=0-1 modules.language.layout={pp=2}
  modules.language.hidden=256 modules.language.layers=8 modules.language.mlp_hidden=1024
  cluster.stall_after_s=300 schedule.micro_batch_size=16 schedule.microbatches=4 data.held_out=\"\")

run() {
  local arguments=()
  # shellcheck disable=SC2086  # SET is a list
  for value in "${big[@]}" ${SET:-} "$@"; do arguments+=(--set "$value"); done
  rm -rf "$folder/runs"
  "$program" train "$config" --set run.steps="$steps" --set run.dir="$folder/runs" \
    "${arguments[@]}" >"$folder/out" 2>&1 || { cat "$folder/out" >&2; exit 1; }
  "$program" trace summary "$folder"/runs/* >"$folder/summary"
  most=$("$program" trace sql "$folder"/runs/* --format csv \
    "select max(memory_bytes) / 1048576 from work" | tail -1)
  step=$(sed -n 's/.*"kind":"step","step":\([0-9]*\),.*"seconds":\([0-9.e-]*\),.*/\1 \2/p' \
    "$folder"/runs/*/metrics.jsonl | awk '$1 > 1 { print $2 * 1000 }' | median)
  loss=$(sed -n 's/.*"kind":"step".*"loss":\([0-9.e-]*\),.*/\1/p' "$folder"/runs/*/metrics.jsonl |
    tail -1)
  cost=$(sed -n 's/^state of vision offloaded.*out in \(.*\), back in \(.*\); .*(exposed \(.*\))/\1|\2|\3/p' \
    "$folder/summary")
}

print_conditions
rows=
printf '%-12s %10s %8s %10s %10s %9s %10s %10s\n' offload 'peak MiB' lower 'step ms' 'last loss' \
  out back exposed
for offload in none parameters state; do
  keys=("modules.vision.offload=$offload")
  # offload_ahead is refused without offloading.
  [ "$offload" = none ] || keys+=("modules.vision.offload_ahead=$ahead")
  run "${keys[@]}"
  [ "$offload" != none ] || { peak=$most; first=$loss; }
  [ "$loss" = "$first" ] || { echo "WRONG: loss $loss, without offloading $first"; exit 1; }
  printf '%-12s %10s %8s %10.0f %10.4f %9s %10s %10s\n' "$offload" "$most" "$((peak - most))" \
    "$step" "$loss" "$(cut -d'|' -f1 <<<"${cost:--}")" "$(cut -s -d'|' -f2 <<<"$cost")" \
    "$(cut -s -d'|' -f3 <<<"$cost")"
  rows+="${rows:+,}
 {\"offload\": \"$offload\", \"offload_ahead\": $ahead, \"peak_mib\": $most, \"step_ms\": $step,"
  rows+=" \"exposed\": \"$(cut -s -d'|' -f3 <<<"$cost")\"}"
done
[ -z "${JSON:-}" ] || printf '[%s\n]\n' "$rows" >"$JSON"
