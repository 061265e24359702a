#!/usr/bin/env python3
"""Summarises the files of the parts of bench/gpu_check.sh.

    gpu_report.py run RUN IDLE OUT.json FLOPS.json     one training run
    gpu_report.py curve RUN RUN OUT.json               two runs' losses: float32, bfloat16
    gpu_report.py same RUN RUN                         fails unless they have the same losses
    gpu_report.py summary WORK OUT                     the table, and OUT/result.json
"""

import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys

import gpu_peak

WARMUP = 3  # steps: allocators fill, libraries choose their kernels
WINDOW = 20  # steps over which losses are averaged before they are compared


def read(path):
    """A JSON file; None if a part did not write it."""
    path = pathlib.Path(path)
    return json.loads(path.read_text()) if path.exists() else None


def steps_of(run):
    lines = (pathlib.Path(run) / "metrics.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["kind"] == "step"]


def columns_of(text):
    """The rows of `troupe trace sql` as dictionaries of numbers."""
    lines = text.splitlines()
    names = lines[0].split()
    return [dict(zip(names, map(float, line.split()))) for line in lines[1:] if line.strip()]


def describe_run(run, idle_file, out, flops_file):
    steps = steps_of(run)
    timed = steps[WARMUP:] or steps
    seconds = statistics.median(step["seconds"] for step in timed)
    idle = [row for row in columns_of(pathlib.Path(idle_file).read_text())
            if row["step"] > WARMUP]
    result = {
        "program": "troupe", "loss": [step["loss"] for step in steps],
        "ms_per_step": [1e3 * step["seconds"] for step in steps], "warmup": WARMUP,
        "median_ms": 1e3 * seconds,
        "idle_share": [row["idle"] / row["span"] for row in idle],
        # The allocator's own peak if known, else the most in use at the end of any work.
        "peak_memory_bytes": max((step["gpu_peak_bytes"] for step in steps
                                  if "gpu_peak_bytes" in step),
                                 default=max((row["memory"] for row in idle), default=None)),
    }
    flops = read(flops_file)
    if flops:
        result |= {"flops_per_step": flops["flops"], "flops_per_second": flops["flops"] / seconds,
                   "tokens_per_second": flops["tokens"] / seconds}
    write(out, result)
    print(f"{result['median_ms']:.1f} ms per step, loss {steps[-1]['loss']:.4f} "
          f"after {len(steps)} steps")


def compare_curves(first, second, out):
    """The largest relative difference of losses, each averaged over WINDOW steps."""
    losses = [[step["loss"] for step in steps_of(run)] for run in (first, second)]
    means = [[statistics.fmean(loss[i:i + WINDOW]) for i in range(0, len(loss), WINDOW)]
             for loss in losses]
    worst = max(abs(b - a) / a for a, b in zip(*means))
    write(out, {"float32": means[0], "bfloat16": means[1], "window": WINDOW,
                "worst_relative_difference": worst})
    print(f"losses over {WINDOW} steps differ by at most {100 * worst:.2f}%")


def compare_runs(first, second):
    """Fails unless the losses of all steps agree within 1e-3, as in two runs of one job on a device."""
    a, b = ([float(s["loss"]) for s in steps_of(run)] for run in (first, second))
    worst = max((abs(x - y) / abs(x) for x, y in zip(a, b)), default=1.0)
    print(f"{len(a)} and {len(b)} steps, losses differ by at most {worst:.1e} of the loss")
    if len(a) != len(b) or worst > 1e-3:
        sys.exit("the losses are not those of an undisturbed job")


def write(path, result):
    pathlib.Path(path).write_text(json.dumps(result, indent=1) + "\n")


def output_of(*command):
    """The first line that a command prints; "" if it cannot run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return done.stdout.strip().splitlines()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return ""


def torch_version(folder_file):
    """PyTorch's and its CUDA's version, from its files: importing it takes seconds."""
    try:
        text = (pathlib.Path(folder_file.read_text().strip()) / "version.py").read_text()
    except OSError:
        return ""
    found = [re.search(f"^{name}\\b.*= '([^']+)'", text, re.M) for name in ("__version__", "cuda")]
    return ", CUDA ".join(match.group(1) for match in found if match)


def conditions(work):
    asked = ("name", "driver_version", "memory.total", "clocks.sm", "clocks.max.sm", "clocks.mem",
             "power.limit", "temperature.gpu")
    values = output_of("nvidia-smi", "--query-gpu=" + ",".join(asked), "--format=csv,noheader")
    nvcc = "nvcc" if output_of("nvcc", "--version") else "/usr/local/cuda/bin/nvcc"
    try:
        release = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
        release = next((s for s in release.split(", ") if s.startswith("release")), "")
    except OSError:
        release = ""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": os.environ.get("commit", "unknown"),
        "gpu": dict(zip(asked, (v.strip() for v in values.split(",")))) if values else None,
        "cuda": release.removeprefix("release "), "torch": torch_version(work / "torch"),
        "cores": os.cpu_count(), "system": platform.platform(),
    }



def parity_of(path):
    """The largest number in the lines that tests/parity/device_test.cpp prints."""
    if not path.exists():
        return None
    found = re.findall(r"^parity on device .* worst gradient (\S+) of", path.read_text(), re.M)
    return max(map(float, found), default=None)


class Targets:
    """Rows of the second table: measurements and their targets."""

    def __init__(self):
        self.rows = []

    def add(self, what, got, target, met, text):
        state = "not measured" if got is None else "met" if met else "missed"
        self.rows.append({"what": what, "value": got, "target": target, "state": state,
                          "text": "-" if got is None else text})

    def most(self, what, got, most, scale=100.0, unit="%"):
        self.add(what, got, f"< {most * scale:g}{unit}", got is not None and got < most,
                 "" if got is None else f"{got * scale:.{2 if unit else 7}f}{unit}")

    def least(self, what, got, least, scale=100.0, unit="%"):
        self.add(what, got, f">= {least * scale:g}{unit}", got is not None and got >= least,
                 "" if got is None else f"{got * scale:.1f}{unit}")


def targets_of(results, gpu_name):
    targets = Targets()
    targets.most("parity, worst gradient of twenty layouts, of its tensor's maximum",
                 parity_of(results / "parity.txt"), 1e-4, 1.0, "")
    bandwidth = read(results / "bandwidth.json")
    for kernel, least in (("gather", 0.85), ("scatter", 0.85), ("adamw", 0.90)):
        shares = [row["of_copy"] for row in (bandwidth or {"rows": []})["rows"]
                  if row["kernel"] == kernel and row["size"] == "64 MiB"]
        targets.least(f"{kernel} of 64 MiB, of a copy's bandwidth", min(shares, default=None),
                      least)
    run = read(results / "vlm.json")
    eager = [e for e in (read(results / f"eager_{m}.json") for m in ("autocast", "weights")) if e]
    measured = next((e["peak_flops"] for e in eager if "peak_flops" in e), None)
    peak = gpu_peak.stated_peak(gpu_name) or measured
    mfu = run["flops_per_second"] / peak if run and peak and "flops_per_second" in run else None
    targets.least("vlm_1b, share of the device's peak (MFU)", mfu, 0.45)
    best = min((e["median_ms"] for e in eager), default=None)
    targets.most("vlm_1b, time of a step against PyTorch eager's",
                 run["median_ms"] / best if run and best else None, 1.0)
    idle = statistics.median(run["idle_share"]) if run and run["idle_share"] else None
    targets.most("vlm_1b, device idle between first and last work of a step", idle, 0.01)
    kept = read(results / "offload_none.json")
    for what in ("parameters", "state"):
        away = read(results / f"offload_{what}.json")
        targets.most(f"offload of {what}, time of a step against that without",
                     away and kept and away["median_ms"] / kept["median_ms"], 1.02)
    curve = read(results / "curve.json")
    targets.most("bfloat16 losses against float32's",
                 curve and curve["worst_relative_difference"], 0.02)
    return targets.rows


def numbers_of(results):
    """Lines without targets."""
    lines = []
    for name in ("vlm", "eager_autocast", "eager_weights", "offload_none", "offload_parameters",
                 "offload_state"):
        run = read(results / f"{name}.json")
        if not run:
            continue
        line = f"{name:<20}{run['median_ms']:9.1f} ms per step"
        if "tokens_per_second" in run and not name.startswith("offload"):
            line += f"  {run['tokens_per_second']:9.0f} tok/s"
        if run.get("peak_memory_bytes"):
            line += f"  {run['peak_memory_bytes'] / 2**30:6.2f} GiB"
        if "mfu" in run:
            line += f"  MFU {100 * run['mfu']:.1f}%"
        lines.append(line)
    return lines


def parts_of(work):
    rows = (line.split("\t") for line in (work / "parts.tsv").read_text().splitlines())
    return [{"name": name, "state": state, "seconds": int(seconds), "note": note}
            for name, state, seconds, note in rows]


def summarize(work, out):
    work, out = pathlib.Path(work), pathlib.Path(out)
    facts, parts = conditions(work), parts_of(work)
    gpu = (facts["gpu"] or {}).get("name", "")
    targets = targets_of(work / "results", gpu)
    measured = {path.stem: read(path) for path in sorted((work / "results").glob("*.json"))}
    write(out / "result.json", {"conditions": facts, "parts": parts, "targets": targets,
                                "measured": measured})
    print(f"commit {facts['commit']}, {facts['date']}")
    print(f"{gpu + ', ' + str(facts['gpu']) if gpu else 'no GPU'}\nCUDA {facts['cuda'] or '-'}, "
          f"PyTorch {facts['torch'] or '-'}, {facts['cores']} cores\n")
    for part in parts:
        print(f"{part['name']:<12}{part['state']:<9}{part['seconds']:>4} s  {part['note']}")
    print()
    for line in numbers_of(work / "results"):
        print(line)
    print(f"\n{'':<64}{'measured':>10}  {'target':>9}")
    for row in targets:
        print(f"{row['what']:<64}{row['text']:>10}  {row['target']:>9}  {row['state']}")


def main():
    verbs = {"run": (describe_run, 4), "curve": (compare_curves, 3), "same": (compare_runs, 2),
             "summary": (summarize, 2)}
    verb, count = verbs.get(sys.argv[1] if len(sys.argv) > 1 else "", (None, 0))
    if verb is None or len(sys.argv) != 2 + count:
        sys.exit(__doc__)
    verb(*sys.argv[2:])


if __name__ == "__main__":
    main()
