"""Records what transformers, as it is, computes in float32 with the folders of record_models.py.

    python tools/oracle/record_float32.py tests/oracle

Writes float32.json into the folder: for each language model and whole model the summed loss, and the
mean losses and gradient norms of five steps of AdamW, on the inputs of its expected.safetensors.
"""
import json
import sys
from pathlib import Path

import tiles
import torch
import transformers
from safetensors.torch import load_file
from steps import five_steps, sum_of_losses


def record(folder):
    architecture = json.loads((folder / "config.json").read_text())["architectures"][0]
    model = getattr(transformers, architecture).from_pretrained(folder, dtype=torch.float32)
    given = load_file(folder / "expected.safetensors")
    inputs = {"input_ids": given["tokens"], "use_cache": False}
    if "images" in given:
        inputs["pixel_values"] = given["images"]
    if "sizes" in given:
        inputs["pixel_values"] = tiles.padded(given["images"], tiles.SIZES)
        inputs["image_sizes"] = given["sizes"]

    def loss_of():
        return sum_of_losses(model(**inputs).logits, given["labels"])

    loss = loss_of().item()
    steps, _ = five_steps(model, loss_of, (given["labels"] != -100).sum())
    return {"loss": loss, "losses": steps["losses"].tolist(), "norms": steps["norms"].tolist()}


def main():
    torch.set_num_threads(1)
    out = Path(sys.argv[1])
    found = {}
    for path in sorted(out.glob("*/expected.safetensors")):
        if "labels" in load_file(path):
            found[path.parent.name] = record(path.parent)
    (out / "float32.json").write_text(json.dumps(found, indent=1) + "\n")


main()
