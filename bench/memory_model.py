#!/usr/bin/env python3
"""Compares the memory that `troupe check` estimates for each rank with the peak of a run.

    bench/memory_model.py BUILD_DIR [--quick] [--only NAME,...] [--within PERCENT]

Every configuration of CONFIGS trains two steps, each rank in a process of its own. A library that is
loaded before the C library (tests/faults/preloaded/heap_peak.cpp) counts what the heap holds: the
tensors of the rank, and some megabytes of the runtime. These are the base, measured with a model that
has almost no tensors. Predicted is the estimate plus the base. The last columns show the resident memory
that the product reports, whose base is measured likewise. Exit code 1: the heap of a rank
is further from its prediction than PERCENT (5).
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIB = float(1 << 20)

BASE = """schema = 1
extends = ["{root}/configs/shapes.toml"]
[run]
name = "m"
dir = "{scratch}/runs"
steps = 2
evaluate_every = 100
[modules.vision]
hidden = 256
mlp_hidden = 1024
[modules.language]
hidden = 384
layers = 6
heads = 8
kv_heads = 4
mlp_hidden = 1024
[checkpoint]
async = false
every_minutes = 0
"""

# Settings that several configurations share.
PP3 = ["modules.language.ranks=0-2", "modules.language.layout={pp=3}", "modules.vision.ranks=3"]
PP2 = ["modules.language.ranks=0-1", "modules.language.layout={pp=2}", "modules.vision.ranks=2"]
ONE = ["modules.language.ranks=0", "modules.language.layout={}", "modules.vision.ranks=1"]


def two(layout):
    return ["modules.language.ranks=0-1", f"modules.language.layout={{{layout}}}",
            "modules.vision.ranks=2"]


def four(layout):
    return ["modules.language.ranks=0-3", f"modules.language.layout={{{layout}}}",
            "modules.vision.ranks=4"]


def colocated(layout, encoder):
    return ["modules.language.ranks=0-1", f"modules.language.layout={{{layout}}}",
            "modules.vision.ranks=0-1", f"modules.vision.layout={{{encoder}}}"]


def inline(layout, ranks):
    last = f"0-{ranks - 1}" if ranks > 1 else "0"
    return [f"modules.language.ranks={last}", f"modules.language.layout={{{layout}}}",
            "modules.vision.inline_in=language"]


def recompute(*parts):
    return [f"modules.language.recompute=[{','.join(json.dumps(part) for part in parts)}]"]


BFLOAT16 = ["run.precision=bfloat16"]
SHARD = ["optimizer.shard=data"]
GPIPE, ZB_H1 = ["schedule.kind=gpipe"], ["schedule.kind=zb-h1"]


def interleaved(chunks, microbatches):
    return ["schedule.kind=interleaved", f"schedule.chunks={chunks}",
            f"schedule.microbatches={microbatches}", f"edges.vision.language.credits={microbatches}"]


# name, ranks, settings; those that end with * are in --quick.
CONFIGS = [
    ("one stage", 2, ONE),
    ("pp2", 3, PP2),
    ("pp3", 4, PP3),
    ("pp2, 8 microbatches", 3, PP2 + ["schedule.microbatches=8"]),
    ("pp3, 2 microbatches", 4, PP3 + ["schedule.microbatches=2"]),
    ("pp2 gpipe", 3, PP2 + GPIPE),
    ("pp3 gpipe", 4, PP3 + GPIPE),
    ("pp2 zb-h1", 3, PP2 + ZB_H1),
    ("pp3 zb-h1", 4, PP3 + ZB_H1),
    ("pp2 interleaved 2 *", 3, PP2 + interleaved(2, 4)),
    ("pp2 interleaved 3", 3, PP2 + interleaved(3, 4)),
    ("pp3 interleaved 2", 4, PP3 + interleaved(2, 6)),
    ("tp2", 3, two("tp=2")),
    ("tp2 without sp", 3, two("tp=2, sp=false")),
    ("tp2 pp2", 5, four("tp=2, pp=2")),
    ("tp4", 5, four("tp=4")),
    ("dp2", 3, two("dp=2")),
    ("dp2 sharded", 3, two("dp=2") + SHARD),
    ("dp4 sharded", 5, four("dp=4") + SHARD),
    ("dp2 pp2", 5, four("dp=2, pp=2")),
    ("dp2 pp2 sharded", 5, four("dp=2, pp=2") + SHARD),
    ("tp2 dp2 sharded", 5, four("tp=2, dp=2") + SHARD),
    ("cp2", 3, two("cp=2")),
    ("cp2 pp2", 5, four("cp=2, pp=2")),
    ("cp2 tp2", 5, four("cp=2, tp=2")),
    ("attention again", 3, PP2 + recompute("attention")),
    ("mlp.up again", 3, PP2 + recompute("mlp.up")),
    ("mlp again", 3, PP2 + recompute("mlp")),
    ("attention, mlp.up again", 3, PP2 + recompute("attention", "mlp.up")),
    ("all again *", 3, PP2 + recompute("full")),
    ("all again, gpipe", 4, PP3 + recompute("full") + GPIPE),
    ("all again, zb-h1", 3, PP2 + recompute("full") + ZB_H1),
    ("all again, tp2", 3, two("tp=2") + recompute("full")),
    ("bfloat16", 3, PP2 + BFLOAT16),
    ("bfloat16 all again", 3, PP2 + BFLOAT16 + recompute("full")),
    ("bfloat16 sharded", 3, two("dp=2") + BFLOAT16 + SHARD),
    ("bfloat16 tp2", 3, two("tp=2") + BFLOAT16),
    ("float64", 3, PP2 + ["run.precision=float64"]),
    ("colocated pp2 *", 2, colocated("pp=2", "dp=2")),
    ("colocated tp2", 2, colocated("tp=2", "dp=2")),
    ("colocated, window 2", 2, colocated("dp=2", "dp=2") + ["schedule.window=2"]),
    ("colocated, frozen encoder", 2,
     colocated("pp=2", "dp=2") + ["modules.vision.frozen=true"]),
    ("inline", 1, inline("", 1)),
    ("inline pp2", 2, inline("pp=2", 2)),
    ("inline, frozen encoder", 2, inline("pp=2", 2) + ["modules.vision.frozen=true"]),
    ("frozen encoder", 3, PP2 + ["modules.vision.frozen=true"]),
    ("only the projector trains", 3,
     PP2 + ["modules.vision.frozen=true", "modules.language.frozen=true"]),
    ("tied head", 3, PP2 + ["modules.language.tied_head=true"]),
    ("2 samples", 3, PP2 + ["schedule.micro_batch_size=2"]),
    ("16 samples", 3, PP2 + ["schedule.micro_batch_size=16"]),
    ("256 tokens", 3,
     PP2 + ["modules.language.context=256", "schedule.micro_batch_size=4"]),
    ("8000 tokens in the vocabulary", 3, PP2 + ["modules.language.vocab=8000"]),
    ("wide encoder, dp2", 4,
     ["modules.language.ranks=0-1", "modules.language.layout={pp=2}", "modules.vision.ranks=2-3",
      "modules.vision.layout={dp=2}", "modules.vision.hidden=512", "modules.vision.layers=7",
      "modules.vision.heads=8", "modules.vision.mlp_hidden=2048"]),
    ("4 experts", 3,
     PP2 + ["modules.language.experts=4", "modules.language.experts_per_token=2",
            "modules.language.expert_hidden=512"]),
]

TINY = ["modules.language.hidden=16", "modules.language.layers=2", "modules.language.heads=2",
        "modules.language.kv_heads=1", "modules.language.mlp_hidden=16", "modules.vision.hidden=16",
        "modules.vision.layers=3", "modules.vision.heads=2", "modules.vision.mlp_hidden=16",
        "edges.vision.language.through.hidden=16", "modules.language.context=32",
        "schedule.micro_batch_size=1", "schedule.microbatches=2"]


def mib(text):
    number, unit = text.split()
    return float(number) * {"B": 1 / MIB, "KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}[unit]


def ranks_in(text):
    ranks = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


class Bench:
    def __init__(self, build, scratch):
        self.program = build / "troupe"
        self.counter = build / "tests" / "libtroupe_heap_peak.so"
        self.scratch = scratch
        self.config = scratch / "config.toml"
        self.config.write_text(BASE.format(root=ROOT, scratch=scratch))

    def run(self, *arguments, **more):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, cwd=ROOT,
                              check=False, **more)
        if done.returncode != 0:
            raise SystemExit(f"troupe {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def estimate(self, ranks, settings):
        """MiB by rank."""
        text = self.run("check", self.config, *settings, "--set", f"cluster.nodes={ranks}")
        needs = {}
        table = text[re.search(r"^stage +ranks +parameters", text, re.MULTILINE).start():]
        for line in table.splitlines()[1:]:
            if line.startswith("estimated:"):
                break
            cells = re.split(r" {2,}", line.strip())
            for rank in ranks_in(cells[1]):
                needs[rank] = needs.get(rank, 0.0) + mib(cells[-1])
        return needs

    def data(self, settings):
        """Files whose samples all fill the context."""
        resolved = self.scratch / "resolved.toml"
        resolved.write_text(self.run("check", self.config, *settings, "--print-config"))
        context = re.search(r"^context *= *(\d+)", resolved.read_text(), re.MULTILINE).group(1)
        folder = self.scratch / f"data{context}"
        if not folder.exists():
            subprocess.run([sys.executable, ROOT / "bench" / "vlm_data.py", resolved, folder,
                            "--rows", "64"], check=True, stdout=subprocess.DEVNULL)
            rows = json.loads((folder / "train.json").read_text())
            (folder / "held_out.json").write_text(json.dumps(rows[:8]))
        return ["--set", f"data.train={folder}/train.json",
                "--set", f"data.held_out={folder}/held_out.json"]

    def measure(self, ranks, settings):
        """MiB by rank: of the heap, and as the product reports it."""
        shutil.rmtree(self.scratch / "runs", ignore_errors=True)
        for old in self.scratch.glob("peak.*"):
            old.unlink()
        environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", LD_PRELOAD=str(self.counter),
                           TROUPE_HEAP_PEAK=str(self.scratch / "peak"))
        local = ["--local", str(ranks)] if ranks > 1 else []
        text = self.run("train", self.config, *local, *settings, env=environment)
        peaks = {path.suffix[1:]: struct.unpack("q", path.read_bytes()[:8])[0] / MIB
                 for path in self.scratch.glob("peak.*")}
        heap = {0: max(peaks.values())}
        for process in re.finditer(r"^n\d+ +(\d+) .* (\d+)$", text, re.MULTILINE):
            heap[int(process.group(1))] = peaks[process.group(2)]
        run = next((self.scratch / "runs").glob("m-*"))
        summary = self.run("trace", "summary", run)
        resident = {int(line.group(1)): mib(line.group(2)) for line in re.finditer(
            r"^n(\d+) .* (\S+ [KMG]iB)$", summary, re.MULTILINE)}
        return heap, resident


def settings_of(ranks, settings):
    result = []
    for one in [f"cluster.ranks={ranks}", "modules.vision.layout={}", *settings]:
        if one.startswith("modules.vision.layout={}") and any("inline_in" in s for s in settings):
            continue
        result += ["--set", one]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="a few configurations only")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--within", type=float, default=5.0, help="percent")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(arguments.build.resolve(), pathlib.Path(scratch))
        tiny = settings_of(2, ONE + TINY)
        tiny += bench.data(tiny)
        heap, resident = bench.measure(2, tiny)
        base = max(heap.values()) - max(bench.estimate(2, tiny).values())
        resident_base = max(resident.values()) - max(bench.estimate(2, tiny).values())
        print(f"base: heap {base:.1f} MiB, resident {resident_base:.1f} MiB")
        print(f"{'configuration':32} rank  predicted   measured  error   resident  error")
        errors, failed = [], []
        for name, ranks, own in CONFIGS:
            plain = name.removesuffix(" *")
            if arguments.quick and plain == name:
                continue
            if arguments.only and plain not in arguments.only.split(","):
                continue
            settings = settings_of(ranks, own)
            settings += bench.data(settings)
            needs = bench.estimate(ranks, settings)
            heap, resident = bench.measure(ranks, settings)
            worst = 0.0
            for rank in sorted(needs):
                predicted = needs[rank] + base
                error = 100.0 * (predicted / heap[rank] - 1.0)
                worst = max(worst, error, key=abs)
                seen = resident.get(rank, float("nan"))
                print(f"{plain:32} {rank:4} {predicted:7.1f} MiB {heap[rank]:7.1f} MiB {error:+6.1f}% "
                      f"{seen:6.1f} MiB {100.0 * ((needs[rank] + resident_base) / seen - 1.0):+6.1f}%",
                      flush=True)
            errors.append(abs(worst))
            if abs(worst) > arguments.within:
                failed.append(f"{plain} ({worst:+.1f}%)")
    print(f"{len(errors)} configurations, worst rank of each: median {statistics.median(errors):.1f}%, "
          f"worst {max(errors):.1f}%, {len(errors) - len(failed)} within {arguments.within:g}%")
    if failed:
        print("not within: " + ", ".join(failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
