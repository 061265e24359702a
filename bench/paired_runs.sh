# shellcheck shell=bash disable=SC2154  # steps and repeats are the including script's
# For scripts that compare training runs in pairs; source it from the root of the tree.
#   bench/NAME.sh [BUILD]
# CONFIG, STEPS and REPEATS change the runs. Sets `folder`, which is removed when the script ends.
program=${1:-build/cpu}/troupe
config=${CONFIG:-configs/shapes.toml}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The median of the numbers in stdin, one a line; for an even count the lower of the middle two.
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# The median step time in ms of one run with these arguments, without its first five steps.
step_ms() {
  rm -rf "$folder/runs"
  "$program" train "$config" --set run.steps="$steps" --set run.dir="$folder/runs" "$@" \
    >"$folder/out" 2>&1 || { cat "$folder/out" >&2; exit 1; }
  sed -n 's/.*"kind":"step","step":\([0-9]*\),.*"seconds":\([0-9.e-]*\),.*/\1 \2/p' \
    "$folder"/runs/*/metrics.jsonl | awk '$1 > 5 { print $2 * 1000 }' | median
}

print_conditions() {
  echo "$config, $steps steps, $repeats runs of each, alternating; $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
}

# Column N of the recorded pairs: first, second, ratio.
column() { awk -v c="$1" '{ print $c }' "$folder/pairs"; }
least() { sort -g | head -1; }
most() { sort -g | tail -1; }
