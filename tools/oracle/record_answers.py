"""Records what transformers answers, greedily, in float64, with the folders of record_models.py.

    python tools/oracle/record_answers.py tests/oracle

Writes answers.safetensors into the folder. For each prompt P of a family F it has F/P/tokens [T],
F/P/answer [24], and of the first prompt the logits of every step, F/P/logits [24, V]. A prompt of a
whole model has the first images of F/expected.safetensors at its image tokens, in order.
"""
import sys
from pathlib import Path

import widened  # noqa: F401  before transformers
import torch
import transformers
from safetensors.torch import load_file, save_file

assert transformers.__version__ == "4.57.6", "the recordings are those of transformers 4.57.6"

NEW_TOKENS = 24
IMAGE_TOKEN = 30
ROWS_OF_IMAGE = 4
LANGUAGE = ("llama", "llama_tied", "llama_biased", "llama_linear", "llama3", "mistral", "qwen2",
            "qwen3")
WHOLE = tuple(f"llava_{vision}_{language}" for vision in ("clip", "siglip")
              for language in ("llama", "mistral", "qwen2", "qwen3"))
PROMPTS_OF_LANGUAGE, PROMPTS_OF_WHOLE = 5, 8  # 104 in all


def prompt(generator, family, number):
    """Lengths and numbers of images differ; text stands before, between and after images."""
    def text(length):
        return torch.randint(0, IMAGE_TOKEN, (length,), generator=generator)
    tokens = [text(1 + 7 * number % 19)]
    images = number % 3 if family in WHOLE else 0
    for image in range(images):
        tokens += [torch.full((ROWS_OF_IMAGE,), IMAGE_TOKEN), text(2 + image)]
    return torch.cat(tokens), images


def main():
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    found = {}
    torch.set_grad_enabled(False)
    for family in LANGUAGE + WHOLE:
        kind = getattr(transformers, transformers.AutoConfig.from_pretrained(out / family)
                       .architectures[0])
        model = kind.from_pretrained(out / family, attn_implementation="eager").double().eval()
        generator = torch.Generator().manual_seed(11)
        for number in range(PROMPTS_OF_WHOLE if family in WHOLE else PROMPTS_OF_LANGUAGE):
            tokens, images = prompt(generator, family, number)
            # Without a mask generate() hides every token 0.
            inputs = {"input_ids": tokens.view(1, -1),
                      "attention_mask": torch.ones(1, len(tokens), dtype=torch.long)}
            if images:
                inputs["pixel_values"] = load_file(
                    out / family / "expected.safetensors")["images"][:images].double()
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
