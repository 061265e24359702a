#!/usr/bin/env bash
# Checks a device: builds the checkout on a machine with a GPU and runs everything that needs one.
#   bench/gpu_check.sh OUT [--deps FILE.tar.gz] [--only PART,PART] [--limit SECONDS] [--commit TEXT]
# Writes result.json (conditions, parts, numbers), table.txt and log.txt into OUT. --deps is an archive
# of bench/gpu_deps.sh, for a machine without the packages of tools/install_packages.sh; the
# PyTorch of `python3` serves as libtorch. Without cmake, a C++ compiler or nvcc, the
# programs in the archive are run. Each part has a time limit, and a failed part does not stop the
# others. All parts end within --limit (570 s; a larger limit extends each part in proportion).
#
# Exit code: 0 nothing failed, 1 a part failed, 2 wrong arguments. Without a GPU it lists the parts and
# exits with 0. A missed target is not a failure.
set -u

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; }

# name:seconds:purpose
parts=(
  "build:240:everything builds here, with this PyTorch as libtorch"
  "kernels:40:our kernels compute the same as their plain loops"
  "sanitizer:75:the same under compute-sanitizer"
  "torch:30:libtorch's streams and memory"
  "parity:120:26 layouts have the gradients of the unsharded model on the CPU"
  "bandwidth:60:our kernels against copies on the device"
  "vlm:140:training the model of configs/gpu/vlm_1b.toml, and idle time of the device"
  "eager:80:the same model in PyTorch eager"
  "offload:120:peak memory with and without offload, and the time it costs"
  "recovery:60:a job on the device goes on after a kill, from mirrored state in memory"
  "curve:80:200 steps in bfloat16 next to float32"
)

main() {
  case "${1:-}" in
    -h | --help) usage; exit 0 ;;
    "" | --*) echo "gpu_check.sh: expected OUT, a folder, first" >&2; usage >&2; exit 2 ;;
  esac
  mkdir -p "$1" || exit 2
  out=$(cd "$1" && pwd); shift
  deps_file= only= limit=570 commit=
  while [ $# -gt 0 ]; do
    case $1 in
      --deps | --only | --limit | --commit) ;;
      *) echo "gpu_check.sh: unknown argument $1 (--help lists them)" >&2; exit 2 ;;
    esac
    [ $# -ge 2 ] || { echo "gpu_check.sh: $1: expected a value" >&2; exit 2; }
    case $1 in
      --deps)
        [ -f "$2" ] || { echo "gpu_check.sh: --deps: no file $2" >&2; exit 2; }
        deps_file=$(realpath "$2") ;;
      --only) only=$2 ;;
      --limit)
        [[ $2 =~ ^[1-9][0-9]*$ ]] ||
          { echo "gpu_check.sh: --limit: expected seconds, got $2" >&2; exit 2; }
        limit=$2 ;;
      --commit) commit=$2 ;;
    esac
    shift 2
  done
  cd "$(dirname "$0")/.." || exit 2
  python=${PYTHON:-python3}
  [ -n "$commit" ] || commit=$(git describe --always --dirty 2> /dev/null || echo unknown)
  check_names
  rm -f "$out"/result.json "$out"/table.txt "$out"/log.txt
  export out deps_file commit python
  export work=${TROUPE_GPU_WORK:-$PWD/build/gpu_check}
  mkdir -p "$work" && rm -rf "$work/results" "$work/runs" && mkdir -p "$work/results" || exit 2
  : > "$work/parts.tsv"
  if ! nvidia-smi -L 2> /dev/null | grep -q '^GPU'; then
    without_gpu
    exit 0
  fi
  unpack_deps
  local part
  for part in "${parts[@]}"; do run_part "$part"; done
  "$python" bench/gpu_report.py summary "$work" "$out" | tee "$out/table.txt"
  ! grep -q '	failed	' "$work/parts.tsv"
}

check_names() {
  local name
  for name in ${only//,/ }; do
    [[ " ${parts[*]}" == *" $name:"* ]] ||
      { echo "gpu_check.sh: --only: unknown part $name, expected one of ${parts[*]%%:*}" >&2; exit 2; }
  done
}

wanted() { [ -z "$only" ] || [[ ",$only," == *",$1,"* ]]; }

without_gpu() {
  local name budget shows
  echo "gpu_check: no CUDA device on this machine; on one it would run:"
  for part in "${parts[@]}"; do
    IFS=: read -r name budget shows <<< "$part"
    wanted "$name" || continue
    printf '  %-10s at most %3d s  %s\n' "$name" "$budget" "$shows"
    note "$name" skipped 0 "no CUDA device on this machine"
  done
  "$python" bench/gpu_report.py summary "$work" "$out" > "$out/table.txt"
}

unpack_deps() {
  export deps=
  [ -n "$deps_file" ] || return
  export deps=$work/deps
  rm -rf "$deps" && mkdir -p "$deps" && tar -C "$deps" -xzf "$deps_file" || exit 2
}

# One line per part: name, result, seconds, reason.
note() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >> "$work/parts.tsv"; }

run_part() {
  local name budget shows began=$SECONDS left=$((limit - SECONDS)) rc why log
  IFS=: read -r name budget shows <<< "$1"
  wanted "$name" || return 0
  log=$work/results/$name.log
  if [ "$left" -lt 5 ]; then
    note "$name" skipped 0 "no time was left of $limit s"
    return 0
  fi
  [ "$limit" -le 570 ] || budget=$((budget * limit / 570))
  [ "$budget" -le "$left" ] || budget=$left
  echo "== $name: $shows"
  timeout -k 5 "$budget" bash "$0" --part "$name" < /dev/null > "$log" 2>&1
  rc=$?
  { echo "== $name (exit code $rc)"; cat "$log"; } >> "$out/log.txt"
  why=$(grep -v '^ *$' "$log" | tail -1 | tr '\t' ' ' | cut -c1-160)
  case $rc in
    0) note "$name" passed $((SECONDS - began)) "$why" ;;
    77) note "$name" skipped $((SECONDS - began)) "$why" ;;
    124 | 137) note "$name" failed $((SECONDS - began)) "ran past its $budget s; last: $why" ;;
    *) note "$name" failed $((SECONDS - began)) "exit code $rc: $why" ;;
  esac
  tail -1 "$work/parts.tsv"
}

# --- the code of a part: `bash gpu_check.sh --part NAME`, with the variables of main

skip() { echo "$1" >&2; exit 77; }

# Runs a program of the build or of the archive. Only it uses the archive's libraries; Python has its
# own.
program() {
  local file=$work/build/$1
  [ -x "$file" ] || file=$deps/programs/$(basename "$1")
  [ -x "$file" ] || skip "needs $1, which was not built"
  shift
  LD_LIBRARY_PATH=$(libraries)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "${wrapper[@]}" "$file" "$@"
}
wrapper=()

libraries() {
  local torch
  torch=$(cat "$work/torch" 2> /dev/null || torch_folder)
  # PyTorch's packages bring an NCCL, which it finds itself; our programs are linked with one, too.
  echo "${deps:+$deps/usr/lib/$(uname -m)-linux-gnu:}$torch/lib:${torch%/*}/nvidia/nccl/lib"
}

# Finds PyTorch without importing it, which takes seconds.
torch_folder() {
  "$python" -c 'from importlib.util import find_spec
print(find_spec("torch").submodule_search_locations[0])' | tee "$work/torch"
}

troupe() { program troupe "$@"; }

part_build() {
  local torch tool missing= generator=() targets
  torch=$(torch_folder) && [ -n "$torch" ] || { echo "$python has no PyTorch"; return 1; }
  for tool in cmake c++ nvcc; do
    command -v $tool > /dev/null || [ -x /usr/local/cuda/bin/$tool ] || missing+=" $tool"
  done
  if [ -n "$missing" ]; then
    [ -n "$deps" ] && [ -d "$deps/programs" ] ||
      { echo "not here:$missing; and no programs in --deps"; return 1; }
    skip "not here:$missing; the programs in --deps run instead"
  fi
  command -v ninja > /dev/null && generator=(-G Ninja)
  if [ -n "$deps" ]; then
    export CPLUS_INCLUDE_PATH=$deps/usr/include:$deps/usr/include/$(uname -m)-linux-gnu
    export LIBRARY_PATH=$deps/usr/lib/$(uname -m)-linux-gnu
    export LD_LIBRARY_PATH=$LIBRARY_PATH
    export PKG_CONFIG_PATH=$LIBRARY_PATH/pkgconfig
    generator+=("-DCMAKE_PREFIX_PATH=$deps/usr")
    command -v pkg-config > /dev/null ||
      generator+=("-DPKG_CONFIG_EXECUTABLE=$deps/usr/bin/pkgconf")
  fi
  # CAF 0.17 needs these headers, which standard libraries since GCC 13 no longer include indirectly.
  targets=(troupe test_gpu test_torch test_parity bench_gpu_kernels bench_model_flops)
  cmake -S . -B "$work/build" "${generator[@]}" -DTROUPE_TORCH="$torch" -DTROUPE_TORCH_CUDA=ON \
    -DTROUPE_WERROR=OFF -DCMAKE_CUDA_ARCHITECTURES="$(compute_capability)" \
    -DCMAKE_CXX_FLAGS="-include cstdint -include stdexcept" &&
    cmake --build "$work/build" -j "$(nproc)" --target "${targets[@]}" | tail -40 &&
    [ "${PIPESTATUS[0]}" -eq 0 ] && echo "built with $(c++ --version | head -1)"
}

compute_capability() {
  nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | head -1 | tr -d . |
    grep -E '^[0-9]+$' || echo 90
}

part_kernels() { program tests/test_gpu "[gpu]"; }

part_sanitizer() {
  local tool
  tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null) ||
    skip "compute-sanitizer is not on this machine"
  wrapper=("$tool" --tool memcheck --error-exitcode 9)
  program tests/test_gpu "[gpu]"
}

part_torch() { program tests/test_torch "[gpu]"; }

part_parity() {
  local file=$work/results/parity.txt
  program tests/test_parity "[gpu]" > "$file"
  local rc=$?
  cat "$file"
  [ $rc -eq 0 ] || return $rc
  # Without a device the test runs on the CPU and reports it.
  grep '^parity on device' "$file"
}

part_bandwidth() {
  program bench/bench_gpu_kernels --commit "$commit" --json "$work/results/bandwidth.json"
}

# Settings that all runs on a device share. Rows fill the context; no held-out set.
vlm_settings() {
  echo "--set run.dir=$work/runs --set data.train=$work/vlm_data/train.json" \
    "--set cluster.backend=cuda --set run.precision=bfloat16"
}

vlm_data() {
  troupe check configs/gpu/vlm_1b.toml --print-config > "$work/vlm.toml" || return 1
  [ -f "$work/vlm_data/train.json" ] ||
    "$python" bench/vlm_data.py "$work/vlm.toml" "$work/vlm_data" || return 1
  program bench/bench_model_flops configs/gpu/vlm_1b.toml \
    "data.train=\"$work/vlm_data/train.json\"" > "$work/flops.json"
}

# train CONFIG NAME SETTINGS...: runs, and writes step times and losses to results/NAME.json.
train() {
  local config=$1 name=$2
  shift 2
  # shellcheck disable=SC2046  # settings are words
  troupe train "$config" $(vlm_settings) --set run.name="$name" "$@" || return 1
  run=$(ls -d "$work/runs/$name"-2* | tail -1)
  # These gigabytes are not needed.
  rm -rf "$run/weights.safetensors" "$run/checkpoints"
  troupe trace sql "$run" "$idle_query" > "$work/results/$name.idle" || return 1
  troupe trace summary "$run" | tee "$work/results/$name.summary" || return 1
  "$python" bench/gpu_report.py run "$run" "$work/results/$name.idle" "$work/results/$name.json" \
    "$work/flops.json"
}
# For each step, in nanoseconds: the time between its first and its last work, and the part of it in
# which the device ran nothing except copies of offloaded state; and the most memory in use at the end of
# any work.
idle_query="with w as (select step, begin_ns b, end_ns e, memory_bytes m, max(end_ns) over
  (partition by step order by begin_ns rows between unbounded preceding and 1 preceding) before
  from work where step is not null and kind not in ('offload', 'restore', 'checkpoint'))
  select step, max(e) - min(b) as span,
  sum(max(b - coalesce(before, b), 0)) as idle, max(m) as memory from w group by step"
idle_query=${idle_query//$'\n'/ }

part_vlm() { vlm_data && train configs/gpu/vlm_1b.toml vlm --set run.steps=12; }

part_eager() {
  local mixed failed=0
  [ -f "$work/flops.json" ] || vlm_data || return 1
  for mixed in autocast weights; do
    "$python" bench/vlm_eager.py "$work/vlm.toml" --data "$work/vlm_data" --steps 10 \
      --mixed $mixed --json "$work/results/eager_$mixed.json" \
      --flops "$("$python" -c 'import json,sys; print(json.load(open(sys.argv[1]))["flops"])' \
        "$work/flops.json")" || failed=1
  done
  return $failed
}

part_offload() {
  local what ahead
  [ -f "$work/flops.json" ] || vlm_data || return 1
  # A short language model: the offloaded share is larger, and there is less to initialise.
  for what in none parameters state; do
    ahead=(--set modules.vision.offload_ahead=1)
    [ $what != none ] || ahead=()  # refused without offloading
    train configs/gpu/vlm_1b_shared.toml offload_$what --set run.steps=10 \
      --set modules.language.layers=6 --set modules.vision.offload=$what "${ahead[@]}" || return 1
  done
}

# Eight ranks on one device. Their losses after a kill are those of a job that loses nothing, but for
# the order of sums on the device.
part_recovery() {
  local job common=(train configs/shapes.toml --set run.dir="$work/runs" --set run.steps=40
    --set cluster.backend=cuda --set cluster.ranks_per_gpu=8 --set checkpoint.every=10
    --set data.held_out='""')
  troupe "${common[@]}" --set run.name=undisturbed || return 1
  troupe "${common[@]}" --set run.name=killed --set checkpoint.replicas=1 --local 2 --restarts 1 \
    > "$work/results/killed.txt" 2>&1 &
  job=$!
  for _ in $(seq 300); do
    grep -qs "^step 15/" "$work/results/killed.txt" && break
    kill -0 $job 2> /dev/null || break
    sleep 0.1
  done
  kill -KILL "$(awk '$1 == "n1" {print $NF; exit}' "$work/results/killed.txt")"  # the table's pid
  wait $job
  local rc=$?
  cat "$work/results/killed.txt"
  [ $rc -eq 0 ] && grep "^resuming after step" "$work/results/killed.txt" || return 1
  troupe trace summary "$(ls -d "$work"/runs/killed-2* | tail -1)" | grep -E "^checkpoint|mirrors"
  "$python" bench/gpu_report.py same "$(ls -d "$work"/runs/undisturbed-2* | tail -1)" \
    "$(ls -d "$work"/runs/killed-2* | tail -1)"
}

part_curve() {
  local precision
  for precision in float32 bfloat16; do
    troupe train configs/shapes_inline.toml --set run.dir="$work/runs" \
      --set run.name=curve_$precision --set run.precision=$precision --set run.steps=200 \
      --set cluster.backend=cuda --set cluster.ranks=1 --set modules.language.ranks=0 \
      --set "modules.language.layout={tp=1}" --set data.held_out='""' || return 1
  done
  "$python" bench/gpu_report.py curve "$(ls -d "$work"/runs/curve_float32-2* | tail -1)" \
    "$(ls -d "$work"/runs/curve_bfloat16-2* | tail -1)" "$work/results/curve.json"
}

if [ "${1:-}" = --part ]; then
  "part_$2"
  exit
fi
main "$@"
exit
