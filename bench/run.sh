#!/bin/sh
# Runs every benchmark of BUILD_DIR, prints the tables and writes the samples as JSON into
# BUILD_DIR/bench/. Fails if an answer is wrong; a bad number is not a failure.
# --full adds the transport's largest sizes, which take as long as everything else.
set -u
if [ $# -lt 1 ] || [ ! -d "$1/bench" ]; then
  echo "usage: bench/run.sh BUILD_DIR [--full]   (BUILD_DIR configured and built)" >&2
  exit 2
fi
filter='-bytes:(8388608|67108864)/'
if [ "${2:-}" = --full ]; then filter=.; fi
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.." || exit 2
commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
export OPENBLAS_NUM_THREADS=1

status=0
for name in actor_overhead schedule_overhead actor_cost trace_cost microbatch_order boundary attention packing; do
  program="$build/bench/bench_$name"
  if [ ! -x "$program" ]; then
    echo "== $name: not built, skipped"
    continue
  fi
  "$program" --commit "$commit" --json "$build/bench/$name.json" || status=1
done
for tls in posix,cma tcp; do
  [ -x "$build/bench/bench_data_plane" ] || continue
  "$build/bench/bench_data_plane" --tls "$tls" --buffers 1 || status=1
done
if [ -x "$build/bench/bench_data_plane" ]; then
  "$build/bench/bench_data_plane" --tls proven --tls tcp || status=1
fi
if [ -x "$build/bench/bench_control" ]; then "$build/bench/bench_control" || status=1; fi
if [ -x "$build/troupe" ]; then
  bench/processes.sh "$build" || status=1
  bench/tracing.sh "$build" || status=1
  bench/replay.sh "$build" || status=1
  "$build/troupe" bench schedules configs/synthetic_chain.toml --measure --reps 7 \
    --kinds 1f1b,gpipe,interleaved:2,zb-h1 --microbatches 8,16 \
    --set modules.language.forward_ms=20 --set modules.language.backward_ms=40 || status=1
fi
if [ -x "$build/bench/bench_transport" ]; then
  echo "== transport (commit $commit)"
  "$build/bench/bench_transport" "--benchmark_filter=$filter" --benchmark_out_format=json \
    --benchmark_out="$build/bench/transport.json" || status=1
  # The library reports a wrong answer in its output, not in its exit code.
  if grep -q '"error_occurred": true' "$build/bench/transport.json"; then status=1; fi
fi
exit $status
