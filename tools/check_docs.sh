#!/usr/bin/env bash
# Runs the commands of the documentation: every command in a ```sh block of README.md
# and docs/*.md, each file in a separate copy of the checkout.
#   tools/check_docs.sh BUILD_FOLDER [FILE...]
# - A command must exit with 0, or with N if its line ends in "# exit N".
# - An ```output block right after an ```sh block is the expected output of that block, both streams
#   together; "..." in it matches anything, and a line "..." any number of lines.
# - Lines that begin with make, git or cd troupe are skipped: they build, and CI runs them itself.
# - "port=N" sets port to a free port, so that concurrent checks on one machine do not collide.
# - A comment from "<!-- sh" to "-->" is an sh block that readers do not see, for example an emulated
#   launcher.
# One command per line (a backslash at its end joins the next); blocks of a file share one shell.
set -u

build=$(cd "$1" && pwd) || exit 2
shift
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$root" || exit 2
files=("$@")
[ ${#files[@]} -gt 0 ] || for file in README.md docs/*.md; do
  [ -f "$file" ] && files+=("$file")
done

# Turns a Markdown file into a script of calls: begin LINE, run LINE EXIT COMMAND, expect LINE TEXT.
cat > "$scratch/to_script.awk" <<'AWK'
function quoted(text) { gsub(/\047/, "\047\\\047\047", text); return "\047" text "\047" }
function command(text, line,   wanted) {
  wanted = 0
  if (text ~ /^port=[0-9]+$/) text = "port=$(free_port)"
  if (match(text, /# exit [0-9]+ *$/)) wanted = substr(text, RSTART + 7) + 0
  print "announce " line " " quoted(text)
  print text
  print "status=$?; judge " line " " wanted " $status"
}
/^ *```/ || (block == "" && /^<!-- sh$/) || (hidden && /^-->$/) {
  hidden = /^<!-- sh$/; sub(/^<!-- sh$/, "```sh")
  if (block == "sh") print "end_block"
  if (block == "output") print "expect " first " " quoted(expected)
  if (block != "") { after_sh = (block == "sh"); block = ""; next }
  block = $0; sub(/^ *```/, "", block); sub(/ *$/, "", block)
  if (block == "output" && !after_sh) { print "stray " NR; block = "other" }
  if (block == "") block = "other"
  if (block == "sh") print "begin_block"
  first = NR + 1; expected = ""; pending = ""
  next
}
block == "sh" {
  if (pending == "") start = NR
  pending = pending $0
  if (pending ~ /\\$/) { sub(/\\$/, "", pending); next }
  if (pending !~ /^ *(#.*)?$/ && pending !~ /^ *(make|git|cd troupe)( |$)/) command(pending, start)
  pending = ""
}
block == "output" { expected = expected $0 "\n" }
block == "" && !/^ *$/ { after_sh = 0 }
AWK

# Functions that the scripts call. Descriptor 3 is the terminal; the commands write into a file. Failures are
# kept and printed again at the end, where readers of a long log find them.
cat > "$scratch/verbs.sh" <<'SH'
failures=0
fail() { printf 'FAILED %s:%s: %s\n' "$doc" "$1" "$2" | tee -a "$report" >&3; failures=$((failures + 1)); }
begin_block() { exec > "$output" 2>&1; }
end_block() { exec >&3 2>&3; }
announce() { began=$SECONDS; command=$2; }
judge() {
  if [ "$3" -eq "$2" ]; then
    printf '%3d s  %s:%s  %s\n' $((SECONDS - began)) "$doc" "$1" "$command" >&3
  else
    fail "$1" "expected exit code $2, got $3: $command"
    sed 's/^/    /' "$output" | tee -a "$report" >&3
  fi
}
expect() {
  local actual pattern=$2
  actual=$(grep -v '^troupe: warning: [0-9]* ranks on ' "$output")$'\n'
  pattern=${pattern//\\/\\\\}
  pattern=${pattern//\*/\\*}
  pattern=${pattern//\?/\\?}
  pattern=${pattern//\[/\\[}
  pattern=${pattern//(/\\(}
  pattern=${pattern//)/\\)}
  pattern=${pattern//|/\\|}
  pattern=$'\n'${pattern//.../*}
  pattern=${pattern//$'\n*\n'/$'\n?(*\n)'}
  pattern=${pattern#$'\n'}
  # shellcheck disable=SC2053  # a pattern on purpose
  [[ $actual == $pattern ]] && return
  fail "$1" "the commands above print something else"
  diff <(printf '%s' "$2") <(printf '%s' "$actual") | sed 's/^/    /' | tee -a "$report" >&3
}
free_port() {
  local port
  for port in $(shuf -i 20000-29999 -n 50); do
    (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null || break
  done
  echo "$port"
}
stray() { fail "$1" "an output block without commands right before it"; }
SH

failed=0
for doc in "${files[@]}"; do
  grep -q '^ *```sh *$' "$doc" || continue
  copy=$scratch/copy
  rm -rf "$copy"
  mkdir -p "$copy/build"
  tar -cf - --exclude=./build --exclude=./runs --exclude=./.git . | tar -xf - -C "$copy"
  ln -s "$build" "$copy/build/cpu"
  {
    cat "$scratch/verbs.sh"
    awk -f "$scratch/to_script.awk" "$doc"
    echo '[ "$failures" -eq 0 ]'
  } > "$scratch/script.sh"
  (cd "$copy" && PATH=$build:$PATH doc=$doc output=$scratch/output report=$scratch/report \
    bash "$scratch/script.sh" 3>&1) || failed=1
done
[ ! -s "$scratch/report" ] || { echo "failures:"; cat "$scratch/report"; }
exit $failed
