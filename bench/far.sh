#!/usr/bin/env bash
# Compares a step of configs/shapes_2node.toml between two distant hosts with the schedule simulator's
# result for the passes of that run and the same delay on the edge.
#   bench/far.sh [BUILD [DELAY_MS [SETTING...]]]      needs root: the hosts are network namespaces
# Prints the median step (target: at most 1.2 times the simulated one), and the sequential trips of a
# step and of a microbatch through the network.
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${STEPS:-12}
. bench/paired_runs.sh # program, folder, median
delay=${2:-100}
shift $(($# < 2 ? $# : 2))
hosts=far$$

tidy() {
  for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
  for host in "$hosts"-{0,1,hub}; do ip netns del "$host" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap tidy EXIT

ip netns add "$hosts-hub"
for host in 0 1; do
  ip netns add "$hosts-$host"
  ip -n "$hosts-hub" link add "port$host" type veth peer name eth0 netns "$hosts-$host"
  ip -n "$hosts-hub" link set "port$host" up promisc on
  ip -n "$hosts-$host" link set lo up
  ip -n "$hosts-$host" addr add "10.79.0.$((host + 1))/24" dev eth0
  ip -n "$hosts-$host" link set eth0 up
  ip netns exec "$hosts-$host" python3 bench/slow_network.py --no-offload eth0
  # BBR paces by the bandwidth that it has seen, and a step never fills the path.
  ip netns exec "$hosts-$host" sh -c "echo ${CONGESTION:-reno} >/proc/sys/net/ipv4/tcp_congestion_control"
done
ip netns exec "$hosts-hub" python3 bench/slow_network.py "$delay" port0 port1 >/dev/null &

"$program" key "$folder/key" >/dev/null
node() { # NUMBER
  local sets=()
  for setting in "run.steps=$steps" run.evaluate_every=0 "data.held_out=''" \
    "run.dir=$folder/runs" "${settings[@]}"; do
    sets+=(--set "$setting")
  done
  ip netns exec "$hosts-$1" "$program" node configs/shapes_2node.toml --node "$1/2" \
    --join 10.79.0.1:7420 --key-file "$folder/key" "${sets[@]}"
}
settings=("$@")
node 1 >"$folder/n1" 2>&1 &
other=$!
node 0 >"$folder/n0" 2>&1 || { cat "$folder/n0" "$folder/n1" >&2; exit 1; }
wait "$other"

run=$folder/runs/latest
measured=$(sed -n 's/^step .* \([0-9.]*\) s  bubble.*/\1/p' "$folder/n0" | tail -n +4 |
  awk '{ print 1000 * $1 }' | median)
simulated=$("$program" bench schedules configs/shapes_2node.toml --kinds 1f1b --simulate \
  --durations "$run" --what-if "edge:vision->language=${delay}ms" | awk '$1 == "1f1b" { print $3 }')
echo "$(grep '^tensors between' "$folder/n0"); $delay ms one way; steps 4 to $steps of $steps"
echo "load $(cut -d' ' -f1 /proc/loadavg), $(nproc) cores, $("$program" --version 2>/dev/null || true)"
echo
awk -v m="$measured" -v s="$simulated" 'BEGIN {
  printf "%-34s %9.1f ms\n%-34s %9.1f ms\n%-34s %9.2f\n", "step, measured", m, "step, simulated", s,
    "ratio", m / s }'
"$program" trace critical "$run" --step "$((steps / 2))" | sed -n 's/.*; \(.*\) between processes$/a step waits for \1 between processes, one after the other/p'
echo
"$program" trace sql "$run" "select type, max(trips) as ways, count(*) as messages, sum(bytes) >> 10
  as kib from messages where step = $((steps / 2)) and trips > 0 group by type order by type"
