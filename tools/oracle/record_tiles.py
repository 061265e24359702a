"""Records the tiles that LLaVA-NeXT cuts images of many sizes into.

    python tools/oracle/record_tiles.py OUT

OUT/tiles.txt gets a line per size:

    HEIGHT WIDTH SIDE ROWS SQUARES:DIGEST

SIDE is that of a tile in pixels, ROWS that of a tile in rows, SQUARES the number of squares. DIGEST is
the beginning of the SHA-256 of the packed features, where each feature is its own number and the newline
is -2: [tokens] int64. With SIDE 336 the grids are LLaVA-NeXT's, else all of up to 4 x 4.
"""
import hashlib
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from transformers import LlavaNextModel, LlavaNextProcessor, __version__
from transformers.models.llava_next.modeling_llava_next import image_size_to_num_patches

assert __version__ == "4.57.6", "the recordings are those of transformers 4.57.6"

USUAL = ((1, 2), (2, 1), (2, 2), (3, 1), (1, 3))
ALL = tuple((rows, columns) for rows in range(1, 5) for columns in range(1, 5))


def packed(size, side, rows):
    """The number of squares of an image, and its packed rows."""
    grids = [[r * side, c * side] for r, c in (USUAL if side == 336 else ALL)]
    squares = image_size_to_num_patches(size, grids, side)
    features = torch.arange(squares * rows * rows).view(squares, rows * rows, 1)
    # Only their quotient counts.
    vision = SimpleNamespace(image_size=side, patch_size=side // rows)
    model = SimpleNamespace(config=SimpleNamespace(vision_config=vision, image_grid_pinpoints=grids))
    found, _ = LlavaNextModel.pack_image_features(model, [features], [size], "default",
                                                  image_newline=torch.tensor([-2]))
    processor = SimpleNamespace(
        image_processor=SimpleNamespace(image_grid_pinpoints=grids), patch_size=side // rows,
        num_additional_image_tokens=0,
        _get_unpadded_features=lambda *sizes: LlavaNextProcessor._get_unpadded_features(None, *sizes))
    assert LlavaNextProcessor._get_number_of_features(processor, *size, side, side) == len(found[0])
    numbers = found[0].view(-1).numpy().astype(np.int64)
    return f"{squares}:{hashlib.sha256(numbers.tobytes()).hexdigest()[:16]}"


def main():
    random.seed(3)
    lines = []
    for number in range(600):
        side, rows = ((336, 24), (384, 27), (224, 16), (56, 4))[number % 4]
        longest = (80, 700, 3000, 20000)[number // 4 % 4]
        size = (random.randint(1, longest), random.randint(1, longest))
        if number % 7 == 0:  # the shape of a grid, or nearly
            grid = random.choice(USUAL)
            scale = random.randint(1, 900)
            size = (max(1, grid[0] * scale + random.choice((-1, 0, 0, 1))), grid[1] * scale)
        lines.append(f"{size[0]} {size[1]} {side} {rows} {packed(size, side, rows)}")
    (Path(sys.argv[1]) / "tiles.txt").write_text("\n".join(lines) + "\n")


main()
