"""Saves tiny tensors with torch.save in every way that folders of weights are published in.

    python tools/oracle/record_pickles.py OUT

OUT gets files that tests/checkpoint/torch_file_test.cpp reads. Tensor k of a file counts from 10 * k
on; its test knows the same numbers. OUT/llama/ has the tensors of tests/oracle/llama/ in two files
and an index, as save_pretrained(safe_serialization=False) of transformers writes them.
"""
import json
import os
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path

import torch
from safetensors.torch import load_file

assert torch.__version__.startswith("2.9.1"), "the recordings are those of PyTorch 2.9.1"

TYPES = dict(f64=torch.float64, f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16,
             i64=torch.int64, i32=torch.int32, i16=torch.int16, i8=torch.int8, u8=torch.uint8)


def count(first, *shape, dtype=torch.float32):
    size = torch.Size(shape).numel()
    return torch.arange(first, first + size, dtype=dtype).reshape(shape)


class EveryType(torch.nn.Module):
    """Its state_dict() is an OrderedDict with an attribute _metadata."""

    def __init__(self):
        super().__init__()
        for k, (name, dtype) in enumerate(TYPES.items()):
            self.register_buffer(name, count(10 * k, 2, 3, dtype=dtype))
        self.register_buffer("flag", torch.tensor([True, False, True]))
        self.part = torch.nn.Linear(2, 1)
        self.part.weight.data = count(100, 1, 2)
        self.part.bias.data = count(110, 1)


def tensors():
    """A plain dict of tensors that share storages, lie inside them, or have unusual shapes."""
    tied = count(0, 2, 2)
    return {
        "embed": tied,
        "head": tied,
        "parameter": torch.nn.Parameter(count(10, 3)),
        "view": count(0, 6, 2)[2:4],
        "scalar": torch.tensor(30.0),
        "empty": torch.zeros(0, 3).t(),
        "one_row": count(0, 2, 4).as_strided((1, 4), (1, 1), 4),
        "expanded": count(60, 3).expand(1, -1),
    }


class Evil:
    def __reduce__(self):
        return os.system, ("touch owned",)


def deflated(source, target):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name), zipfile.ZIP_DEFLATED)


def zip64(source, target):
    """Sizes and places are where those of more than 4 GiB are."""
    limit, zipfile.ZIP64_LIMIT = zipfile.ZIP64_LIMIT, 0
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    zipfile.ZIP64_LIMIT = limit


def llama(out):
    out.mkdir(exist_ok=True)
    tensors = load_file("tests/oracle/llama/model.safetensors")
    half = len(tensors) // 2
    weight_map = {}
    for i, names in enumerate([list(tensors)[:half], list(tensors)[half:]]):
        file = f"pytorch_model-0000{i + 1}-of-00002.bin"
        torch.save({name: tensors[name] for name in names}, out / file)
        weight_map.update({name: file for name in names})
    size = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (out / "pytorch_model.bin.index.json").write_text(json.dumps(index, indent=2) + "\n")


def main():
    out = Path(sys.argv[1])
    torch.save(EveryType().state_dict(), out / "every_type.bin")
    torch.save(tensors(), out / "tensors.bin")
    torch.save(tensors(), out / "protocol4.bin", pickle_protocol=4)
    torch.save({"w": count(0, 2, 3).t()}, out / "transposed.bin")
    torch.save({"state_dict": OrderedDict(w=count(0, 2))}, out / "nested.bin")
    torch.save({"w": count(0, 2), "epoch": 3}, out / "number.bin")
    torch.save({"w": torch.zeros([1] * 65)}, out / "dimensions.bin")
    torch.save({"w": Evil()}, out / "evil.bin")
    torch.save({"w": count(0, 2)}, out / "old.bin", _use_new_zipfile_serialization=False)
    torch.save({"w": count(0, 2)}, out / "small.bin")
    deflated(out / "small.bin", out / "deflated.bin")
    zip64(out / "small.bin", out / "zip64.bin")
    llama(out / "llama")


if __name__ == "__main__":
    main()
