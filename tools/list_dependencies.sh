#!/usr/bin/env bash
# Prints docs/dependencies.md: the packages of tools/install_packages.sh, with their versions and licences from dpkg
# on this machine. --check: fails if that page lists other packages or licences; versions may differ.
set -euo pipefail
cd "$(dirname "$0")/.."

licence() { # PACKAGE
  local file=/usr/share/doc/$1/copyright found
  # The licence of "Files: *" in a machine-readable copyright file.
  found=$(awk 'BEGIN { RS = "" } /(^|\n)Files: *\*/' "$file" | sed -n 's/^License: *//p' | head -1)
  [ -n "$found" ] || found=$(sed -n 's/^License: *//p' "$file" | sort -u | head -3 | paste -sd,)
  [ -n "$found" ] || found=$(grep -oE 'common-licenses/[A-Za-z0-9.-]+' "$file" | head -1 | sed 's#.*/##; s/[.]$//')
  echo "${found:-see $file}"
}

page() {
  cat <<'HEAD'
# Dependencies

Everything comes from Debian 12's packages (`tools/install_packages.sh`); nothing is copied into this repository.
`tools/list_dependencies.sh` writes this page, a test compares it. Licences are those that Debian records for a
package's main part. Troupe's own licence is [Apache-2.0](../LICENSE). The reasons are in
[0004](decisions/0004-dependencies.md), [0010](decisions/0010-new-libraries.md),
[0015](decisions/0015-sqlite.md), [0041](decisions/0041-tokenizers-of-folders.md), [0073](decisions/0073-rows-by-index.md)
and [0077](decisions/0077-parquet.md).

| package | version | licence | for |
|---|---|---|---|
HEAD
  sed -n '/^packages=(/,/^)/p' tools/install_packages.sh | sed '1d;$d' | while read -r line; do
    local names=${line%%#*} reason=""
    [[ $line == *#* ]] && reason=${line#*# }
    for name in $names; do
      printf '| %s | %s | %s | %s |\n' "$name" "$(dpkg-query -W -f '${Version}' "$name")" "$(licence "$name")" \
        "$reason"
    done
  done
  cat <<'TAIL'

Optional: CUDA and NCCL (NVIDIA's licences; loaded where `backend = "cuda"` is built), PyTorch in place of Debian's
libtorch (`-DTROUPE_TORCH=DIR`, BSD-3-Clause), Arrow for Parquet files (`-DTROUPE_ARROW=DIR`, Apache-2.0), clang with libFuzzer
for `tests/fuzz` (Apache-2.0 with LLVM exception).
TAIL
}

if [ "${1:-}" = --check ]; then
  without_versions() { awk -F'|' -v OFS='|' '/^\|/ { $3 = "" } { print }'; }
  diff <(page | without_versions) <(without_versions < docs/dependencies.md) ||
    { echo "docs/dependencies.md is old: tools/list_dependencies.sh > docs/dependencies.md" >&2; exit 1; }
else
  page
fi
