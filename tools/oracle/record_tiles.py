"""Records the tiles that LLaVA-NeXT cuts images of many sizes into.

    python tools/oracle/record_tiles.py OUT

OUT/tiles.txt gets a line per size:

    HEIGHT WIDTH SIDE ROWS SQUARES:DIGEST

SIDE is that of a tile in pixels, ROWS that of a tile in rows, the rest of tiles.packed. With SIDE 336 the
grids are LLaVA-NeXT's, else all of up to 4 x 4.
"""
import random
import sys
from pathlib import Path

import tiles
from transformers import __version__

assert __version__ == "4.57.6", "the recordings are those of transformers 4.57.6"

USUAL = ((1, 2), (2, 1), (2, 2), (3, 1), (1, 3))
ALL = tuple((rows, columns) for rows in range(1, 5) for columns in range(1, 5))


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
        grids = [[r * side, c * side] for r, c in (USUAL if side == 336 else ALL)]
        lines.append(f"{size[0]} {size[1]} {side} {rows} "
                     f"{tiles.packed(size, grids, side, side // rows)}")
    (Path(sys.argv[1]) / "tiles.txt").write_text("\n".join(lines) + "\n")


main()
