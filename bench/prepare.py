#!/usr/bin/env python3
"""Compares the preparation of samples with WebDataset, Pillow, numpy and `tokenizers` on the same cores.

    bench/prepare.py build/cpu SCRATCH_FOLDER [--samples 400] [--rounds 5]

Writes two shards of 640 x 480 JPEGs and texts, and in SCRATCH/venv an environment with the packages unless
the running Python has them. Checks that the pixels differ by at most 1/255 before they are normalised and
that the tokens are the same. Then two processes of Python and two threads of bench_prepare prepare all
samples, in turns. Prints medians: rates, and milliseconds of processor time of each part. Exit code 1: an
output differs.
"""
import argparse
import importlib.util
import io
import itertools
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tarfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOKENIZER = ROOT / "tests/oracle/tokenizers/qwen2"
PACKAGES = {"webdataset": "webdataset", "PIL": "pillow", "numpy": "numpy", "tokenizers": "tokenizers"}
SIDE, WORKERS, BATCH, TEXT_ROUNDS = 336, 2, 32, 10
MEAN, DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
PARTS = ["read", "decode", "resize", "normalise", "tokenize"]

# Each process has its own thread, as each of ours. Workers of a loader are processes.
os.environ.update(TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


def run_with_packages(scratch):
    """Starts this script again in an environment that has the packages."""
    if all(importlib.util.find_spec(name) for name in PACKAGES):
        return
    python = scratch / "venv/bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", scratch / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES.values()], check=True)
    os.execv(python, [str(python), *sys.argv])


def photo(draw, number):
    """A JPEG with gradients, shapes and noise, of the size of a photograph's."""
    import numpy
    from PIL import Image, ImageDraw, ImageFilter
    noise = numpy.random.default_rng(number)
    y, x = numpy.mgrid[0:480, 0:640].astype(numpy.float32)
    waves = [noise.uniform(-1, 1, 3)[:, None, None] for _ in range(4)]
    sky = numpy.stack([128 + 60 * numpy.sin(x / 150 * waves[0][c] + y / 110 * waves[1][c] + 3 * waves[2][c])
                       for c in range(3)], axis=2)
    image = Image.fromarray(numpy.clip(sky, 0, 255).astype(numpy.uint8))
    brush = ImageDraw.Draw(image)
    for _ in range(40):
        left, top = draw.randrange(-50, 620), draw.randrange(-50, 460)
        box = (left, top, left + draw.randrange(10, 160), top + draw.randrange(10, 160))
        colour = tuple(draw.randrange(256) for _ in range(3))
        draw.choice([brush.rectangle, brush.ellipse])(box, fill=colour)
    image = image.filter(ImageFilter.GaussianBlur(0.8))
    grain = noise.normal(0, 1, (480, 640, 1)) * noise.uniform(6, 12)
    image = Image.fromarray(numpy.clip(numpy.asarray(image) + grain, 0, 255).astype(numpy.uint8))
    file = io.BytesIO()
    image.save(file, "jpeg", quality=90)
    return file.getvalue()


def write_shards(folder, samples):
    """Returns the shards, and the mean size of an image."""
    sys.path.insert(0, str(ROOT / "tools/oracle"))
    from mixed_text import corpus
    draw = random.Random(3)
    # In our rows "<image>" is a placeholder.
    texts = [text.decode().replace("<image>", "image").strip() for text in corpus(4, seed=11)]
    texts = [text for text in texts if len(text) > 200]
    shards, sizes = [folder / f"{i}.tar" for i in range(WORKERS)], []
    for shard in shards:
        with tarfile.open(shard, "w", format=tarfile.USTAR_FORMAT) as tar:
            for _ in range(samples // WORKERS):
                image = photo(draw, len(sizes))
                for ending, data in (("jpg", image), ("txt", texts[len(sizes)].encode())):
                    member = tarfile.TarInfo(f"{len(sizes):06d}.{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
                sizes.append(len(image))
    return shards, statistics.mean(sizes)


def open_tokenizer():
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(TOKENIZER / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return tokenizer


def prepare(shard, tokenizer, seconds):
    """Yields batches of pixels and encodings. Adds to the seconds of each part."""
    import numpy
    import webdataset
    from PIL import Image
    mean = numpy.array(MEAN, numpy.float32)[:, None, None]
    deviation = numpy.array(DEVIATION, numpy.float32)[:, None, None]
    pixels, texts, begin = [], [], time.thread_time()

    def end(part):
        nonlocal begin
        now = time.thread_time()  # processor time, which a busy machine changes less
        seconds[part] += now - begin
        begin = now

    def flush():
        ids = tokenizer.encode_batch(texts, add_special_tokens=False)
        end("tokenize")
        return pixels, ids

    for row in webdataset.WebDataset(str(shard), shardshuffle=False):
        end("read")
        image = Image.open(io.BytesIO(row["jpg"])).convert("RGB")
        end("decode")
        width, height = image.size
        shorter = min(width, height)
        width, height = width * SIDE // shorter, height * SIDE // shorter
        left, top = (width - SIDE) // 2, (height - SIDE) // 2
        image = image.resize((width, height), Image.Resampling.BICUBIC)
        image = image.crop((left, top, left + SIDE, top + SIDE))
        end("resize")
        values = numpy.array(numpy.asarray(image).transpose(2, 0, 1), numpy.float32, order="C")
        values *= numpy.float32(1 / 255)
        values -= mean
        values /= deviation
        pixels.append(values)
        end("normalise")
        texts.append(row["txt"].decode() + "\n")
        if len(texts) == BATCH:
            yield flush()
            pixels, texts = [], []
    if texts:
        yield flush()


def texts_of(shard):
    import webdataset
    return [row["txt"].decode() + "\n" for row in webdataset.WebDataset(str(shard), shardshuffle=False)]


def worker(shard, alone, barrier, queue):
    tokenizer = open_tokenizer()
    seconds, rows, tokens = dict.fromkeys(PARTS, 0.0), 0, 0
    texts = texts_of(shard) if alone else []
    barrier.wait()
    begin = time.perf_counter()
    if alone:
        for _ in range(TEXT_ROUNDS):
            for at in range(0, len(texts), BATCH):
                tokens += sum(len(e.ids) for e in getattr(tokenizer, alone)(texts[at:at + BATCH],
                                                                            add_special_tokens=False))
    else:
        for pixels, encodings in prepare(shard, tokenizer, seconds):
            rows += len(pixels)
            tokens += sum(len(encoding.ids) for encoding in encodings)
    queue.put((begin, time.perf_counter(), rows, tokens, seconds))


def on_workers(shards, alone=""):
    """Returns rows, tokens, the seconds from the first begin to the last end, and those of the parts."""
    barrier, queue = multiprocessing.Barrier(WORKERS), multiprocessing.Queue()
    processes = [multiprocessing.Process(target=worker, args=(shard, alone, barrier, queue)) for shard in shards]
    for process in processes:
        process.start()
    done = [queue.get() for _ in processes]
    for process in processes:
        process.join()
    return (sum(d[2] for d in done), sum(d[3] for d in done), max(d[1] for d in done) - min(d[0] for d in done),
            {part: sum(d[4][part] for d in done) for part in PARTS})


def baseline(shards):
    rows, tokens, time_s, parts = on_workers(shards)
    line = {"images_per_s": rows / time_s, "tokens_per_s": tokens / time_s}
    line |= {part: parts[part] * 1e3 / rows for part in PARTS}
    for key, call in (("tokens_alone_per_s", "encode_batch"), ("tokens_fast_per_s", "encode_batch_fast")):
        _, tokens, time_s, _ = on_workers(shards, call)
        line[key] = tokens / time_s
    return line


def outputs_differ(program, shards, pattern, scratch):
    import numpy
    out = scratch / "out.bin"
    subprocess.run([program, pattern, TOKENIZER, "--out", out], check=True)
    words = numpy.fromfile(out, numpy.uint32)
    tokenizer, worst, wrong, at, count = open_tokenizer(), 0.0, 0, 0, 0
    deviation = numpy.array(DEVIATION)[:, None, None]
    batches = (prepare(shard, tokenizer, dict.fromkeys(PARTS, 0.0)) for shard in shards)
    for pixels, encodings in itertools.chain.from_iterable(batches):
        for theirs, encoding in zip(pixels, encodings):
            if at == len(words):
                break
            ids = words[at + 1:at + 1 + words[at]]
            at += 1 + int(words[at])
            ours = words[at:at + theirs.size].view(numpy.float32).reshape(theirs.shape)
            at += theirs.size
            worst = max(worst, float(numpy.abs((ours - theirs) * deviation).max()))
            wrong += ids.tolist() != encoding.ids
            count += 1
    out.unlink()
    print(f"outputs of {count} samples: pixels differ by {worst:.2g} at most (1/255 = {1 / 255:.2g}), "
          f"tokens of {wrong} samples differ")
    return at != len(words) or wrong > 0 or worst > 1 / 255


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    args.scratch.mkdir(parents=True, exist_ok=True)
    run_with_packages(args.scratch)
    cores = sorted(os.sched_getaffinity(0))[:WORKERS]
    os.sched_setaffinity(0, cores)
    shards, size = write_shards(args.scratch, args.samples)
    program, pattern = f"{args.build}/bench/bench_prepare", f"{args.scratch}/{{0..{WORKERS - 1}}}.tar"
    print(f"{args.samples} images of {size / 1000:.0f} kB, cores {cores}, load {os.getloadavg()[0]:.1f}")
    differ = outputs_differ(program, shards, pattern, args.scratch)
    ours, theirs = [], []
    for _ in range(args.rounds):
        theirs.append(baseline(shards))
        run = subprocess.run([program, pattern, TOKENIZER, "--threads", str(WORKERS)], check=True, capture_output=True)
        ours.append(json.loads(run.stdout))
    for line in ours:
        line["tokens_fast_per_s"] = line["tokens_alone_per_s"]
    print(f"{'':20}{'python':>12}{'ours':>12}{'ratio':>8}")
    for key in theirs[0]:
        a, b = (statistics.median(line[key] for line in lines) for lines in (theirs, ours))
        ratio = statistics.median(o[key] / t[key] if key.endswith("_per_s") else t[key] / o[key]
                                  for o, t in zip(ours, theirs))
        digits = 0 if key.endswith("_per_s") else 3
        print(f"{key:20}{a:12.{digits}f}{b:12.{digits}f}{ratio:8.2f}")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
