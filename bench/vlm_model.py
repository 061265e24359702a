"""The model of bench/vlm_eager.py: its parameters by Troupe's names, and its formulas."""

import json
import math
import pathlib
import struct

import torch
import torch.nn.functional as F

import vlm_data

FLOAT = torch.float32


def linear_shapes(name, out, width, bias):
    shapes = {f"{name}.weight": (out, width)}
    if bias:
        shapes[f"{name}.bias"] = (out,)
    return shapes


def parameter_shapes(config):
    """Every parameter of the model by its name, as plan/stage_parts.cpp lists them."""
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
    """w holds the parameters by name."""

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
        gate, up = (self.linear(y, f"{layer}.mlp.{part}_proj") for part in ("gate", "up"))
        return x + self.linear(F.silu(gate) * up, f"{layer}.mlp.down_proj")

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
