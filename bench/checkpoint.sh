#!/usr/bin/env bash
# Measures what checkpoints cost: two processes with about 2 GiB of state each, which write a checkpoint
# beside training (checkpoint.async), while training waits, or not at all, and the disk by itself.
#   bench/checkpoint.sh [BUILD]            a folder with the program troupe; build/cpu by default
#   bench/checkpoint.sh --mirrors [BUILD]  the same of mirrors in memory (checkpoint.replicas), of a state of
#                                          0.5 GiB; two minutes
#   bench/checkpoint.sh --help
# Variables change the runs:
#   STEPS=56       of each run; EVERY=50 steps a checkpoint
#   DIR=FOLDER     where run directories go: on the disk to measure; a temporary folder by default
#   SET="K=V ..."  further keys, such as modules.language.hidden=1024 for a quick look
#   JSON=FILE      writes the rows there, too
# Ten minutes with two cores, 12 GiB of memory and 10 GB of disk. Losses must be equal, else it prints
# WRONG and exits with 1. Target: training waits less than 1% of an interval.
set -euo pipefail
cd "$(dirname "$0")/.."
mirrors=
[ "${1:-}" != --mirrors ] || { mirrors=yes; shift; }
case ${1:-} in
  -h | --help) sed -n '/^#!/d; /^#/!q; s/^# \{0,1\}//p' "bench/${0##*/}"; exit ;;
  -*) echo "checkpoint.sh: unknown option $1; expected --mirrors, --help or a build folder" >&2; exit 2 ;;
esac
[ -x "${1:-build/cpu}/troupe" ] || {
  echo "checkpoint.sh: expected a build with the program troupe, found none in ${1:-build/cpu}" >&2
  exit 2
}
steps=${STEPS:-${mirrors:+21}}
steps=${steps:-56}
every=${EVERY:-${mirrors:+20}}
every=${every:-50}
[[ $steps =~ ^[0-9]{1,6}$ && $every =~ ^[0-9]{1,6}$ ]] && ((10#$steps > 10#$every && 10#$steps < 2 * 10#$every)) || {
  echo "checkpoint.sh: expected EVERY < STEPS < 2 * EVERY, got STEPS=$steps EVERY=$every" >&2
  exit 2
}
repeats=1
CONFIG=${CONFIG:-configs/shapes_inline.toml}
. bench/paired_runs.sh
[ -z "${DIR:-}" ] || { rm -rf "$folder"; folder=$(mktemp -d -p "$DIR"); }

# 183 million parameters on each of two ranks: 2.19 GB with both moments, which a checkpoint stores.
big=(cluster.ranks=2 modules.language.ranks=0-1 modules.language.layout={pp=2}
  modules.language.hidden=2048 modules.language.layers=6 modules.language.mlp_hidden=7168
  cluster.stall_after_s=300 schedule.micro_batch_size=1 schedule.microbatches=2 data.held_out=\"\"
  run.evaluate_every=0 optimizer.clip_norm=0.0)

# Each process holds the state five times.
[ -z "$mirrors" ] || big+=(modules.language.hidden=1024 modules.language.mlp_hidden=3584)
restarts=${mirrors:+--restarts 1}

field() { sed -n "s/$1/\\1/p" "$folder/summary"; }

# $1: what it is called; the others: its keys.
run() {
  local name=$1 arguments=()
  shift
  # shellcheck disable=SC2086  # SET is a list
  for value in "${big[@]}" ${SET:-} "$@"; do arguments+=(--set "$value"); done
  rm -rf "$folder/runs"
  # shellcheck disable=SC2086  # two words, or none
  "$program" train "$config" --local 2 $restarts --set run.steps="$steps" --set run.dir="$folder/runs" \
    "${arguments[@]}" >"$folder/out" 2>&1 &
  local job=$!
  most=0
  while kill -0 $job 2>/dev/null; do  # resident, of both processes and their launcher
    now=$({ ps -C troupe -o rss= || true; } | awk '{ sum += $1 } END { print int(sum / 1024) }')
    ((now <= most)) || most=$now
    sleep 0.5
  done
  wait $job || { cat "$folder/out" >&2; exit 1; }
  "$program" trace summary "$folder"/runs/latest >"$folder/summary"
  sed -n 's/.*"kind":"step","step":\([0-9]*\),.*"seconds":\([0-9.e-]*\),.*/\1 \2/p' \
    "$folder"/runs/latest/metrics.jsonl >"$folder/steps"
  step=$(awk -v e="$every" '$1 > 5 && $1 <= e { print $2 }' "$folder/steps" | median)
  # The steps after a checkpoint, against as many usual ones: what they lost because of it.
  lost=$(awk -v e="$every" -v s="$step" '$1 > e { sum += $2 - s } END { print sum }' "$folder/steps")
  losses=$(sed -n 's/.*"kind":"step".*"loss":\([0-9.e-]*\),.*/\1/p' "$folder"/runs/latest/metrics.jsonl | md5sum)
  took=$(field '^checkpoint of step [0-9]*: \([^(]*[^ (]\) *(.*')
  core=$(field '^checkpoint .*writers on a core for \([^;]*\);.*')
  copy=$(field '^checkpoint .*; \([^;]*\) to copy;.*')
  waited=$(field '^checkpoint .*training waited \([^,]*\),.*')
  [ "$name" = async ] || waited=${took:-}
  [ -z "$mirrors" ] || {
    core=$(field '^[0-9]* mirrors in memory: made on a core in \([^;]*\);.*')
    waited=$(field '^[0-9]* mirrors .*training waited \([^,]*\),.*')
  }
  stored=$(du -cb "$folder"/runs/latest/checkpoints/*/*.safetensors 2>/dev/null | tail -1 | cut -f1 || true)
  printf '%-8s %9.2f %10.2f %10s %10s %10s %10s %9s\n' "$name" "$step" "$lost" "${took:--}" \
    "${copy:--}" "${waited:--}" "${core:--}" "$most"
  rows+="${rows:+,}
 {\"checkpoints\": \"$name\", \"step_s\": $step, \"lost_s\": $lost, \"took\": \"${took:-}\","
  rows+=" \"copy\": \"${copy:-}\", \"waited\": \"${waited:-}\", \"on_core\": \"${core:-}\", \"most_mib\": $most}"
}

print_conditions
rows=
printf '%-8s %9s %10s %10s %10s %10s %10s %9s\n' written 'step s' 'lost s' took 'to copy' waited \
  'on a core' 'most MiB'
run none checkpoint.every=0 checkpoint.every_minutes=0
first=$losses
if [ -n "$mirrors" ]; then
  for often in 1 5; do
    run "every $often" checkpoint.every=0 checkpoint.every_minutes=0 checkpoint.replicas=1 \
      checkpoint.mirror_every=$often
    [ "$losses" = "$first" ] || { echo "WRONG: the losses differ from those without mirrors"; exit 1; }
  done
  [ -z "${JSON:-}" ] || printf '[%s\n]\n' "$rows" >"$JSON"
  exit
fi
for async in false true; do
  name=$([ $async = true ] && echo async || echo sync)
  run "$name" checkpoint.every="$every" checkpoint.every_minutes=0 checkpoint.async=$async
  [ "$losses" = "$first" ] || { echo "WRONG: the losses differ from those without checkpoints"; exit 1; }
done
# As many bytes, by as many processes.
half=$((stored / 2 / 4194304))
rm -rf "$folder/runs"
begin=$(date +%s.%N)
for i in 1 2; do
  dd if=/dev/zero of="$folder/dd$i" bs=4M count="$half" conv=fsync 2>/dev/null &
done
wait
end=$(date +%s.%N)
awk -v b="$begin" -v e="$end" -v n="$((2 * half * 4))" \
  'BEGIN { printf "dd of %d MiB by two processes, with fsync: %.2f s, %.0f MiB/s\n", n, e - b, n / (e - b) }'
[ -z "${JSON:-}" ] || printf '[%s\n]\n' "$rows" >"$JSON"
