#!/usr/bin/env python3
"""Writes WebDataset shards of small distinct samples, and many names for few of them by hard links.

    bench/data_shards.py FOLDER [--distinct 10] [--samples 10000] [--names 1000]
"""
import argparse
import io
import json
import os
import random
import struct
import tarfile
import zlib

COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 70, 220), "grey": (128, 128, 128)}


def png(width, height, pixel):
    """A one-coloured image of 8-bit RGB."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    row = b"\0" + bytes(pixel) * width
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row * height, 1))
            + chunk(b"IEND", b""))


def add(tar, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def write_shard(path, shard, samples):
    draw = random.Random(shard)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(samples):
            name = draw.choice(sorted(COLOURS))
            pixel = tuple(min(255, max(0, c + draw.randint(-30, 30))) for c in COLOURS[name])
            row = {"conversations": [{"from": "human", "value": "<image>\nWhich colour?"},
                                     {"from": "gpt", "value": f"{name} {shard * samples + i}"}]}
            add(tar, f"{i:06d}.png", png(32, 32, pixel))
            add(tar, f"{i:06d}.json", json.dumps(row).encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--distinct", type=int, default=10, help="shards that are written")
    parser.add_argument("--samples", type=int, default=10000, help="in each shard")
    parser.add_argument("--names", type=int, default=1000, help="names of shards, hard links beyond the distinct ones")
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    for i in range(args.names):
        path = os.path.join(args.folder, f"{i:03d}.tar")
        if i < args.distinct:
            write_shard(path, i, args.samples)
        elif not os.path.exists(path):
            os.link(os.path.join(args.folder, f"{i % args.distinct:03d}.tar"), path)


if __name__ == "__main__":
    main()
