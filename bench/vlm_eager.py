#!/usr/bin/env python3
"""The model of a configuration in plain PyTorch eager, for comparison with Troupe.

    troupe check CONFIG --print-config > resolved.toml
    bench/vlm_data.py resolved.toml FOLDER
    bench/vlm_eager.py resolved.toml --data FOLDER [--steps N] [--json FILE]

One vision transformer, a projector and one Llama, on one device: the same products, the same loss,
AdamW with the same values and schedule. With --weights (a safetensors file that Troupe wrote) it
starts from these, and its losses are Troupe's to rounding. Tensors have Troupe's names.

--mixed selects the use of bfloat16: "none"; "autocast" (weights in float32, cast when
used, gradients in float32); or "weights" (bfloat16 weights and gradients, float32 masters for
the optimizer). The head sees only rows that have a label, as in Troupe.
"""

import argparse
import contextlib
import json
import math
import pathlib
import statistics
import sys
import time
import tomllib

try:
    import torch
except ModuleNotFoundError:
    sys.exit("vlm_eager.py: python3 has no PyTorch (pip install torch)" if "--help" not in sys.argv
             and "-h" not in sys.argv else __doc__)

import gpu_peak
import vlm_data
import vlm_model
from vlm_model import FLOAT

def load_batches(config, folder, device):
    """The global batch as microbatches on the device, and its number of labels."""
    _, vision = vlm_data.module_of(config, "vit")
    rows = json.loads((folder / "train.json").read_text())
    mean, std = (torch.tensor(v)[:, None, None] for v in (vlm_data.CLIP_MEAN, vlm_data.CLIP_STD))
    samples = []
    for row in rows:
        size, pixels = vlm_data.read_png(folder / row["image"])
        image = torch.frombuffer(bytearray(pixels), dtype=torch.uint8).view(size, size, 3)
        samples.append((*vlm_data.tokens_of(row, vision),
                        (image.permute(2, 0, 1) / 255.0 - mean) / std))
    if len(samples) != vlm_data.global_batch(config):
        raise SystemExit(f"{folder}: expected {vlm_data.global_batch(config)} rows, one for each "
                         f"sample of the global batch, got {len(samples)}")
    step = config["schedule"]["micro_batch_size"]
    batches = []
    for begin in range(0, len(samples), step):
        tokens, labels, images = zip(*samples[begin:begin + step])
        tokens, labels = torch.tensor(tokens), torch.tensor(labels).flatten()
        positions = (tokens.flatten() == vlm_data.PLACEHOLDER).nonzero().flatten()
        labelled = (labels != vlm_data.NO_LABEL).nonzero().flatten()
        batches.append([t.to(device) for t in (tokens, positions, torch.stack(images),
                                               labels[labelled], labelled)])
    return batches, sum(len(batch[4]) for batch in batches), sum(b[0].numel() for b in batches)


class Optimizer:
    """AdamW, clipping and learning rates from [optimizer] and [modules.X.optimizer]."""

    def __init__(self, config, weights, masters):
        self.settings, self.config = config["optimizer"], config
        self.weights = weights
        self.masters = ({n: w.detach().to(FLOAT, copy=True) for n, w in weights.items()}
                        if masters else weights)
        groups = {}
        for name, value in self.masters.items():
            owner = name.split(".")[0].split("_to_")[0]
            own = config["modules"][owner].get("optimizer", {})
            decay = own.get("weight_decay", self.settings["weight_decay"])
            key = (own.get("learning_rate", self.settings["learning_rate"]),
                   own.get("min_learning_rate", self.settings["min_learning_rate"]),
                   decay if value.dim() > 1 else 0.0)
            groups.setdefault(key, []).append(value)
        self.adamw = torch.optim.AdamW(
            [{"params": params, "lr": 0.0, "most": key[0], "least": key[1],
              "weight_decay": key[2]} for key, params in groups.items()],
            betas=tuple(self.settings["betas"]), eps=self.settings["epsilon"], fused=True)

    def factor(self, step):
        warmup, steps = self.settings["warmup_steps"], self.config["run"]["steps"]
        if step < warmup:
            return (step + 1) / warmup
        if self.settings["schedule"] == "constant":
            return 1.0
        remaining = max(steps - warmup, 1)
        return 0.5 * (1.0 + math.cos(math.pi * min(step - warmup, remaining) / remaining))

    def step(self, step):
        """Returns the norm of the gradients before clipping, a tensor of the device."""
        if self.masters is not self.weights:
            for name, weight in self.weights.items():
                self.masters[name].grad = weight.grad.to(FLOAT)
        norm = torch.nn.utils.get_total_norm([w.grad for w in self.masters.values()])
        if self.settings["clip_norm"] > 0.0:
            torch.nn.utils.clip_grads_with_norm_(self.masters.values(), self.settings["clip_norm"],
                                                 norm)
        for group in self.adamw.param_groups:
            group["lr"] = group["least"] + self.factor(step) * (group["most"] - group["least"])
        self.adamw.step()
        if self.masters is not self.weights:
            with torch.no_grad():
                torch._foreach_copy_(list(self.weights.values()), list(self.masters.values()))
        for weight in self.weights.values():
            weight.grad = None
        return norm


def train(config, arguments, device):
    torch.manual_seed(config["run"]["seed"])
    shapes = vlm_model.parameter_shapes(config)
    values = (vlm_model.read_safetensors(arguments.weights, device) if arguments.weights
              else vlm_model.initial_values(shapes, device, 1))
    if {name: tuple(value.shape) for name, value in values.items()} != shapes:
        wrong = sorted(values.keys() ^ shapes.keys()) or "shapes"
        raise SystemExit(f"{arguments.weights}: expected the configuration's tensors, "
                         f"wrong: {wrong}")
    low = arguments.mixed == "weights"
    weights = {name: value.to(torch.bfloat16 if low else FLOAT).requires_grad_()
               for name, value in values.items()}
    model = vlm_model.Model(config, weights)
    optimizer = Optimizer(config, weights, masters=low)
    batches, labels, tokens = load_batches(config, arguments.data, device)
    autocast = (torch.autocast(device.type, torch.bfloat16) if arguments.mixed == "autocast"
                else contextlib.nullcontext())
    losses, seconds = [], []
    for step in range(arguments.steps):
        gpu_peak.wait(device)
        begin = time.perf_counter()
        total = torch.zeros((), device=device)
        for batch in batches:
            with autocast:
                loss = model.loss(batch) / labels
            loss.backward()
            total += loss.detach()
        optimizer.step(step)
        losses.append(total.item())  # waits for the device
        seconds.append(time.perf_counter() - begin)
    return losses, seconds, tokens, sum(math.prod(shape) for shape in shapes.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="a configuration with all values, as --print-config prints")
    parser.add_argument("--data", type=pathlib.Path, required=True,
                        help="a folder that bench/vlm_data.py wrote")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=2, help="steps that are not timed")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--mixed", choices=("none", "autocast", "weights"), default="none")
    parser.add_argument("--weights", help="start from this safetensors file")
    parser.add_argument("--flops", type=float, help="of a step, as bench_model_flops counts them")
    parser.add_argument("--json", type=pathlib.Path, help="write the result here")
    arguments = parser.parse_args()
    config = tomllib.loads(pathlib.Path(arguments.config).read_text())
    device = torch.device(arguments.device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    losses, seconds, tokens, parameters = train(config, arguments, device)
    timed = seconds[arguments.warmup:] or seconds
    median = statistics.median(timed)
    result = {
        "program": "eager", "mixed": arguments.mixed, "torch": torch.__version__,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "parameters": parameters, "tokens_per_step": tokens, "loss": losses,
        "ms_per_step": [1e3 * s for s in seconds], "warmup": arguments.warmup,
        "median_ms": 1e3 * median, "tokens_per_second": tokens / median,
    }
    if device.type == "cuda":
        result["peak_memory_bytes"] = torch.cuda.max_memory_allocated(device)
    if arguments.flops:
        peak, source = gpu_peak.peak_of(device)
        result |= {"flops_per_step": arguments.flops, "peak_flops": peak, "peak_source": source,
                   "mfu": arguments.flops / (median * peak)}
    text = json.dumps(result, indent=1)
    print(text, flush=True)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    print(f"{arguments.mixed}: {1e3 * median:.1f} ms per step, loss {losses[-1]:.4f} after "
          f"{len(losses)} steps", file=sys.stderr)


if __name__ == "__main__":
    main()
