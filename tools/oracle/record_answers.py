"""Records what transformers answers, greedily, in float64, with the folders of record_models.py.

    python tools/oracle/record_answers.py tests/oracle

Writes answers.safetensors into the folder. For each prompt P of a family F it has F/P/tokens [T],
F/P/answer [24], and of the first prompt the logits of every step, F/P/logits [24, V]. A prompt of a
whole model has the first images of F/expected.safetensors at its image tokens, in order.
"""
import sys
from pathlib import Path

import widened  # noqa: F401  before transformers
import tiles
import torch
import transformers
from safetensors.torch import load_file, save_file

assert transformers.__version__ == "4.57.6", "the recordings are those of transformers 4.57.6"

NEW_TOKENS = 24
IMAGE_TOKEN = 30
ROWS_OF_IMAGE = 4
LANGUAGE = ("llama", "llama_tied", "llama_biased", "llama_linear", "llama3", "mistral", "qwen2",
            "qwen3", "mixtral", "qwen2_moe", "qwen3_moe")
WHOLE = tuple(f"llava_{vision}_{language}" for vision in ("clip", "siglip")
              for language in ("llama", "mistral", "qwen2", "qwen3"))
NEXT = ("llava_next_clip_llama", "llava_next_siglip_qwen2")
PROMPTS_OF_LANGUAGE, PROMPTS_OF_WHOLE = 5, 8  # 120 in all


def prompt(generator, family, number):
    """Lengths and numbers of images differ; text stands before, between and after images."""
    def text(length):
        return torch.randint(0, IMAGE_TOKEN, (length,), generator=generator)
    tokens = [text(1 + 7 * number % 19)]
    images = 0 if family in LANGUAGE else number % 3
    for image in range(images):
        rows = tiles.num_tokens(tiles.SIZES[image]) if family in NEXT else ROWS_OF_IMAGE
        tokens += [torch.full((rows,), IMAGE_TOKEN), text(2 + image)]
    return torch.cat(tokens), images


def main():
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    found = {}
    torch.set_grad_enabled(False)
    for family in LANGUAGE + WHOLE + NEXT:
        kind = getattr(transformers, transformers.AutoConfig.from_pretrained(out / family)
                       .architectures[0])
        model = kind.from_pretrained(out / family, attn_implementation="eager").double().eval()
        generator = torch.Generator().manual_seed(11)
        for number in range(PROMPTS_OF_LANGUAGE if family in LANGUAGE else PROMPTS_OF_WHOLE):
            tokens, images = prompt(generator, family, number)
            # Without a mask generate() hides every token 0.
            inputs = {"input_ids": tokens.view(1, -1),
                      "attention_mask": torch.ones(1, len(tokens), dtype=torch.long)}
            if images:
                all_images = load_file(out / family / "expected.safetensors")["images"].double()
                inputs["pixel_values"] = all_images[:images]
                if family in NEXT:
                    sizes = tiles.SIZES[:images]
                    inputs["pixel_values"] = tiles.padded(all_images, sizes)
                    inputs["image_sizes"] = torch.tensor(sizes)
            whole = model.generate(**inputs, do_sample=False, max_new_tokens=NEW_TOKENS,
                                   eos_token_id=None, pad_token_id=0)
            name = f"{family}/{number}"
            found[f"{name}/tokens"] = tokens
            found[f"{name}/answer"] = whole[0, len(tokens):]
            if number == 0:  # generate() itself rounds logits to float32
                logits = model(whole, use_cache=False).logits[0, len(tokens) - 1:-1]
                assert logits.dtype == torch.float64
                found[f"{name}/logits"] = logits
    save_file({name: value.contiguous().clone() for name, value in found.items()},
              out / "answers.safetensors")


main()
