#!/usr/bin/env bash
# Checks that bench/vlm_eager.py and Troupe have the same losses from the same weights and rows.
#   bench/vlm_eager_test.sh BUILD_DIR       PYTHON names a python3 with PyTorch; exit 77 without one
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
"$python" -c 'import torch' 2> /dev/null || { echo "$python has no PyTorch: not tested"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
config=configs/gpu/vlm_tiny.toml
settings=(--set run.dir="$scratch/runs" --set data.train="$scratch/data/train.json")

"$build/troupe" check $config --print-config > "$scratch/resolved.toml"
"$python" bench/vlm_data.py "$scratch/resolved.toml" "$scratch/data"
# A step with a tiny learning rate leaves the initial weights.
"$build/troupe" train $config "${settings[@]}" --set run.name=first --set run.steps=1 \
  --set optimizer.learning_rate=1e-30 --set optimizer.weight_decay=0 > /dev/null
"$build/troupe" train $config "${settings[@]}" --set run.name=whole > /dev/null
"$python" bench/vlm_eager.py "$scratch/resolved.toml" --data "$scratch/data" --device cpu \
  --steps 5 --weights "$(ls -d "$scratch"/runs/first-2*)/weights.safetensors" \
  --json "$scratch/eager.json" > /dev/null
"$python" - "$scratch/eager.json" "$(ls -d "$scratch"/runs/whole-2*)/metrics.jsonl" << 'PY'
import json, sys
eager = json.load(open(sys.argv[1]))["loss"]
steps = [line for line in map(json.loads, open(sys.argv[2])) if line["kind"] == "step"]
troupe = [step["loss"] for step in steps]
print("eager ", *(f"{loss:.6f}" for loss in eager))
print("troupe", *(f"{loss:.6f}" for loss in troupe))
worst = max(abs(a - b) / b for a, b in zip(eager, troupe, strict=True))
print(f"worst relative difference {worst:.1e}, expected at most 1e-5")
# Without training there would be nothing to compare but the first step.
sys.exit(worst > 1e-5 or troupe[-1] > 0.99 * troupe[0])
PY
