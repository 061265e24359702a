"""Makes 200 small images of every format and mode, and records what transformers makes of them.

    python tools/oracle/record_images.py OUT

OUT/images/ gets the files and expected.txt, a line per file:

    NAME WIDTH HEIGHT PIXELS then, for each of FITS and each of FILTERS, BYTES:NUMBERS, then SQUARES:ROWS

WIDTH, HEIGHT and PIXELS are of transformers.image_utils.load_image. BYTES are the pixels that its slow
image processor gives before it rescales them, NUMBERS the float32 that an encoder reads. Each is the
beginning of a SHA-256: of [height, width, 3], [squares, SIZE, SIZE, 3] and [squares, 3, SIZE, SIZE].

SQUARES:ROWS are those of "anyres", from tiles.packed.

Exception: a grey PNG of 16 bits is recorded as if it had its upper 8, since Pillow's convert("RGB")
clips it at 255 and makes nearly all of it white.
"""
import hashlib
import io
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import tiles
from PIL import Image, PngImagePlugin
from PIL import __version__ as pillow_version
from transformers import (CLIPImageProcessor, LlavaImageProcessor, LlavaNextImageProcessor,
                          SiglipImageProcessor, __version__)
from transformers.image_utils import load_image

assert __version__ == "4.57.6", "the recordings are those of transformers 4.57.6"
assert pillow_version == "13.0.0", "the recordings are those of Pillow 13.0.0"

SIZE = 17  # odd, so that centres are rounded
SQUARE = {"height": SIZE, "width": SIZE}
SHORTER = {"shortest_edge": SIZE}
FILTERS = (Image.Resampling.BICUBIC, Image.Resampling.BILINEAR)
GRIDS = [[rows * SIZE, columns * SIZE] for rows, columns in ((1, 2), (2, 1), (2, 2), (3, 1), (1, 3))]
PATCH = 3  # pixels: a side of 5 rows
FITS = {
    "crop": lambda f: CLIPImageProcessor(size=SHORTER, crop_size=SQUARE, resample=f),
    "pad": lambda f: LlavaImageProcessor(do_pad=True, size=SHORTER, crop_size=SQUARE, resample=f),
    "stretch": lambda f: SiglipImageProcessor(size=SQUARE, resample=f),
    "anyres": lambda f: LlavaNextImageProcessor(size=SHORTER, crop_size=SQUARE, resample=f,
                                                image_grid_pinpoints=GRIDS),
}
# Width, height: a pixel, lines, the encoder's size, one more and one less, wide, tall. Pillow 13 resizes
# (23, 56) by rows first, (23, 40) only where it is stretched.
SIZES = ((1, 1), (1, 29), (31, 1), (17, 17), (18, 16), (53, 7), (23, 56), (23, 40))
TURNED = (11, 7)
rng = np.random.default_rng(11)


def pixels(width, height, channels):
    """Slopes that differ in every direction and channel, with some noise: small when compressed."""
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    slope = x * (150 - 40 * c) / max(width - 1, 1) + y * (40 + 30 * c) / max(height - 1, 1)
    return np.clip(slope + rng.integers(0, 24, slope.shape), 0, 255).astype(np.uint8)


def rgb(width, height):
    return Image.fromarray(pixels(width, height, 3), "RGB")


def rgba(width, height):
    image = rgb(width, height)
    image.putalpha(Image.fromarray(rng.integers(0, 256, (height, width)).astype(np.uint8)))
    return image


def grey(width, height):
    return Image.fromarray(pixels(width, height, 1)[..., 0], "L")


def palette(width, height):
    image = Image.new("P", (width, height))
    image.putpalette(rng.integers(0, 256, 3 * 11).astype(np.uint8).tobytes())
    image.putdata([int(v) for v in rng.integers(0, 11, width * height)])
    return image


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def before(png, name, new):
    """Inserts chunks before the first one of that name."""
    at = png.index(name) - 4
    return png[:at] + new + png[at:]


def with_exif(orientation, order="<"):
    exif = Image.Exif()
    exif[0x010F] = "a camera with a name that does not fit into its entry"
    exif[0x0112] = orientation
    exif.endian = order
    return exif.tobytes()


def xmp(orientation, attribute=True):
    return (f'<x tiff:Orientation="{orientation}"/>' if attribute
            else f"<x><tiff:Orientation>{orientation}</tiff:Orientation></x>").encode()


def pngs():
    for w, h in SIZES:
        yield f"bilevel_{w}x{h}.png", saved(grey(w, h).convert("1"), "PNG")
        yield f"grey_{w}x{h}.png", saved(grey(w, h), "PNG")
        yield f"grey_alpha_{w}x{h}.png", saved(rgba(w, h).convert("LA"), "PNG")
        yield f"rgb_{w}x{h}.png", saved(rgb(w, h), "PNG")
        yield f"rgba_{w}x{h}.png", saved(rgba(w, h), "PNG")
        yield f"palette_{w}x{h}.png", saved(palette(w, h), "PNG")
        yield f"palette_one_clear_{w}x{h}.png", saved(palette(w, h), "PNG", transparency=3)
        yield f"palette_alphas_{w}x{h}.png", saved(
            palette(w, h), "PNG", transparency=bytes(range(0, 220, 20)))
        yield f"rgb_clear_{w}x{h}.png", saved(rgb(w, h), "PNG", transparency=(90, 80, 70))
        deep = pixels(w, h, 1)[..., 0].astype(np.uint16) * 256 + rng.integers(0, 256, (h, w))
        yield f"grey16_{w}x{h}.png", saved(Image.fromarray(deep.astype(np.uint16)), "PNG")
    yield "palette_4_bits.png", saved(palette(19, 13), "PNG", bits=4, transparency=b"\0\x80")
    yield "palette_1_bit.png", saved(palette(19, 13).point(lambda v: v % 2), "PNG", bits=1)


def jpegs():
    for w, h in SIZES:
        yield f"grey_{w}x{h}.jpg", saved(grey(w, h), "JPEG")
        yield f"rgb_444_{w}x{h}.jpg", saved(rgb(w, h), "JPEG", subsampling=0)
        yield f"rgb_420_{w}x{h}.jpg", saved(rgb(w, h), "JPEG", subsampling=2, progressive=True)
        inks = Image.fromarray(pixels(w, h, 4), "CMYK")
        cmyk = saved(inks, "JPEG")
        yield f"cmyk_{w}x{h}.jpg", cmyk
        transform = cmyk.index(b"Adobe") + 11
        yield f"ycck_{w}x{h}.jpg", cmyk[:transform] + b"\2" + cmyk[transform + 1:]


def webps():
    for w, h in SIZES[:1] + SIZES[3:]:
        yield f"lossy_{w}x{h}.webp", saved(rgb(w, h), "WEBP", quality=80)
        yield f"lossless_{w}x{h}.webp", saved(rgb(w, h), "WEBP", lossless=True)
        yield f"lossy_alpha_{w}x{h}.webp", saved(rgba(w, h), "WEBP", quality=80)
        yield f"lossless_alpha_{w}x{h}.webp", saved(rgba(w, h), "WEBP", lossless=True, exact=True)
    animated = saved(rgba(21, 13), "WEBP", save_all=True, append_images=[rgba(21, 13)])
    yield "animated.webp", animated
    # A first frame that covers less than its canvas: 26 x 20, and the frame at 4, 6.
    frame = animated.index(b"ANMF") + 8
    yield "animated_part.webp", (animated[:24] + bytes([25, 0, 0, 19, 0, 0]) + animated[30:frame]
                                 + bytes([2, 0, 0, 3, 0, 0]) + animated[frame + 6:])


def moved(gif, left, top):
    """Moves the first frame of a GIF without comments to another place of its screen."""
    at = gif.index(b",", 13 + 3 * 2 ** ((gif[10] & 7) + 1))
    return gif[:at + 1] + struct.pack("<HH", left, top) + gif[at + 5:]


def gifs():
    for w, h in SIZES:
        yield f"palette_{w}x{h}.gif", saved(palette(w, h), "GIF", interlace=False)
        yield f"interlaced_{w}x{h}.gif", saved(palette(w, h), "GIF", interlace=True)
    yield "grey.gif", saved(grey(19, 13), "GIF")
    yield "clear.gif", saved(palette(19, 13), "GIF", transparency=5)
    yield "animated.gif", saved(palette(19, 13), "GIF", save_all=True,
                                append_images=[palette(19, 13), palette(19, 13)])
    yield "beyond_screen.gif", moved(saved(palette(19, 13), "GIF"), 3, 5)
    yield "beyond_screen_clear.gif", moved(saved(palette(19, 13), "GIF", transparency=2), 4, 1)


def turned():
    for orientation in range(1, 9):
        order = "<>"[orientation % 2]
        exif = with_exif(orientation, order)
        yield f"exif{orientation}.jpg", saved(rgb(*TURNED), "JPEG", exif=exif)
        yield f"exif{orientation}.png", saved(rgba(*TURNED), "PNG", exif=exif)
        yield f"exif{orientation}.webp", saved(rgb(*TURNED), "WEBP", exif=exif, lossless=True)
    png = saved(palette(*TURNED), "PNG")
    yield "exif6_after_pixels.png", before(png, b"IEND", chunk(b"eXIf", with_exif(6)[6:]))
    yield "exif9.jpg", saved(rgb(*TURNED), "JPEG", exif=with_exif(9))
    yield "exif8_not_xmp3.jpg", saved(rgb(*TURNED), "JPEG", exif=with_exif(8), xmp=xmp(3))
    yield "xmp5.jpg", saved(rgb(*TURNED), "JPEG", xmp=xmp(5))
    yield "xmp6.webp", saved(rgb(*TURNED), "WEBP", xmp=xmp(6, attribute=False))
    info = PngImagePlugin.PngInfo()
    info.add_itxt("XML:com.adobe.xmp", xmp(7).decode(), zip=True)
    yield "xmp7.png", saved(rgb(*TURNED), "PNG", pnginfo=info)
    raw = with_exif(8).hex()
    info = PngImagePlugin.PngInfo()
    info.add_text("Raw profile type exif", f"\nexif\n{len(raw) // 2:8}\n{raw[:72]}\n{raw[72:]}\n",
                  zip=True)
    yield "raw_profile8.png", saved(grey(*TURNED), "PNG", pnginfo=info)


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def loaded(path):
    if path.name.startswith("grey16"):
        with Image.open(path) as image:
            assert image.mode == "I;16"
            return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8), "L").convert("RGB")
    return load_image(str(path))


def expand2square(image, colour):
    """LLaVA's padding, in our words."""
    side = max(image.size)
    square = Image.new("RGB", (side, side), colour)
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return square


def processed(processor, image, **options):
    # A height of 1 or 3 would be taken for channels.
    return processor(image, input_data_format="channels_last", return_tensors="np",
                     **options)["pixel_values"][0]


def record(path):
    image = loaded(path)
    fields = [path.name, str(image.width), str(image.height), digest(np.asarray(image))]
    for fit, make in FITS.items():
        for resampling in FILTERS:
            processor = make(resampling)
            eight_bits = processed(processor, image, do_rescale=False, do_normalize=False)
            numbers = processed(processor, image)
            assert eight_bits.dtype == np.uint8 and numbers.dtype == np.float32
            if fit == "pad":
                colour = tuple(int(x * 255) for x in processor.image_mean)
                square = expand2square(image, colour)
                again = processed(FITS["crop"](resampling), square)
                assert (again == numbers).all()
            last = (0, 2, 3, 1) if fit == "anyres" else (1, 2, 0)
            fields.append(f"{digest(eight_bits.transpose(last))}:{digest(numbers)}")
    fields.append(tiles.packed((image.height, image.width), GRIDS, SIZE, PATCH))
    return " ".join(fields)


def main():
    out = Path(sys.argv[1]) / "images"
    out.mkdir(parents=True, exist_ok=True)
    lines = []
    for make in (pngs, jpegs, webps, gifs, turned):
        for name, data in make():
            (out / name).write_bytes(data)
            lines.append(record(out / name))
    print(len(lines), "images")
    (out / "expected.txt").write_text("\n".join(lines) + "\n")


main()
