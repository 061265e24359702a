#!/usr/bin/env python3
"""Draws the data set of data/shapes/: coloured shapes with captions, in the LLaVA format.

  tools/draw_shapes.py FOLDER [--train 600] [--held-out 64] [--seed 1] [--size 32]

Four kinds of rows: one image of one shape, one image of two shapes (named left to right), two
images of one shape each, and a question about a colour without an image. For models with two
encoders the same rows are written a second time, some with a close-up of one shape in a field
"detail". The same options give the same rows and pixels on every machine: everything is computed
in integers. A set with more rows begins with the rows of a smaller one.
"""

import argparse
import json
import pathlib
import struct
import zlib

PLANE = 4096  # side of the plane on which scenes are described, whatever the number of pixels
SUBPIXELS = 4  # per pixel and direction
SHAPES = ["circle", "square", "triangle", "cross"]
# 1024 times the cosine and the sine of about -16, -8, 0, 8 and 16 degrees.
TILTS = [(984, -282), (1014, -143), (1024, 0), (1014, 143), (984, 282)]
# Far from each other and from the dark backgrounds; the things are for rows without an image.
COLOURS = {
    "red": ((225, 35, 40), ("blood", "a tomato")),
    "green": ((40, 185, 65), ("grass", "a frog")),
    "blue": ((45, 85, 235), ("the sky", "the sea")),
    "yellow": ((250, 215, 45), ("the sun", "a lemon")),
    "purple": ((165, 60, 205), ("a plum", "lavender")),
    "white": ((245, 245, 245), ("snow", "milk")),
}
MASK = 2**64 - 1


def mix(x):
    """SplitMix64's finaliser, as in layout/random_bits.hpp."""
    x = x + 0x9E3779B97F4A7C15 & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def percent(number):
    return PLANE * number // 100


class Shape:
    """A shape on the plane; x to the right, y down; the radius is that of the circle around it."""

    def __init__(self, row, x, y, radius, colour):
        self.kind = SHAPES[row.between(0, 3)]
        self.cosine, self.sine = TILTS[row.between(0, 4)]
        self.x, self.y, self.radius, self.colour = x, y, radius, COLOURS[colour][0]
        self.name = f"a {colour} {self.kind}"

    def covers(self, x, y):
        dx, dy, radius = x - self.x, y - self.y, self.radius
        # Rounded towards zero, as C does.
        x, y = (int(value / 1024) for value in
                (dx * self.cosine + dy * self.sine, dy * self.cosine - dx * self.sine))
        if self.kind == "circle":
            return x * x + y * y <= radius * radius
        if self.kind == "square":
            return max(abs(x), abs(y)) <= radius * 7 // 8
        if self.kind == "triangle":
            return y <= radius * 7 // 8 and 2 * abs(x) <= y + radius
        return max(abs(x), abs(y)) <= radius and min(abs(x), abs(y)) <= radius * 5 // 16


class Scene:
    """Shapes on a background whose colour runs from top to bottom; later shapes are in front."""

    def __init__(self, row):
        ends = [row.between(20, 90) for _ in range(6)]
        self.top, self.bottom, self.shapes = ends[0::2], ends[1::2], []

    def colour_at(self, x, y):
        for shape in reversed(self.shapes):
            if shape.covers(x, y):
                return shape.colour
        down = min(max(y, 0), PLANE)
        return [(t * (PLANE - down) + b * down) // PLANE for t, b in zip(self.top, self.bottom)]

    def draw(self, size, left=0, top=0, side=PLANE):
        """The pixels of the square at (left, top), as `size` rows of RGB bytes."""
        halves = 2 * size * SUBPIXELS
        at = [int((2 * i + 1) * side / halves) for i in range(size * SUBPIXELS)]
        lines = []
        for row in range(0, len(at), SUBPIXELS):
            line = bytearray()
            for column in range(0, len(at), SUBPIXELS):
                colours = [self.colour_at(left + x, top + y)
                           for y in at[row:row + SUBPIXELS] for x in at[column:column + SUBPIXELS]]
                line += bytes(sum(channel) // len(colours) for channel in zip(*colours))
            lines.append(bytes(line))
        return lines


class Row:
    """The choices of one row: a random stream for each, so that rows do not depend on others."""

    def __init__(self, seed, train, number):
        self.state = mix(mix(mix(seed) + (1 if train else 2)) + number)

    def between(self, low, high):
        self.state = self.state + 0x9E3779B97F4A7C15 & MASK
        return low + mix(self.state) % (high - low + 1)

    def colour(self):
        return list(COLOURS)[self.between(0, len(COLOURS) - 1)]

    def one_shape(self):
        scene = Scene(self)
        radius = self.between(percent(24), percent(36))
        low = min(radius * 5 // 4, PLANE // 2)
        x, y = self.between(low, PLANE - low), self.between(low, PLANE - low)
        scene.shapes = [Shape(self, x, y, radius, self.colour())]
        return scene

    def two_shapes(self):
        """Of different colours, the first clearly left of the second."""
        scene = Scene(self)
        left = right = self.colour()
        while right == left:
            right = self.colour()
        for x, colour in ((percent(25), left), (percent(75), right)):
            radius, y = self.between(percent(17), percent(21)), self.between(percent(27), percent(73))
            scene.shapes.append(Shape(self, x, y, radius, colour))
        return scene


def png(lines):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", len(lines[0]) // 3, len(lines), 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


class Set:
    def __init__(self, arguments, train):
        self.folder, self.size, self.seed = arguments.folder, arguments.size, arguments.seed
        self.train, self.name = train, "train" if train else "held_out"
        self.rows, self.rows_two = [], []

    def write(self, num_rows):
        for number in range(num_rows):
            self.id = f"{self.name}_{number:04}"
            self.add(Row(self.seed, self.train, number))
        for name, rows in ((f"{self.name}.json", self.rows), (f"{self.name}_two.json", self.rows_two)):
            # One row a line, so that a changed row is a changed line.
            lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
            (self.folder / name).write_text(f"[\n{lines}\n]\n" if rows else "[]\n")

    def add(self, row):
        kind = row.between(0, 15)
        detail = None
        if kind < 12:
            scene = row.one_shape() if kind < 7 else row.two_shapes()
            closer = scene.shapes[row.between(0, 1)] if kind >= 7 else scene.shapes[0]
            image = self.save("images", self.id, scene)
            both = self.row(image, "<image>\nWhat is here?", " and ".join(s.name for s in scene.shapes))
            if row.between(0, 1) == 1:  # ask about a close-up
                side = closer.radius * 5 // 2
                detail = self.row(image, "<image><detail>\nWhich one?", closer.name)
                detail["detail"] = self.save("details", self.id, scene, closer.x - side // 2,
                                             closer.y - side // 2, side)
        elif kind < 14:
            scenes = [row.one_shape(), row.one_shape()]
            images = [self.save("images", f"{self.id}_{name}", scene)
                      for name, scene in zip(("first", "second"), scenes)]
            both = self.row(images, "<image><image>\nWhat is here?",
                            ", then ".join(scene.shapes[0].name for scene in scenes))
        else:
            colour = row.colour()
            thing = COLOURS[colour][1][row.between(0, 1)]
            both = self.row(None, f"What colour is {thing}?", colour)
        self.rows.append(both)
        self.rows_two.append(detail or both)

    def row(self, image, question, answer):
        turns = [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]
        return {"id": self.id} | ({"image": image} if image else {}) | {"conversations": turns}

    def save(self, folder, name, scene, *view):
        path = f"{folder}/{name}.png"
        (self.folder / path).write_bytes(png(scene.draw(self.size, *view)))
        return path


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=600, help="training rows")
    parser.add_argument("--held-out", type=int, default=64, help="held-out rows")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=int, default=32, help="side of an image in pixels")
    arguments = parser.parse_args()
    for folder in ("images", "details"):
        (arguments.folder / folder).mkdir(parents=True, exist_ok=True)
    Set(arguments, True).write(arguments.train)
    Set(arguments, False).write(arguments.held_out)


if __name__ == "__main__":
    main()
