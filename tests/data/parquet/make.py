#!/usr/bin/env python3
"""Writes the Parquet files of tests/data/parquet_rows_test.cpp next to itself. Needs pyarrow."""
import os

import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
TURNS = pa.list_(pa.struct([("from", pa.string()), ("value", pa.string())]))


def write(name, columns, **more):
    pq.write_table(pa.table(columns), os.path.join(HERE, name), **more)


def turns(*texts):
    return [{"from": ("human", "gpt")[i % 2], "value": text} for i, text in enumerate(texts)]


# As the `datasets` library writes images: three row groups of two rows, the last of one.
write("images.parquet", {
    "id": pa.array([f"row{i}" for i in range(5)]),
    "image": pa.array([{"bytes": b"image %d" % i, "path": f"{i}.png"} if i != 3 else None for i in range(5)], FILE),
    "conversations": pa.array([turns("<image>?" if i != 3 else "no image", f"answer {i}") for i in range(5)], TURNS),
    "score": pa.array([0.5] * 5),
}, row_group_size=2)

# Several images of a row, numbers as ids, dictionaries, null columns, large types.
write("lists.parquet", {
    "id": pa.array([7, 8]),
    "images": pa.array([[b"a", b"b"], [b"c"]], pa.list_(pa.large_binary())),
    "conversations": pa.array([turns("<image><image>", "two"), turns("<image>", "one")], TURNS),
    "split": pa.array(["train", "train"]).dictionary_encode(),
    "caption": pa.array([None, None], pa.string()),
}, compression="zstd")

# Parts of messages: Arrow gives every part all columns, null where it has none.
PARTS = pa.list_(pa.struct([("type", pa.string()), ("text", pa.string())]))
write("messages.parquet", {
    "image": pa.array([b"dog"]),
    "messages": pa.array([[
        {"role": "user", "content": [{"type": "text", "text": "what is "}, {"type": "image"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a dog"}]},
    ]], pa.list_(pa.struct([("role", pa.string()), ("content", PARTS)]))),
})

# Rows that cannot be used: a file of which only the path is there, no turns, and a good one.
write("bad.parquet", {
    "id": pa.array(["path", "empty", "good"]),
    "image": pa.array([{"bytes": None, "path": "/etc/passwd"}, {"bytes": b"x", "path": "x"}, {"bytes": b"y", "path": "y"}], FILE),
    "conversations": pa.array([turns("<image>", "a"), [], turns("<image>", "b")], TURNS),
})

# Bombs: rows that name one value of 1 MiB. The files have some KiB; the first has more rows than bytes, the only row group
# of the second becomes 6 GB.
value = pa.array([b"\0" * (1 << 20)])
for name, rows in (("many_rows.parquet", 8_000_000), ("large_group.parquet", 6_000)):
    bomb = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), value)
    write(name, {"id": pa.array([f"row{i % 4000}" if rows < 1e6 else None for i in range(rows)], pa.string()), "image": bomb},
          compression="zstd", row_group_size=1 << 30, store_schema=False)

with open(os.path.join(HERE, "images.parquet"), "rb") as whole:
    data = whole.read()
with open(os.path.join(HERE, "cut.parquet"), "wb") as cut:
    cut.write(data[:len(data) // 2])
