"""Compares the tokens of a folder with those of `tokenizers`, and the speed.

    python tools/oracle/compare_tokenizers.py FOLDER build/cpu/bench/bench_tokenizer

Compares 10 MB of mixed texts, and every code point alone, between letters and in rows, special tokens
in the texts taken as text. Prints the differences, the code points as ranges. Then MB/s of both on one
thread, in turns. Exit code 1: a mixed text differs.
"""
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer  # noqa: E402

from mixed_text import corpus  # noqa: E402

ROUNDS = 5


def write_texts(path, texts):
    with open(path, "wb") as out:
        for text in texts:
            out.write(struct.pack("<I", len(text)) + text)


def our_ids(program, folder, path):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run([program, folder, path, "--ids", out.name], check=True)
        words = memoryview(out.read()).cast("I")
    ids, at = [], 0
    while at < len(words):
        ids.append(list(words[at + 1:at + 1 + words[at]]))
        at += 1 + words[at]
    return ids


def differing(program, folder, tokenizer, texts):
    """The places in `texts` at which the two differ."""
    with tempfile.NamedTemporaryFile() as file:
        write_texts(file.name, texts)
        ours = our_ids(program, folder, file.name)
    theirs = [tokenizer.encode(text.decode(errors="replace"), add_special_tokens=False).ids for text in texts]
    assert len(ours) == len(theirs)
    return [place for place, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]]


def show_ranges(codes):
    out = []
    for code in codes:
        if out and out[-1][1] == code - 1:
            out[-1][1] = code
        else:
            out.append([code, code])
    return ", ".join(f"U+{a:04X}" + (f"-{b:04X}" if b > a else "") for a, b in out)


def compare_code_points(program, folder, tokenizer):
    codes = [code for code in range(0x110000) if not 0xd800 <= code <= 0xdfff]
    # In a row, among spaces and digits: classes of characters show at the borders of words.
    forms = {"alone": "{0}", "between letters": "a{0}b", "in rows": "1{0}{0} {0}a{0} 2 {0}{0}"}
    for name, form in forms.items():
        texts = [form.format(chr(code)).encode() for code in codes]
        wrong = [codes[place] for place in differing(program, folder, tokenizer, texts)]
        unassigned = [code for code in wrong if unicodedata.category(chr(code)) == "Cn"]
        print(f"code points {name}: {len(wrong)} of {len(codes)} differ, {len(unassigned)} of them not in "
              f"Unicode {unicodedata.unidata_version}: {show_ranges(wrong) or 'none'}")


def compare_speed(program, folder, tokenizer, texts):
    decoded = [text.decode(errors="replace") for text in texts]
    size = sum(map(len, texts)) / 1e6
    theirs = []
    with tempfile.NamedTemporaryFile() as file:
        write_texts(file.name, texts)
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            for text in decoded:
                tokenizer.encode(text, add_special_tokens=False)
            theirs.append(size / (time.perf_counter() - begin))
        ours = json.loads(subprocess.run([program, folder, file.name], check=True, capture_output=True).stdout)
    their_rate = statistics.median(theirs)
    print(f"speed: {ours['MB_per_s']:.2f} MB/s (mad {ours['mad']:.2f}), tokenizers {their_rate:.2f} MB/s, "
          f"ratio {ours['MB_per_s'] / their_rate:.2f}")


def main():
    folder, program = sys.argv[1:]
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    texts = corpus(10, seed=11)
    wrong = differing(program, folder, tokenizer, texts)
    print(f"mixed texts: {len(wrong)} of {len(texts)} differ ({sum(map(len, texts)) / 1e6:.1f} MB)")
    for place in wrong[:3]:
        print(f"  {texts[place].decode(errors='replace')!r}")
    compare_code_points(program, folder, tokenizer)
    compare_speed(program, folder, tokenizer, texts)
    sys.exit(1 if wrong else 0)


main()
