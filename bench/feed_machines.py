#!/usr/bin/env python3
"""Feed machines: the time for which a job waits for data with and without them, and a run whose machines are killed.

    bench/feed_machines.py BUILD FOLDER [--kills 500] [--seed 1]     # needs Pillow and numpy
"""
import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGES = 10
PASSES_IN_STEP = 28  # forward passes that take as long as a step
# A step of 8 samples with 10 images each.
CONFIG = """schema = 1
[run]
name = "images"
dir = "{folder}/runs"
[cluster]
ranks = 2
[modules.vision]
kind = "vit"
ranks = "0"
image_size = 336
patch_size = 14
hidden = 64
layers = 4
heads = 4
mlp_hidden = 64
input = {{ field = "image", placeholder = "<image>" }}
[modules.language]
kind = "llama"
ranks = "1"
vocab = 260
hidden = 64
layers = 2
heads = 4
kv_heads = 4
mlp_hidden = 64
context = 6144
[[edges]]
from = "vision"
to = "language"
[schedule]
micro_batch_size = 1
microbatches = 8
[data]
train = "{folder}/images.json"
workers = 1
feed_address = "127.0.0.1:{port}"
"""


def make_images(folder):
    import numpy
    from PIL import Image
    os.makedirs(f"{folder}/images", exist_ok=True)
    draw = numpy.random.default_rng(1)
    for i in range(16):
        small = Image.fromarray(draw.integers(0, 256, (128, 128, 3), dtype=numpy.uint8))
        small.resize((1024, 1024), Image.BICUBIC).save(f"{folder}/images/{i}.jpg", quality=90)
    rows = [{"id": f"row{r}", "image": [f"images/{draw.integers(16)}.jpg" for _ in range(IMAGES)],
             "conversations": [{"from": "human", "value": "<image>" * IMAGES + "\nwhat is it?"},
                               {"from": "gpt", "value": f"noise {r}"}]} for r in range(128)]
    with open(f"{folder}/images.json", "w") as out:
        json.dump(rows, out)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Machines:
    """Feed machines of a configuration."""

    def __init__(self, troupe, config, more, key, folder):
        self.command = [troupe, "feed", config, *more, "--key-file", key]
        self.folder = folder
        self.running = {}

    def log(self, number):
        return f"{self.folder}/f{number}.log"

    def start(self, number, threads):
        with open(self.log(number), "w") as log:
            self.running[number] = subprocess.Popen(
                [*self.command, "--node", f"{number}/16", "--threads", str(threads)], stdout=log, stderr=log)

    def await_work(self, number, job):
        """Returns whether the machine has come to the job, which may end meanwhile."""
        while job.poll() is None:
            with open(self.log(number)) as log:
                if "preparing samples" in log.read():
                    return True
            time.sleep(0.005)
        return False

    def kill(self, number, how):
        process = self.running.pop(number)
        process.send_signal(how)
        if how == signal.SIGSTOP:
            time.sleep(2)  # longer than the job waits for it
            process.kill()
        return process.wait()

    def end(self):
        return [process.wait(timeout=20) for process in self.running.values()]


def exposed(build, folder, key):
    port = free_port()
    config = f"{folder}/images.toml"
    with open(config, "w") as out:
        out.write(CONFIG.format(folder=folder, port=port))
    def run(forward_ms):
        command = [f"{build}/bench/bench_exposed_data", config, f"{folder}/run.key", "16", str(forward_ms)]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        lines = output.strip().splitlines()
        steps = sorted(float(re.search(r": ([\d.]+) s", line).group(1)) for line in lines[2:-1])
        return output, lines[-1], steps[len(steps) // 2]

    # Passes of a length for which one worker is too slow, and a machine with two threads is fast enough.
    fastest_s = run(1)[2]
    forward_ms = max(1, round(0.7 * fastest_s / PASSES_IN_STEP * 1000))
    print(f"1 worker of the job prepares the samples of a step in {fastest_s:.3f} s; a forward pass takes {forward_ms} ms")
    for number, threads in ((0, 0), (1, 2)):
        machines = Machines(f"{build}/troupe", config, [], key, folder)
        if number:
            machines.start(0, threads)
            time.sleep(2)
        output, waited, step_s = run(forward_ms)
        machines.end()
        waits = " ".join(dict.fromkeys(re.findall(r"\((.*)\)", output)))
        print(f"{number} feed machines, 1 worker of the job: a step takes {step_s:.3f} s, {waited}"
              f"{' (' + waits + ')' if waits else ''}")


def losses_of(run):
    with open(f"{run}/metrics.jsonl") as metrics:
        return [(line["loss"], line["gradient_norm"]) for line in map(json.loads, metrics) if "gradient_norm" in line]


def train(troupe, folder, name, steps, more):
    return [troupe, "train", f"{ROOT}/configs/shapes.toml", "--set", f"run.steps={steps}", "--set", f"run.dir={folder}/runs",
            "--set", f"run.name={name}", "--set", "run.evaluate_every=0", "--set", "data.workers=1", *more]


def compare(build, folder, key, number, steps, kills, seed, more=()):
    """A run with machines, of which some are killed, next to one without. Returns whether it was right."""
    troupe = f"{build}/troupe"
    subprocess.run(train(troupe, folder, "alone", steps, more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=True)
    expected = losses_of(f"{folder}/runs/latest")
    draw = random.Random(seed)
    at = ["--set", f"data.feed_address=127.0.0.1:{free_port()}"]
    machines = Machines(troupe, f"{ROOT}/configs/shapes.toml", at, key, folder)
    for i in range(number):
        machines.start(i, 2)
    time.sleep(1)
    job = subprocess.Popen([*train(troupe, folder, "with", steps, more), *at, "--key-file", f"{folder}/run.key"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    err = []
    reader = threading.Thread(target=lambda: err.extend(job.stderr))
    reader.start()
    killed = 0
    while killed < kills:
        victim = draw.choice(list(machines.running))
        if not machines.await_work(victim, job):
            break
        time.sleep(draw.uniform(0, 0.1))
        machines.kill(victim, draw.choice([signal.SIGKILL] * 16 + [signal.SIGTERM] * 3 + [signal.SIGSTOP]))
        killed += 1
        machines.start(victim, 2)
    code = job.wait(timeout=900)
    reader.join()
    ends = machines.end()
    run = f"{folder}/runs/latest"
    same = losses_of(run) == expected
    with open(f"{run}/metrics.jsonl") as metrics:
        seconds = sorted(line["seconds"] for line in map(json.loads, metrics) if "gradient_norm" in line)
    came = sum("has come from" in line for line in err)
    print(f"{number} feed machines, {killed} killed, {came} came: losses and norms of {len(expected)} steps "
          f"{'the same' if same else 'WRONG: they differ'}, exit codes {sorted({code, *ends})}; a step takes "
          f"{seconds[len(seconds) // 2]:.3f} s, the longest {seconds[-1]:.3f} s", flush=True)
    return same and code == 0 and not any(ends) and killed == kills


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    folder = os.path.abspath(args.folder)
    os.makedirs(folder, exist_ok=True)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.chdir(ROOT)
    for name in ("run.key", "feed.key"):
        if os.path.exists(f"{folder}/{name}"):
            os.remove(f"{folder}/{name}")
    troupe = f"{build}/troupe"
    subprocess.run([troupe, "key", f"{folder}/run.key"], stdout=subprocess.DEVNULL, check=True)
    subprocess.run([troupe, "key", f"{folder}/feed.key", "--feed-of", f"{folder}/run.key"], stdout=subprocess.DEVNULL,
                   check=True)
    if not os.path.exists(f"{folder}/images.json"):
        make_images(folder)
    exposed(build, folder, f"{folder}/feed.key")
    right = [compare(build, folder, f"{folder}/feed.key", number, 60, 0, args.seed) for number in (1, 2, 3)]
    # A killed machine needs a third of a second to come again, about two steps.
    right.append(compare(build, folder, f"{folder}/feed.key", 3, 3 * args.kills, args.kills, args.seed))
    few = max(1, args.kills // 10)
    right.append(compare(build, folder, f"{folder}/feed.key", 3, 3 * few, few, args.seed, ["--local", "2"]))
    sys.exit(not all(right))


if __name__ == "__main__":
    main()
