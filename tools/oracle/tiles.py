"""How LLaVA-NeXT cuts images into tiles, and the images of its recordings: tiles of 8 x 8 pixels, 2 x 2
patches each."""
import hashlib
from types import SimpleNamespace

import numpy as np
import torch
from transformers import LlavaNextModel, LlavaNextProcessor
from transformers.models.llava_next.modeling_llava_next import image_size_to_num_patches

SIDE, PATCH = 8, 4
GRIDS = [[8, 16], [16, 8], [16, 16], [24, 8]]
# Heights and widths. Each gets another grid; the padding covers two columns of patches of the first.
SIZES = ((30, 16), (10, 30), (40, 12))


def num_squares(size, grids=GRIDS, side=SIDE):
    return image_size_to_num_patches(size, grids, side)


def num_tokens(size, grids=GRIDS, side=SIDE, patch=PATCH):
    """The tokens that stand for an image of that size."""
    processor = SimpleNamespace(
        image_processor=SimpleNamespace(image_grid_pinpoints=grids), patch_size=patch,
        num_additional_image_tokens=0,
        _get_unpadded_features=lambda *sizes: LlavaNextProcessor._get_unpadded_features(None, *sizes))
    return LlavaNextProcessor._get_number_of_features(processor, *size, side, side)


def packed(size, grids, side, patch):
    """SQUARES:DIGEST of an image: the number of its squares, and the beginning of the SHA-256 of its
    packed features, where each feature is its own number and the newline is -2: [tokens] int64."""
    squares, rows = num_squares(size, grids, side), side // patch
    features = torch.arange(squares * rows * rows).view(squares, rows * rows, 1)
    vision = SimpleNamespace(image_size=side, patch_size=patch)
    model = SimpleNamespace(config=SimpleNamespace(vision_config=vision, image_grid_pinpoints=grids))
    found, _ = LlavaNextModel.pack_image_features(model, [features], [size], "default",
                                                  image_newline=torch.tensor([-2]))
    assert num_tokens(size, grids, side, patch) == len(found[0])
    numbers = found[0].view(-1).numpy().astype(np.int64)
    return f"{squares}:{hashlib.sha256(numbers.tobytes()).hexdigest()[:16]}"


def padded(images, sizes):
    """The squares of all images, [n, 3, SIDE, SIDE], as the model takes them."""
    squares = [num_squares(size) for size in sizes]
    result = torch.zeros((len(sizes), max(squares), 3, SIDE, SIDE), dtype=images.dtype)
    for image, own in enumerate(images[:sum(squares)].split(squares)):
        result[image, :len(own)] = own
    return result
