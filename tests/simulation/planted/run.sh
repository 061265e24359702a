#!/bin/bash
# Plants one bug after the other in this checkout, which must be clean, and prints the first seed whose
# simulated world finds it.
#
#   tests/simulation/planted/run.sh BUILD [SEEDS] [NAME...]
set -euo pipefail
cd "$(dirname "$0")/../../.."
build=${1:?usage: run.sh BUILD [SEEDS] [NAME...]}
seeds=${2:-10000}
shift $(($# < 2 ? $# : 2))
[[ -z $(git status --porcelain --untracked-files=no) ]] || { echo "the checkout has changes" >&2; exit 1; }
names=("$@")
if ((${#names[@]} == 0)); then
  for patch in tests/simulation/planted/*.patch; do names+=("$(basename "$patch" .patch)"); done
fi
missed=0
for name in "${names[@]}"; do
  patch=tests/simulation/planted/$name.patch
  git apply -C1 "$patch"
  trap 'git apply -C1 -R "$patch"' EXIT
  cmake --build "$build" --target test_simulation >"$build/planted.log" 2>&1 || { tail -20 "$build/planted.log"; exit 1; }
  found=$(TROUPE_UNTIL_WRONG=1 TROUPE_SEEDS=$seeds "$build/tests/test_simulation" "[.seeds]" 2>&1 | grep -m1 "^seed " || true)
  trap - EXIT
  git apply -C1 -R "$patch"
  [[ -n $found ]] || missed=$((missed + 1))
  echo "$name: ${found:-not found in $seeds worlds}"
done
cmake --build "$build" --target test_simulation >"$build/planted.log" 2>&1
exit $((missed > 0))
