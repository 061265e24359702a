#!/usr/bin/env bash
# Runs clang-tidy 14 on the product's sources that changed.
#   tools/check_tidy.sh              sources changed since the commit in .ci/tidy_base, latest first
#   tools/check_tidy.sh --all        every source, without a limit of time
#   tools/check_tidy.sh FILE...      these sources
#
# - A changed header stands for the .cpp of the same name. Sources that this machine does not compile
#   (no CUDA, no libtorch) are counted and left out.
# - After TIDY_SECONDS (270) no source is started, and 30 s later those that still run are ended. The
#   last line says how many sources were not looked at; they do not fail the check.
# - Exit code: 0 nothing found, 1 something found, 2 the compile database cannot be made,
#   77 clang-tidy 14 or the base commit is missing.
#
# The first base is the commit that introduced this check: sources that have not changed since have
# never been run. Move the base forward only after the whole tree has been checked:
#   tools/check_tidy.sh --all && git rev-parse HEAD > .ci/tidy_base
set -euo pipefail
cd "$(dirname "$0")/.."

tidy=$(command -v clang-tidy-14 || command -v clang-tidy || true)
if [ -z "$tidy" ] || ! "$tidy" --version | grep -q 'version 14\.'; then
  echo "tidy: no clang-tidy 14 here, nothing is checked"
  exit 77
fi

folders=(actors app checkpoint cli cluster configs data files gpu kinds layout messages modules plan
         schedule trace transport)
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

# clang reads neither GCC's precompiled headers nor twelve sources as one; GCC's warnings are the
# build's business.
build=build/tidy
mkdir -p "$build"
if ! cmake -S . -B "$build" -G Ninja -DTROUPE_UNITY=OFF -DTROUPE_CCACHE=OFF -DTROUPE_WERROR=OFF \
     -DBUILD_TESTING=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
     >"$build/configure.log" 2>&1; then
  echo "tidy: cmake made no compile database:"
  tail -20 "$build/configure.log"
  exit 2
fi

known=$(grep -oE "\"file\": \"$PWD/[^\"]+" "$build/compile_commands.json" |
        sed "s|\"file\": \"$PWD/||" | sort -u)
checked=$(grep -Fxf <(echo "$known") <<<"$sources" || true)
foreign=$(grep -vcFxf <(echo "$known") <<<"$sources" || true)

# Leaves one file per source that was looked at: NAME.good or NAME.bad.
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
end=$((began + seconds))
check() { # FILE
  local left=$((end - $(date +%s))) name=${1//\//-} rc=0
  [ "$left" -gt 0 ] || return 0
  timeout $((left + 30)) "$tidy" -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option "$1" \
    >"$results/$name.running" 2>/dev/null || rc=$?
  case $rc in
    0) mv "$results/$name.running" "$results/$name.good" ;;
    124) rm "$results/$name.running" ;;
    *) mv "$results/$name.running" "$results/$name.bad" ;;
  esac
}
export -f check
export tidy build results end
[ -z "$checked" ] || xargs -P "$(nproc)" -I{} bash -c 'check {}' <<<"$checked"

good=$(find "$results" -name '*.good' | wc -l)
bad=$(find "$results" -name '*.bad' | wc -l)
find "$results" -name '*.bad' -exec cat {} +
left_out=$(($(grep -c . <<<"$checked" || true) - good - bad))
line="tidy: $good sources are clean, $bad are not"
[ "$left_out" -eq 0 ] || line+="; time is up, $left_out were not looked at"
[ "$foreign" -eq 0 ] || line+="; $foreign are not compiled here"
echo "$line"
[ "$bad" -eq 0 ]
