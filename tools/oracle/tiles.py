"""The images of the recorded LLaVA-NeXTs: tiles of 8 x 8 pixels, 2 x 2 patches each."""
from types import SimpleNamespace

import torch
from transformers.models.llava_next.modeling_llava_next import image_size_to_num_patches
from transformers.models.llava_next.processing_llava_next import LlavaNextProcessor

SIDE = 8
GRIDS = [[8, 16], [16, 8], [16, 16], [24, 8]]
# Heights and widths. Each gets another grid; the padding covers two columns of patches of the first.
SIZES = ((30, 16), (10, 30), (40, 12))


def num_squares(size):
    return image_size_to_num_patches(size, GRIDS, SIDE)


def num_tokens(size):
    """The tokens that stand for an image of that size."""
    processor = SimpleNamespace(
        image_processor=SimpleNamespace(image_grid_pinpoints=GRIDS), patch_size=4,
        num_additional_image_tokens=0,
        _get_unpadded_features=lambda *sizes: LlavaNextProcessor._get_unpadded_features(None, *sizes))
    return LlavaNextProcessor._get_number_of_features(processor, *size, SIDE, SIDE)


def padded(images, sizes):
    """The squares of all images, [n, 3, SIDE, SIDE], as the model takes them."""
    squares = [num_squares(size) for size in sizes]
    result = torch.zeros((len(sizes), max(squares), 3, SIDE, SIDE), dtype=images.dtype)
    for image, own in enumerate(images[:sum(squares)].split(squares)):
        result[image, :len(own)] = own
    return result
