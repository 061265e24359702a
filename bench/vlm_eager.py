#!/usr/bin/env python3
"""The model of a configuration written plainly in PyTorch eager: what Troupe is compared with.

    troupe check CONFIG --print-config > resolved.toml
    bench/vlm_data.py resolved.toml FOLDER
    bench/vlm_eager.py resolved.toml --data FOLDER [--steps N] [--json FILE]

One vision transformer, a projector and one Llama, on one device: the same products, the same loss,
AdamW with the same values and schedule. With --weights (a safetensors file that Troupe wrote) it
starts from these, and its losses are Troupe's to rounding. Tensors have Troupe's names.

--mixed says what is bfloat16 on the way: "none"; "autocast" (weights in float32, cast where they
are used, gradients in float32); or "weights" (bfloat16 weights and gradients, float32 masters for
the optimizer). The head sees only rows that have a label, as in Troupe.
"""

import argparse
import contextlib
import json
import math
import pathlib
import statistics
import struct
import sys
import time
import tomllib

import torch
import torch.nn.functional as F

import gpu_peak
import vlm_data

FLOAT = torch.float32


def linear_shapes(name, out, width, bias):
    shapes = {f"{name}.weight": (out, width)}
    if bias:
        shapes[f"{name}.bias"] = (out,)
    return shapes


def parameter_shapes(config):
    """Every parameter of the model by its name, as modules/parameters.cpp lists them."""
    shapes = {}
    v, vit = vlm_data.module_of(config, "vit")
    h, side = vit["hidden"], vit["image_size"] // vit["patch_size"]
    shapes[f"{v}.embeddings.class_embedding"] = (h,)
    shapes[f"{v}.embeddings.patch_embedding.weight"] = (h, 3, vit["patch_size"], vit["patch_size"])
    shapes[f"{v}.embeddings.position_embedding.weight"] = (side * side + 1, h)
    norms = [f"{v}.pre_layrnorm"]
    for i in range(built_layers(vit)):
        layer = f"{v}.encoder.layers.{i}"
        norms += [f"{layer}.layer_norm1", f"{layer}.layer_norm2"]
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            shapes |= linear_shapes(f"{layer}.self_attn.{part}", h, h, True)
        shapes |= linear_shapes(f"{layer}.mlp.fc1", vit["mlp_hidden"], h, True)
        shapes |= linear_shapes(f"{layer}.mlp.fc2", h, vit["mlp_hidden"], True)
    for norm in norms:
        shapes |= {f"{norm}.weight": (h,), f"{norm}.bias": (h,)}
    m, llama = vlm_data.module_of(config, "llama")
    h = llama["hidden"]
    kv = h // llama["heads"] * llama["kv_heads"]
    shapes[f"{m}.embed_tokens.weight"] = (llama["vocab"], h)
    for i in range(llama["layers"]):
        layer = f"{m}.layers.{i}"
        for part, out in (("q_proj", h), ("k_proj", kv), ("v_proj", kv), ("o_proj", h)):
            shapes |= linear_shapes(f"{layer}.self_attn.{part}", out, h, False)
        for part in ("gate_proj", "up_proj"):
            shapes |= linear_shapes(f"{layer}.mlp.{part}", llama["mlp_hidden"], h, False)
        shapes |= linear_shapes(f"{layer}.mlp.down_proj", h, llama["mlp_hidden"], False)
        shapes[f"{layer}.input_layernorm.weight"] = (h,)
        shapes[f"{layer}.post_attention_layernorm.weight"] = (h,)
    shapes[f"{m}.norm.weight"] = (h,)
    if not llama["tied_head"]:
        shapes[f"{m}.lm_head.weight"] = (llama["vocab"], h)
    middle = config["edges"][0]["through"]["hidden"]
    shapes |= linear_shapes(f"{v}_to_{m}.linear_1", middle, vit["hidden"], True)
    shapes |= linear_shapes(f"{v}_to_{m}.linear_2", h, middle, True)
    return shapes


def built_layers(vit):
    feature = vit["feature_layer"]
    return vit["layers"] + 1 + feature if feature < 0 else feature


def initial_values(shapes, device, seed):
    generator = torch.Generator(device).manual_seed(seed)
    values = {}
    for name, shape in shapes.items():
        if len(shape) > 1:
            spread = 1.0 / math.sqrt(math.prod(shape[1:]))
            values[name] = torch.randn(shape, device=device, generator=generator) * spread
        else:
            values[name] = torch.full(shape, float(name.endswith(".weight")), device=device)
    return values


def read_safetensors(path, device):
    """The float32 tensors of a file: 8 bytes of length, a JSON head, the values."""
    data = bytearray(pathlib.Path(path).read_bytes())
    length = struct.unpack("<Q", data[:8])[0]
    values = {}
    for name, item in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = item["data_offsets"]
        flat = torch.frombuffer(data, dtype=FLOAT, count=(end - begin) // 4,
                                offset=8 + length + begin)
        values[name] = flat.view(item["shape"]).to(device, copy=True)
    return values


class Model:
    """w holds the parameters by name; everything below reads as the formulas do."""

    def __init__(self, config, w):
        self.w = w
        self.v, self.vit = vlm_data.module_of(config, "vit")
        self.m, self.llama = vlm_data.module_of(config, "llama")
        self.rotary = None

    def linear(self, x, name):
        return F.linear(x, self.w[f"{name}.weight"], self.w.get(f"{name}.bias"))

    def layer_norm(self, x, name):
        weight, bias = self.w[f"{name}.weight"], self.w[f"{name}.bias"]
        return F.layer_norm(x, (x.shape[-1],), weight, bias, self.vit["norm_epsilon"])

    def rms_norm(self, x, name):
        weight = self.w[f"{name}.weight"]
        return F.rms_norm(x.to(weight.dtype), (x.shape[-1],), weight, self.llama["norm_epsilon"])

    def split(self, x, heads):
        return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    def vit_layer(self, x, layer):
        heads = self.vit["heads"]
        y = self.layer_norm(x, f"{layer}.layer_norm1")
        q, k, v = (self.split(self.linear(y, f"{layer}.self_attn.{part}_proj"), heads)
                   for part in "qkv")
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.linear(y, f"{layer}.self_attn.out_proj")
        y = self.linear(self.layer_norm(x, f"{layer}.layer_norm2"), f"{layer}.mlp.fc1")
        return x + self.linear(y * torch.sigmoid(1.702 * y), f"{layer}.mlp.fc2")

    def encode(self, images):
        """[n, 3, S, S] -> [n * rows, H]"""
        embeddings = f"{self.v}.embeddings"
        patch = self.w[f"{embeddings}.patch_embedding.weight"]
        x = F.conv2d(images.to(patch.dtype), patch, stride=self.vit["patch_size"])
        x = x.flatten(2).transpose(1, 2)
        class_row = self.w[f"{embeddings}.class_embedding"].expand(x.shape[0], 1, -1)
        x = torch.cat((class_row, x), 1) + self.w[f"{embeddings}.position_embedding.weight"]
        x = self.layer_norm(x, f"{self.v}.pre_layrnorm")
        for i in range(built_layers(self.vit)):
            x = self.vit_layer(x, f"{self.v}.encoder.layers.{i}")
        return (x if self.vit["class_token"] else x[:, 1:]).flatten(0, 1)

    def project(self, x):
        edge = f"{self.v}_to_{self.m}"
        return self.linear(F.gelu(self.linear(x, f"{edge}.linear_1")), f"{edge}.linear_2")

    def turn(self, x):
        """The rotary embedding of [B, heads, T, D]."""
        half = x.shape[3] // 2
        if self.rotary is None:
            place = torch.arange(x.shape[2], device=x.device, dtype=torch.float64)[:, None]
            rate = torch.arange(half, device=x.device, dtype=torch.float64) / -half
            angle = place * self.llama["rope_base"] ** rate
            self.rotary = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        cosine, sine = self.rotary
        first, second = x[..., :half], x[..., half:]
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), 3)

    def llama_layer(self, x, layer):
        heads, kv_heads = self.llama["heads"], self.llama["kv_heads"]
        y = self.rms_norm(x, f"{layer}.input_layernorm")
        q = self.turn(self.split(self.linear(y, f"{layer}.self_attn.q_proj"), heads))
        k = self.turn(self.split(self.linear(y, f"{layer}.self_attn.k_proj"), kv_heads))
        v = self.split(self.linear(y, f"{layer}.self_attn.v_proj"), kv_heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.linear(y.transpose(1, 2).flatten(2), f"{layer}.self_attn.o_proj")
        y = self.rms_norm(x, f"{layer}.post_attention_layernorm")
        y = F.silu(self.linear(y, f"{layer}.mlp.gate_proj")) * self.linear(y, f"{layer}.mlp.up_proj")
        return x + self.linear(y, f"{layer}.mlp.down_proj")

    def loss(self, batch):
        """The sum over the batch's labels, in nats."""
        tokens, positions, images, labels, labelled = batch
        embedding = self.w[f"{self.m}.embed_tokens.weight"]
        x = F.embedding(tokens, embedding).flatten(0, 1)
        x = x.index_copy(0, positions, self.project(self.encode(images)).to(x.dtype))
        x = x.view(*tokens.shape, -1)
        for i in range(self.llama["layers"]):
            x = self.llama_layer(x, f"{self.m}.layers.{i}")
        x = self.rms_norm(x, f"{self.m}.norm").flatten(0, 1).index_select(0, labelled)
        head = embedding if self.llama["tied_head"] else self.w[f"{self.m}.lm_head.weight"]
        return F.cross_entropy(F.linear(x, head).float(), labels, reduction="sum")


def load_batches(config, folder, device):
    """The global batch as microbatches on the device, and how many labels they have."""
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
    """AdamW, clipping and learning rates as [optimizer] and [modules.X.optimizer] say."""

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
    shapes = parameter_shapes(config)
    values = (read_safetensors(arguments.weights, device) if arguments.weights
              else initial_values(shapes, device, 1))
    if {name: tuple(value.shape) for name, value in values.items()} != shapes:
        wrong = sorted(values.keys() ^ shapes.keys()) or "shapes"
        raise SystemExit(f"{arguments.weights}: expected the configuration's tensors, wrong: {wrong}")
    low = arguments.mixed == "weights"
    weights = {name: value.to(torch.bfloat16 if low else FLOAT).requires_grad_()
               for name, value in values.items()}
    model, optimizer = Model(config, weights), Optimizer(config, weights, masters=low)
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
