#!/usr/bin/env python3
"""Imports a LLaVA of 7 billion parameters into 8 ranks, trains its projector for a step, exports it.

    bench/import_at_size.py BUILD_FOLDER SCRATCH_FOLDER [--train] [--layers N]

Makes SCRATCH/model, 14 GB of random BF16 in files of 5 GB, and removes all that it made at the end.
Needs 30 GB of disk and 22 GB of memory. --train takes a LLaVA of one billion parameters, of which the
language model's 0.7 train, with 18 bytes of state each. --layers N: a language model of N layers. Prints for each
command its time, its largest memory beside the size of the parameters, and what it has read from the
disk beside the size of the files, next to `cat` and `cp` of the same files; and whether the exported
tensors are the same bytes.
"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

HIDDEN, MLP, VOCAB, LAYERS = 4096, 11008, 32064, 32
BLOCK = 64 << 20


def shapes(layers):
    """Names and shapes of all tensors, as llava-hf names them."""
    vision = "vision_tower.vision_model."
    yield vision + "embeddings.class_embedding", (1024,)
    yield vision + "embeddings.patch_embedding.weight", (1024, 3, 14, 14)
    yield vision + "embeddings.position_embedding.weight", (17, 1024)
    for norm in ("pre_layrnorm", "post_layernorm"):
        for part in ("weight", "bias"):
            yield f"{vision}{norm}.{part}", (1024,)
    for i in range(24):
        layer = f"{vision}encoder.layers.{i}."
        for part, out, width in (("self_attn.q_proj", 1024, 1024), ("self_attn.k_proj", 1024, 1024),
                                 ("self_attn.v_proj", 1024, 1024),
                                 ("self_attn.out_proj", 1024, 1024),
                                 ("mlp.fc1", 4096, 1024), ("mlp.fc2", 1024, 4096)):
            yield f"{layer}{part}.weight", (out, width)
            yield f"{layer}{part}.bias", (out,)
        for norm in ("layer_norm1", "layer_norm2"):
            for part in ("weight", "bias"):
                yield f"{layer}{norm}.{part}", (1024,)
    for part, width in (("linear_1", 1024), ("linear_2", HIDDEN)):
        yield f"multi_modal_projector.{part}.weight", (HIDDEN, width)
        yield f"multi_modal_projector.{part}.bias", (HIDDEN,)
    language = "language_model.model."
    yield language + "embed_tokens.weight", (VOCAB, HIDDEN)
    yield language + "norm.weight", (HIDDEN,)
    yield "language_model.lm_head.weight", (VOCAB, HIDDEN)
    for i in range(layers):
        layer = f"{language}layers.{i}."
        for part in ("q", "k", "v", "o"):
            yield f"{layer}self_attn.{part}_proj.weight", (HIDDEN, HIDDEN)
        yield f"{layer}mlp.gate_proj.weight", (MLP, HIDDEN)
        yield f"{layer}mlp.up_proj.weight", (MLP, HIDDEN)
        yield f"{layer}mlp.down_proj.weight", (HIDDEN, MLP)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{layer}{norm}.weight", (HIDDEN,)


def num_bytes(shape):
    size = 2
    for length in shape:
        size *= length
    return size


def write_model(folder, layers):
    folder.mkdir(parents=True)
    config = {
        "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
        "image_token_index": 259, "projector_hidden_act": "gelu", "vision_feature_layer": -2,
        "vision_feature_select_strategy": "default",
        "text_config": {"model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": MLP,
                        "num_hidden_layers": layers, "num_attention_heads": 32,
                        "num_key_value_heads": 32, "vocab_size": VOCAB,
                        "max_position_embeddings": 2048, "rms_norm_eps": 1e-5},
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024,
                          "intermediate_size": 4096, "num_hidden_layers": 24,
                          "num_attention_heads": 16, "image_size": 56, "patch_size": 14,
                          "projection_dim": 768}}
    (folder / "config.json").write_text(json.dumps(config))
    # Numbers of either sign near 0.01: the upper byte has sign and exponent.
    low, high = os.urandom(BLOCK), os.urandom(BLOCK)
    block = bytearray(2 * BLOCK)
    block[0::2] = low
    block[1::2] = high.translate(bytes(0x3c if i < 128 else 0xbc for i in range(256)))
    files, current = [], []
    for tensor in shapes(layers):
        if current and sum(num_bytes(s) for _, s in current) + num_bytes(tensor[1]) > 5e9:
            files.append(current)
            current = []
        current.append(tensor)
    files.append(current)
    places, total = {}, 0
    for number, tensors in enumerate(files, 1):
        name = f"model-{number:05d}-of-{len(files):05d}.safetensors"
        header, offset = {"__metadata__": {"format": "pt"}}, 0
        for tensor, shape in tensors:
            places[tensor] = name
            header[tensor] = {"dtype": "BF16", "shape": shape,
                              "data_offsets": [offset, offset + num_bytes(shape)]}
            offset += num_bytes(shape)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(folder / name, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for index, (tensor, shape) in enumerate(tensors):
                start, left = 2 * (7919 * (total + index) % BLOCK), num_bytes(shape)
                while left > 0:
                    piece = memoryview(block)[start:start + left]
                    file.write(piece)
                    left -= len(piece)
                    start = 0
            total += len(tensors)
    index = {"metadata": {"total_size": sum(num_bytes(s) for f in files for _, s in f)},
             "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return index["metadata"]["total_size"]


def drop_from_memory(folder):
    """Makes the next reader read the disk."""
    os.sync()
    for path in folder.glob("*.safetensors"):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Watch(threading.Thread):
    """Follows a process: its memory that is no file's, and its reads from the disk."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.samples = pid, []
        self.start()

    def run(self):
        while True:
            try:
                status = Path(f"/proc/{self.pid}/status").read_text()
                io = Path(f"/proc/{self.pid}/io").read_text()
            except OSError:
                return
            fields = dict(line.split(":", 1) for line in (status + io).splitlines() if ":" in line)
            if "RssAnon" not in fields:
                return
            shared = int(fields["RssAnon"].split()[0]) + int(fields["RssShmem"].split()[0])
            self.samples.append((int(fields["read_bytes"]), shared << 10))
            time.sleep(0.05)

    def disk(self):
        return self.samples[-1][0]

    def most(self, disk=None):
        """The most memory, or that until it had read `disk` bytes."""
        return max(memory for read, memory in self.samples if disk is None or read <= disk)


def run(what, command, parameters, files, wanted=0):
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    watch = Watch(process.pid)
    output = process.communicate()[0]
    seconds = time.monotonic() - begin
    if process.returncode != wanted:
        sys.exit(f"{' '.join(map(str, command))}: {process.returncode}\n{output}")
    watch.join()
    over = [f"{(watch.most(disk) - parameters) / 2**20:.0f}" for disk in (0.98 * files, None)]
    print(f"{what:32} {seconds:6.1f} s, {files / seconds / 1e9:.2f} GB/s, read {watch.disk() / files:.2f}"
          f" x the files, memory above {parameters / 1e9:.1f} GB of parameters: while reading "
          f"{over[0]} MiB, at most {over[1]} MiB", flush=True)
    return output


def same_tensors(a, b):
    """Compares all tensors of two folders, a part at a time."""
    def tensors(folder):
        for path in sorted(folder.glob("*.safetensors")):
            with open(path, "rb") as file:
                length = int.from_bytes(file.read(8), "little")
                for name, entry in json.loads(file.read(length)).items():
                    if name != "__metadata__":
                        yield name, path, 8 + length + entry["data_offsets"][0], entry
    others = {name: (path, begin, entry) for name, path, begin, entry in tensors(b)}
    names, different = 0, []
    for name, path, begin, entry in tensors(a):
        names += 1
        other, there, found = others.pop(name)
        size = entry["data_offsets"][1] - entry["data_offsets"][0]
        same = found["dtype"] == entry["dtype"] and found["shape"] == entry["shape"]
        with open(path, "rb") as x, open(other, "rb") as y:
            x.seek(begin)
            y.seek(there)
            while same and size > 0:
                part = min(size, BLOCK)
                same = x.read(part) == y.read(part)
                size -= part
        if not same:
            different.append(name)
    return names, different, sorted(others)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--train", action="store_true")
    arguments = parser.parse_args()
    global HIDDEN, MLP, LAYERS
    if arguments.train:
        HIDDEN, MLP, LAYERS = 2048, 5504, 12
    layers = arguments.layers or LAYERS
    scratch = arguments.scratch.resolve() / "import_at_size"
    shutil.rmtree(scratch, ignore_errors=True)
    model, out, runs = scratch / "model", scratch / "out", scratch / "runs"
    troupe = arguments.build.resolve() / "troupe"
    try:
        begin = time.monotonic()
        size = write_model(model, layers)
        print(f"{size / 1e9:.2f} GB in {len(list(model.glob('*.safetensors')))} files, made in "
              f"{time.monotonic() - begin:.0f} s")
        config = scratch / "run.toml"
        data = Path("data/shapes").resolve()
        config.write_text(f"""schema = 1
run = {{ name = "size", dir = "{runs}", steps = 1, precision = "bfloat16" }}
cluster = {{ ranks = 8, pass_timeout_s = 3600.0, stuck_after_s = 600.0, stall_after_s = 3000.0 }}
model = {{ from = "hf:{model}" }}
checkpoint = {{ every_minutes = 0 }}
[modules.vision]
ranks = "0-7"
layout = {{ tp = 8 }}
frozen = true
[modules.language]
ranks = "0-7"
layout = {{ tp = 8 }}
context = 256
frozen = {"false" if arguments.train else "true"}
[[edges]]
from = "vision"
to = "language"
[schedule]
micro_batch_size = 1
microbatches = 1
[data]
train = "{data / 'train.json'}"
tokenizer = "bytes"
prompt = "lines"
""")
        files = sum(path.stat().st_size for path in model.glob("*.safetensors"))
        cat = ["sh", "-c", f"exec cat {model}/*.safetensors > /dev/null"]
        run("troupe check", [troupe, "check", config], 0, files)
        drop_from_memory(model)
        run("cat, cold", cat, 0, files)
        run("cat, warm as far as memory goes", cat, 0, files)
        drop_from_memory(model)
        state = size + sum(8 * num_bytes(shape) for name, shape in shapes(layers)
                           if arguments.train and not name.startswith("vision"))
        output = run("8 ranks, one step", [troupe, "train", config], state, files)
        print("\n".join(line for line in output.splitlines() if line.startswith("step")))
        drop_from_memory(model)
        run("generate, one token", [troupe, "generate", model, "--tokenizer", "bytes", "--format",
                                    "lines", "--prompt", "Hm?", "--max-new-tokens", "1"], size,
            files)
        drop_from_memory(model)
        run("cp and sync", ["sh", "-c", f"cp -r {model} {scratch}/copy && sync"], 0, files)
        shutil.rmtree(scratch / "copy")
        newest = max(path for path in runs.iterdir() if not path.is_symlink())
        drop_from_memory(model)
        run("troupe export", [troupe, "export", newest, "--out", out], 0, files)
        names, different, added = same_tensors(model, out)
        print(f"{names} tensors, changed: {len(different) if arguments.train else different}, "
              f"added: {added}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
