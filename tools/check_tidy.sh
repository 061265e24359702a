#!/usr/bin/env bash
# Runs clang-tidy 14 on the product's sources that changed.
#   tools/check_tidy.sh              sources changed since the commit in .ci/tidy_base, latest first
#   tools/check_tidy.sh --all        every source, without a limit of time
#   tools/check_tidy.sh FILE...      these sources
#
# - A changed header stands for the .cpp of the same name. Sources that this machine does not compile
#   (no CUDA, no libtorch) are counted and left out.
# - clang-tidy reads units of up to twelve sources, as the build does: most of its time goes into the
#   headers of CAF and libtorch. So it also looks at the other sources of a unit.
# - After TIDY_SECONDS (270) no unit is started, and 30 s later those that still run are ended. The
#   last line says how many units were not looked at; they do not fail the check.
# - clang 14 cannot read parts of libtorch as C++20. What it says of system headers is left out.
# - Exit code: 0 nothing found, 1 something found, 2 the compile database cannot be made,
#   77 clang-tidy 14 or the base commit is missing.
#
# Move the base forward only after the whole tree has been checked:
#   tools/check_tidy.sh --all && git rev-parse HEAD > .ci/tidy_base
set -euo pipefail
cd "$(dirname "$0")/.."

tidy=$(command -v clang-tidy-14 || command -v clang-tidy || true)
if [ -z "$tidy" ] || ! "$tidy" --version | grep -q 'version 14\.'; then
  echo "tidy: no clang-tidy 14 here, nothing is checked"
  exit 77
fi

folders=(actors answers app checkpoint cli cluster configs data feed files gpu kinds layout messages models modules
         plan schedule trace transport)
seconds=${TIDY_SECONDS:-270}
began=$(date +%s)
case ${1:-} in
  --all)
    seconds=1000000
    files=$(git ls-files -- "${folders[@]}")
    ;;
  '')
    commit=$(cat .ci/tidy_base)
    if ! base=$(git merge-base "$commit" HEAD 2>/dev/null); then
      echo "tidy: commit $commit of .ci/tidy_base is not here, nothing is checked"
      exit 77
    fi
    files=$(git diff --name-only HEAD -- "${folders[@]}"
            git ls-files --others --exclude-standard -- "${folders[@]}"
            git log --format= --name-only "$base..HEAD" -- "${folders[@]}"
            git diff --name-only "$base" -- "${folders[@]}")
    ;;
  *) files=$(printf '%s\n' "$@") ;;
esac
sources=$(sed -nE 's/\.(cpp|hpp)$/.cpp/p' <<<"$files" | awk '!seen[$0]++' |
          while read -r file; do [ ! -f "$file" ] || echo "$file"; done)
[ -n "$sources" ] || { echo "tidy: no source has changed"; exit 0; }

# clang cannot read GCC's precompiled headers; GCC's warnings are the build's business.
build=build/tidy
mkdir -p "$build"
if ! cmake -S . -B "$build" -G Ninja -DTROUPE_UNITY=ON -DTROUPE_CCACHE=OFF -DTROUPE_WERROR=OFF \
     -DBUILD_TESTING=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
     >"$build/configure.log" 2>&1; then
  echo "tidy: cmake made no compile database:"
  tail -20 "$build/configure.log"
  exit 2
fi

# "SOURCE UNIT" for every source that is compiled here.
pairs=$(grep -oE "\"file\": \"$PWD/[^\"]+\.(cpp|cxx)" "$build/compile_commands.json" |
        sed "s|\"file\": \"$PWD/||" | while read -r unit; do
  case $unit in
    "$build"/*) sed -nE "s|^#include \"$PWD/(.+)\"|\1 $unit|p" "$unit" ;;
    *) echo "$unit $unit" ;;
  esac
done)
known=$(cut -d' ' -f1 <<<"$pairs")
foreign=$(grep -vcFxf <(echo "$known") <<<"$sources" || true)
units=$(awk 'NR == FNR { unit[$1] = $2; next } $1 in unit && !seen[unit[$1]]++ { print unit[$1] }' \
        <(echo "$pairs") <(echo "$sources"))

# Leaves one file per unit that was looked at: NAME.good or NAME.bad.
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
end=$((began + seconds))
ours="^$PWD/($(IFS='|'; echo "${folders[*]}"))/"
check() { # UNIT
  local left=$((end - $(date +%s))) name=${1//\//-} rc=0
  [ "$left" -gt 0 ] || return 0
  timeout $((left + 30)) "$tidy" -p "$build" --quiet --header-filter="$ours" \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unused-command-line-argument \
    --extra-arg=-ferror-limit=0 "$1" \
    >"$results/$name.running" 2>/dev/null || rc=$?
  if [ "$rc" -eq 124 ]; then
    rm "$results/$name.running"
  elif [ "$rc" -ne 0 ] && { grep -qE "$ours.*: (error|warning): " "$results/$name.running" ||
                            ! grep -qE ': error: ' "$results/$name.running"; }; then
    mv "$results/$name.running" "$results/$name.bad"
  else
    mv "$results/$name.running" "$results/$name.good"
  fi
}
export -f check
export tidy build results end ours
[ -z "$units" ] || xargs -P "$(nproc)" -I{} bash -c 'check {}' <<<"$units"

good=$(find "$results" -name '*.good' | wc -l)
bad=$(find "$results" -name '*.bad' | wc -l)
find "$results" -name '*.bad' -exec cat {} +
left_out=$(($(grep -c . <<<"$units" || true) - good - bad))
line="tidy: $good units are clean, $bad are not"
[ "$left_out" -eq 0 ] || line+="; time is up, $left_out were not looked at"
[ "$foreign" -eq 0 ] || line+="; $foreign sources are not compiled here"
echo "$line"
[ "$bad" -eq 0 ]
