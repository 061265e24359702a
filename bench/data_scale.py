#!/usr/bin/env python3
"""Runs on 10 million samples in 1,000 shards beside runs on 1,000 samples: the time to the first step, memory,
the time to find a place, and the samples for several layouts and numbers of workers.

    bench/data_scale.py BUILD FOLDER      # FOLDER takes 200 MB; the first run in it makes the indexes
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = """extends = ["{root}/configs/shapes.toml"]
[data]
train = ""
held_out = ""
cache = "{folder}/cache"
[[data.sources]]
path = "{folder}/{shards}"
[run]
steps = 1
evaluate_every = 0
dir = "{folder}/runs"
"""


def timed(command):
    """Runs a command. Returns its seconds, the most resident memory in MiB, and its output."""
    begin = time.monotonic()
    with open("output.txt", "w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        output.seek(0)
        text = output.read()
    if status != 0:
        sys.exit(f"{' '.join(command)} failed:\n{text}")
    return seconds, usage.ru_maxrss / 1024, text


def median(values):
    return sorted(values)[len(values) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folder")
    args = parser.parse_args()
    folder = os.path.abspath(args.folder)
    troupe = os.path.join(os.path.abspath(args.build), "troupe")
    root = os.path.dirname(HERE)
    shards = os.path.join(HERE, "data_shards.py")
    if not os.path.exists(f"{folder}/many/999.tar"):
        subprocess.check_call([sys.executable, shards, f"{folder}/many"])
        subprocess.check_call([sys.executable, shards, f"{folder}/few", "--distinct", "1", "--names", "1",
                               "--samples", "1000"])
    os.chdir(folder)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name, path in (("many", "many/{000..999}.tar"), ("few", "few/000.tar")):
        with open(f"{name}.toml", "w") as config:
            config.write(CONFIG.format(root=root, folder=folder, shards=path))
    index_s, _, _ = timed([troupe, "data", "index", "many.toml"])
    print(f"indexes made or found in {index_s:.2f} s")
    for order in ("data.order=random", "data.group_by=modality_length", "data.packing=true"):
        train = lambda config: timed([troupe, "train", config, "--set", order])
        rounds = [(train("many.toml"), train("few.toml")) for _ in range(5)]
        for side, name in ((0, "10,000,000 samples"), (1, "1,000 samples")):
            print(f"{order}, {name}: one step and the end of the run after {median([r[side][0] for r in rounds]):.2f} s, "
                  f"{median([r[side][1] for r in rounds]):.1f} MiB at most")
    show = lambda step, *more: timed([troupe, "data", "show", "many.toml", "--step", str(step), *more])
    shown = [(show(1)[0], show(100_000)[0]) for _ in range(9)]
    print(f"data show: step 1 after {1000 * median([s[0] for s in shown]):.0f} ms, "
          f"step 100,000 after {1000 * median([s[1] for s in shown]):.0f} ms")
    sequences = set()
    for dp in (1, 2, 3, 8):
        ranks = f"modules.language.ranks='0-{dp - 1}'"
        layout = ["--set", ranks, "--set", f"modules.language.layout={{ dp = {dp} }}",
                  "--set", f"cluster.ranks={dp + 8}", "--set", f"modules.vision.ranks='{dp}-{dp + 7}'", "--set", "modules.vision.layout={ dp = 8 }",
                  "--set", f"schedule.micro_batch_size={24 // dp}", "--set", "schedule.microbatches=2"]
        text = "".join(show(step, *layout)[2] for step in (1, 2, 50_000))
        sequences.add(tuple(re.findall(r"(many/\d+\.tar: row \d+) ", text)))
    samples = len(next(iter(sequences)))
    print(f"{samples} samples with dp 1, 2, 3 and 8: {'the same' if len(sequences) == 1 else 'WRONG: they differ'}")
    losses = set()
    for workers in (1, 3, 8):
        timed([troupe, "train", "many.toml", "--set", "run.steps=20", "--set", f"data.workers={workers}"])
        with open("runs/latest/metrics.jsonl") as metrics:
            losses.add(tuple(json.loads(line)["loss"] for line in metrics))
    print(f"losses of 20 steps with 1, 3 and 8 workers: {'the same' if len(losses) == 1 else 'WRONG: they differ'}")
    sys.exit(len(sequences) != 1 or len(losses) != 1)


if __name__ == "__main__":
    main()
