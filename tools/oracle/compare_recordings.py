"""Compares recordings that were made again with those that are committed.

    python tools/oracle/compare_recordings.py tests/oracle AGAIN

Numbers of safetensors may differ by 1e-9 of the largest of their tensor, since machines round
differently; all other files must be the same. Folders that AGAIN lacks are named. Exit code: 0 the
same, 1 something differs.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

SMALL = 1e-9


def difference(a, b):
    """"" or how the two files differ."""
    if a.suffix == ".safetensors":
        old, new = load_file(a), load_file(b)
        if old.keys() != new.keys():
            return f"other names: {sorted(old.keys() ^ new.keys())[:3]}"
        for name, value in old.items():
            again = new[name]
            if value.shape != again.shape or value.dtype != again.dtype:
                return f"{name}: other shape or type"
            scale = max(value.double().abs().max().item() if value.numel() else 0.0, 1e-30)
            largest = (value.double() - again.double()).abs().max().item() / scale \
                if value.numel() else 0.0
            if largest > SMALL:
                return f"{name}: {largest:.1e} of the largest value"
        return ""
    if a.suffix == ".json":
        return "" if json.loads(a.read_text()) == json.loads(b.read_text()) else "other values"
    if a.read_bytes() == b.read_bytes():
        return ""
    return "" if a.suffix == ".bin" and same_pickles(a, b) else "other bytes"


def same_pickles(a, b):
    """Archives have the time, and old pickles the addresses of their storages, in their bytes."""
    try:
        old, new = (torch.load(path, weights_only=True) for path in (a, b))
    except Exception:
        return False
    return old.keys() == new.keys() and all(torch.equal(old[key], new[key]) for key in old)


def main():
    committed, again = Path(sys.argv[1]), Path(sys.argv[2])
    same, wrong, left_out = 0, [], set()
    for path in sorted(path for path in committed.rglob("*") if path.is_file()):
        own = path.relative_to(committed)
        if not (again / own).exists():
            left_out.add(str(own.parent if own.parent != Path(".") else own))
            continue
        text = difference(path, again / own)
        same += not text
        if text:
            wrong.append(f"{own}: {text}")
    print(f"{same} files are the same; not made again: {', '.join(sorted(left_out)) or 'none'}")
    print("\n".join(wrong))
    sys.exit(bool(wrong))


main()
