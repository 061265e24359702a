"""Loads a folder that `troupe export` wrote, and says what transformers misses in it.

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
sys.exit(any(wrong.values()))
