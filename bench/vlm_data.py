#!/usr/bin/env python3
"""Writes a LLaVA data set whose every sample fills a configuration's context exactly.

    troupe check CONFIG --print-config > resolved.toml
    bench/vlm_data.py resolved.toml FOLDER [--rows N]

One image per row, of the encoder's own size, so that nothing is resized; then an answer of random
letters. Needs the tokenizer "bytes" and one encoder. By default as many rows as the global batch
has samples: then every step sees all of them, and its loss does not depend on their order.
"""

import argparse
import json
import pathlib
import random
import struct
import tomllib
import zlib

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
BOS, EOS, PLACEHOLDER, NO_LABEL = 256, 257, 259, -100
PNG = b"\x89PNG\r\n\x1a\n"


def module_of(config, kind):
    """The name and table of the only module of `kind`."""
    found = [item for item in config["modules"].items() if item[1]["kind"] == kind]
    if len(found) != 1:
        raise SystemExit(f"expected one module of kind {kind}, found {len(found)}")
    return found[0]


def rows_per_image(vision):
    side = vision["image_size"] // vision["patch_size"]
    return side * side + (1 if vision["class_token"] else 0)


def global_batch(config):
    """Samples of a step if the language model has one replica."""
    schedule = config["schedule"]
    return schedule["micro_batch_size"] * schedule["microbatches"]


def write_png(path, size, pixels):
    """`pixels`: size * size * 3 bytes."""
    def chunk(kind, data):
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    rows = b"".join(b"\0" + pixels[y * size * 3:(y + 1) * size * 3] for y in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    path.write_bytes(PNG + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) +
                     chunk(b"IEND", b""))


def read_png(path):
    """Size and pixels of a file by write_png."""
    data = path.read_bytes()
    size, height = struct.unpack(">II", data[16:24])
    length = struct.unpack(">I", data[33:37])[0]
    rows = zlib.decompress(data[41:41 + length])
    if data[:8] != PNG or height != size or len(rows) != size * (size * 3 + 1):
        raise SystemExit(f"{path}: expected an image that bench/vlm_data.py wrote")
    step = size * 3 + 1
    return size, b"".join(rows[y * step + 1:(y + 1) * step] for y in range(size))


def tokens_of(row, vision):
    """Token ids and labels of a row as data/sample.hpp makes them with the tokenizer "bytes"."""
    question, answer = (turn["value"] for turn in row["conversations"])
    if question != "<image>":
        raise SystemExit("expected a row that bench/vlm_data.py wrote")
    tokens = [BOS] + [PLACEHOLDER] * rows_per_image(vision) + [ord("\n")]
    first = len(tokens)
    tokens += list(answer.encode()) + [EOS]
    labels = [NO_LABEL] * len(tokens)
    labels[first - 1:-1] = tokens[first:]
    return tokens, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="a configuration with all values, as --print-config prints")
    parser.add_argument("folder", type=pathlib.Path, help="written into; made if missing")
    parser.add_argument("--rows", type=int, help="how many; default: the global batch")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    config = tomllib.loads(pathlib.Path(arguments.config).read_text())
    _, vision = module_of(config, "vit")
    _, language = module_of(config, "llama")
    letters = language["context"] - rows_per_image(vision) - 3
    if letters < 1:
        raise SystemExit(f"context: expected more than {language['context'] - letters} tokens")

    draw = random.Random(arguments.seed)
    (arguments.folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(arguments.rows or global_batch(config)):
        size = vision["image_size"]
        write_png(arguments.folder / "images" / f"{number}.png", size,
                  draw.randbytes(size * size * 3))
        answer = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz ,.", k=letters))
        rows.append({"id": str(number), "image": f"images/{number}.png",
                     "conversations": [{"from": "human", "value": "<image>"},
                                       {"from": "gpt", "value": answer}]})
    (arguments.folder / "train.json").write_text(json.dumps(rows))
    print(f"{len(rows)} rows of {language['context']} tokens in {arguments.folder}/train.json")


if __name__ == "__main__":
    main()
