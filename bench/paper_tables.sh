#!/usr/bin/env bash
# Predicts the step times of the tables of arXiv 2605.27678 (bench/README.md).
#   bench/paper_tables.sh BUILD_DIR FOLDER [--blind] [--summary] [--constants FILE]
set -eu
[ $# -ge 1 ] || { echo "usage: bench/paper_tables.sh BUILD_DIR FOLDER [--blind] [--summary]" >&2; exit 2; }
program=$1/bench/bench_paper_tables
[ -x "$program" ] || { echo "$program: no such program; build it with: ninja -C $1 bench_paper_tables" >&2; exit 2; }
shift
exec "$program" "$@"
