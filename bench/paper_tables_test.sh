#!/usr/bin/env bash
# Tests bench/paper_tables.sh on tables that are made up: the shape of its output, settings that are given
# or missing, rows and files that are wrong.
#   bench/paper_tables_test.sh BUILD_DIR
set -u
build=$(cd "$1" && pwd) || exit 2
cd "$(dirname "$0")/.." || exit 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

fail() { echo "FAILED: $1"; failures=$((failures + 1)); }
expect() { # WHAT PATTERN FILE
  grep -qE "$2" "$3" && return
  fail "$1: expected a line like \"$2\" in $3:"
  sed 's/^/    /' "$3"
}
expect_code() { # WHAT WANTED GOT
  [ "$2" -eq "$3" ] || fail "$1: expected exit code $2, got $3"
}
predict() { # OUTPUT ARGUMENTS...
  local out=$1
  shift
  bench/paper_tables.sh "$build" "$@" > "$out" 2> "$out.err"
}
predicted_ms() { # ID MODE FILE
  awk -F, -v id="$1" -v mode="$2" '$1 == id && $2 == mode { print $3 }' "$3"
}
more() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'; }

# Columns in another order, one of them unknown; no measured values; an unknown size; an empty layout.
mkdir "$scratch/tables"
cat > "$scratch/tables/table_a2.csv" << 'CSV'
remark,id,seq_len,encoder_params,llm_params,vision_pct,gpus_h,gpus_c,gbs,nmb,h_enc_tp,h_enc_cp,h_enc_pp,h_enc_dp,h_llm_tp,h_llm_cp,h_llm_pp,h_llm_dp,c_enc_tp,c_enc_cp,c_enc_pp,c_enc_dp,c_llm_tp,c_llm_cp,c_llm_pp,c_llm_dp,step_h_ms,step_c_ms,peak_mem_h_gb
"plain, quoted",A2-91,4096,1,14,50,16,16,32,,4,1,1,4,4,1,1,4,1,1,1,16,4,1,2,2,5000,4000.5,50
,A2-92,4096,1,14,60,16,16,32,,4,1,1,4,4,1,1,4,1,1,1,16,4,1,2,2,,,
,A2-93,4096,1,13.5,50,16,16,32,,4,1,1,4,4,1,1,4,1,1,1,16,4,1,2,2,,,
,A2-94,4096,1,14,50,16,16,32,,4,1,1,4,4,1,1,4,1,1,1,16,,,,,5000,,
CSV
# The line ends of another system.
sed 's/$/\r/' > "$scratch/tables/table_a4.csv" << 'CSV'
id,encoder_params,llm_params,seq_len,vision_pct,gpus_h,gpus_nc,gbs,h_enc_tp,h_enc_cp,h_enc_pp,h_enc_dp,h_llm_tp,h_llm_cp,h_llm_pp,h_llm_dp,nc_enc_tp,nc_enc_cp,nc_enc_pp,nc_enc_dp,nc_llm_tp,nc_llm_cp,nc_llm_pp,nc_llm_dp,step_h_ms,step_nc_ms
A4-91,3,120,4096,50,64,72,64,8,1,1,2,8,1,4,2,1,1,1,8,8,1,4,2,9000,9000
CSV
cat > "$scratch/tables/table_a5.csv" << 'CSV'
id,encoder_params,llm_params,seq_len,vision_pct,gpus_h,gpus_c,gpus_nc,gbs,nc_enc_tp,nc_enc_cp,nc_enc_pp,nc_enc_dp,c_equals_h,nc_gain_tokens_pct,best
A5-91,1,14,4096,50,16,16,24,32,1,1,1,8,0,-10,C
A5-92,12,14,4096,50,16,16,24,32,1,1,1,8,0,,C
CSV
cat > "$scratch/tables/inferred_settings.csv" << 'CSV'
id,mode,stack,llm_layer_split,encoder_regime
A2-91,H,slow,,A
A2-91,C,mid,20-28,
A4-91,H,mid,24-24-24-25,B
CSV

predict "$scratch/a" "$scratch/tables" --summary
expect_code "made-up tables" 0 $?
head -n 1 "$scratch/a" > "$scratch/head"
expect "the head" '^id,mode,predicted_ms,measured_ms,predicted_gb,measured_gb$' "$scratch/head"
expect "a row" '^A2-91,H,[0-9]+\.[0-9],5000\.0,[0-9]+\.[0-9],50\.0$' "$scratch/a"
expect "a row" '^A2-91,C,[0-9]+\.[0-9],4000\.5,[0-9]+\.[0-9],$' "$scratch/a"
expect "a row without measured values" '^A2-92,C,[0-9]+\.[0-9],,[0-9]+\.[0-9],$' "$scratch/a"
expect "a mode whose other mode is empty" '^A2-94,H,' "$scratch/a"
expect "a separate encoder" '^A4-91,NC,[0-9]+\.[0-9],9000\.0,' "$scratch/a"
expect "a workload" '^A5-91,NC,[0-9]+\.[0-9],5555\.6,' "$scratch/a"
lines=$(wc -l < "$scratch/a")
[ "$lines" -eq 11 ] || fail "expected a head and 10 rows, got $lines lines"
expect "a size" 'table_a2.csv:4: llm_params: expected one of 7, 14, 32, .*"13.5"' "$scratch/a.err"
expect "an empty layout" 'table_a2.csv:5: c_llm_tp: expected a number, got ""' "$scratch/a.err"
expect "a split" 'llm_layer_split: expected 4 numbers that add up to 96' "$scratch/a.err"
expect "a workload without H" '^A5-92: expected its H among' "$scratch/a.err"
expect "the summary" '^time H: 3 rows, median [0-9.]+ %, worst' "$scratch/a.err"
expect "the summary" '^gain C: 1 rows' "$scratch/a.err"
expect "the summary" '^best of A5-91: ' "$scratch/a.err"

# Settings change what they should; --blind and a folder without the file are the same.
predict "$scratch/b" "$scratch/tables" --blind
expect_code "--blind" 0 $?
more "$(predicted_ms A2-91 H "$scratch/a")" "$(predicted_ms A2-91 H "$scratch/b")" ||
  fail "the slow software is not slower"
more "$(predicted_ms A2-91 C "$scratch/a")" "$(predicted_ms A2-91 C "$scratch/b")" ||
  fail "exposed collectives and an uneven split take no longer"
[ "$(predicted_ms A2-92 C "$scratch/a")" = "$(predicted_ms A2-92 C "$scratch/b")" ] ||
  fail "a row without settings differs from --blind"
rm "$scratch/tables/inferred_settings.csv"
predict "$scratch/c" "$scratch/tables"
cmp -s "$scratch/b" "$scratch/c" || fail "without settings: expected the output of --blind"

# Constants.
echo "linear_efficiency 0.4" > "$scratch/constants"
predict "$scratch/d" "$scratch/tables" --constants "$scratch/constants"
more "$(predicted_ms A2-91 H "$scratch/d")" "$(predicted_ms A2-91 H "$scratch/c")" ||
  fail "a lower efficiency takes no longer"
echo "linear_eficiency 0.4" > "$scratch/constants"
predict "$scratch/e" "$scratch/tables" --constants "$scratch/constants"
expect_code "a constant that does not exist" 1 $?
expect "a constant" 'unknown constant "linear_eficiency"' "$scratch/e.err"

# Wrong files and arguments.
predict "$scratch/f" "$scratch"
expect_code "a folder without tables" 1 $?
expect "a folder without tables" 'expected table_a2.csv, .*found none' "$scratch/f.err"
mkdir "$scratch/other"
printf 'name,value\n1,2\n' > "$scratch/other/table_a3.csv"
predict "$scratch/g" "$scratch/other"
expect_code "another file" 1 $?
expect "another file" 'table_a3.csv: expected a column "id" .*got "name" and others' "$scratch/g.err"
predict "$scratch/h" "$scratch/tables" --sumary
expect_code "an unknown option" 2 $?
bench/paper_tables.sh "$scratch" "$scratch/tables" > "$scratch/i" 2>&1
expect_code "no program" 2 $?
expect "no program" 'ninja -C .* bench_paper_tables' "$scratch/i"

[ "$failures" -eq 0 ] && echo "paper_tables.sh keeps its promises"
exit "$failures"
