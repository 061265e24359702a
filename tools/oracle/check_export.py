"""Loads a folder that `troupe export` wrote, and says what transformers misses in it: also its image
processor, whose class must be that of the model.

    python tools/oracle/check_export.py DIR

Prints the class, the tensors that are missing or unexpected, and greedy tokens after a few ids.
Exit code: 0 nothing is missing or unexpected, 1 something is.
"""
import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoModel

folder = Path(sys.argv[1])
config = json.loads((folder / "config.json").read_text())
kind = getattr(transformers, config["architectures"][0], AutoModel)
model, info = kind.from_pretrained(folder, output_loading_info=True)
wrong = {key: sorted(info[key]) for key in ("missing_keys", "unexpected_keys", "mismatched_keys")}
print(kind.__name__, transformers.__version__, wrong)
if hasattr(model, "generate"):
    tokens = torch.arange(1, 9).view(1, 8)
    print(model.generate(tokens, do_sample=False, max_new_tokens=8, pad_token_id=0)[0].tolist())
if "vision_config" in config:
    name = json.loads((folder / "preprocessor_config.json").read_text())["image_processor_type"]
    image_processor = getattr(transformers, name).from_pretrained(folder)
    stated = json.loads((folder / "processor_config.json").read_text())["processor_class"]
    wrong["processor_class"] = [] if stated == kind.__name__.replace(
        "ForConditionalGeneration", "Processor") else [stated]
    tiles = getattr(image_processor, "image_grid_pinpoints", None)
    if tiles != config.get("image_grid_pinpoints"):
        wrong["image_grid_pinpoints"] = tiles
    print(name, stated)
sys.exit(any(wrong.values()))
