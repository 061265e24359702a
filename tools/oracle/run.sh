#!/usr/bin/env bash
# Makes the recordings of tests/oracle/ again with transformers, tokenizers and PEFT, compares them
# with those that are committed, and gives what this build exports to transformers and PEFT.
#   tools/oracle/run.sh BUILD_FOLDER
# The first run makes a virtual environment in BUILD_FOLDER/oracle, about 6 GB from the package index,
# unless ORACLE_PYTHON names the python of one. The prompts are left out: record_prompts.py needs the
# sources of LLaVA and LLaVA-NeXT.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
python=${ORACLE_PYTHON:-$build/oracle/bin/python}
if [ ! -x "$python" ]; then
  python3 -m venv "$build/oracle"
  "$build/oracle/bin/pip" install --quiet -r tools/oracle/requirements.txt
fi
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
export PYTHONWARNINGS=ignore TRANSFORMERS_VERBOSITY=error HF_HUB_OFFLINE=1

mkdir "$again/pickles" "$again/tokenizers"
for script in models answers adapters images tiles; do
  echo "recording $script"
  "$python" "tools/oracle/record_$script.py" "$again" > "$again/log" || { cat "$again/log"; exit 1; }
done
"$python" tools/oracle/record_tokenizers.py "$again/tokenizers" > /dev/null
"$python" tools/oracle/record_pickles.py "$again/pickles" > /dev/null
"$python" tools/oracle/record_float32.py "$again" > /dev/null
"$python" tools/oracle/record_recipes.py "$again" > /dev/null
"$python" tools/oracle/record_schedules.py > "$again/schedules.txt"
"$python" tools/oracle/compare_recordings.py tests/oracle "$again"

train() {  # NAME KEY=VALUE...: runs/NAME-TIME in $again
  local sets=() name=$1
  shift
  for set in "$@"; do sets+=(--set "$set"); done
  "$build/troupe" train configs/shapes.toml --set run.name="$name" --set run.dir="$again/runs" \
    --set edges.vision.language.through.hidden=64 --set optimizer.learning_rate=0.02 \
    --set run.steps=4 "${sets[@]}" > /dev/null
}
echo "what this build exports"
train base
"$build/troupe" export "$again"/runs/base-* --out "$again/base" > /dev/null
"$python" tools/oracle/check_export.py "$again/base"
train tiles data.image_fit=anyres modules.language.context=256
"$build/troupe" export "$again"/runs/tiles-* --out "$again/tiles" > /dev/null
"$python" tools/oracle/check_export.py "$again/tiles"
train adapters model.from="hf:$again/base" data.tokenizer=bytes data.prompt=lines \
  modules.language.lora.rank=4 modules.vision.frozen=true
"$build/troupe" export "$again"/runs/adapters-* --out "$again/merged" > /dev/null
"$build/troupe" export "$again"/runs/adapters-* --adapters apart --out "$again/apart" > /dev/null
"$python" tools/oracle/check_adapters.py "$again/base" "$again/apart" "$again/merged"
