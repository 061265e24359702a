#!/usr/bin/env python3
"""Trains a small language model on one rank for a step with longer and longer samples.

    bench/long_context.py BUILD_FOLDER SCRATCH_FOLDER [LENGTH ...]

Prints for each length the seconds of the step, the most resident memory of the process, how much of it
each 1,000 tokens add to that of a run with 16 tokens, and the activations that `troupe check` states.
Memory is linear in the length if the fourth column is constant.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

CONFIG = """
schema = 1
[run]
name = "long"
dir = "runs"
steps = 1
[cluster]
ranks = 1
[modules.language]
kind = "llama"
ranks = "0"
vocab = 260
hidden = 256
layers = 4
heads = 4
kv_heads = 2
mlp_hidden = 768
context = 2048
[schedule]
micro_batch_size = 1
microbatches = 1
[data]
format = "llava"
train = "long.json"
held_out = "short.json"
tokenizer = "bytes"
"""
LENGTHS = [2048, 4096, 8192, 16384, 32768]
MIB = 1 << 20


def write_data(folder, longest):
    text = "".join(chr(97 + (i * 7 + i * i // 3) % 26) for i in range(longest))
    for name, answer in (("long", text), ("short", "short")):
        turns = [{"from": "human", "value": "Go on."}, {"from": "gpt", "value": answer}]
        (folder / f"{name}.json").write_text(json.dumps([{"id": "0", "conversations": turns}]))
    (folder / "long.toml").write_text(CONFIG)


def troupe(build, folder, command, length):
    return [str(build / "troupe"), command, "long.toml", "--set",
            f"modules.language.context={length}"]


def run(build, folder, length):
    """Seconds of the step and the most resident bytes."""
    child = subprocess.Popen(troupe(build, folder, "train", length), cwd=folder,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    found = re.search(r"step 1/1 .*?([0-9.]+) s  bubble", output)
    if status != 0 or not found:
        sys.exit(f"long_context: {length} tokens: {output[-500:]}")
    return float(found[1]), usage.ru_maxrss * 1024


def estimate(build, folder, length):
    text = subprocess.run(troupe(build, folder, "check", length), cwd=folder, check=True,
                          capture_output=True, text=True).stdout
    row = [line for line in text.splitlines() if line.startswith("language.s0")][-1]
    return re.split(r"\s{2,}", row.strip())[5]


def main():
    build, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    lengths = [int(length) for length in sys.argv[3:]] or LENGTHS
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    write_data(folder, max(lengths))
    _, base = run(build, folder, 16)
    print(f"base {base / MIB:.0f} MiB")
    print("tokens  step_s  peak_MiB  MiB_per_1000  check")
    for length in lengths:
        seconds, peak = run(build, folder, length)
        print(f"{length:6}  {seconds:6.2f}  {peak / MIB:8.0f}  "
              f"{(peak - base) / MIB / length * 1000:12.1f}  {estimate(build, folder, length)}",
              flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main()
