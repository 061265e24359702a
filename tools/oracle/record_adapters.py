"""Records what PEFT computes with adapters beside the folders of record_models.py, in float64.

    python tools/oracle/record_adapters.py tests/oracle

For each case C writes adapters_C/ with
    start.safetensors     the adapters, and a projector that trains, before the first step
    expected.safetensors  loss, gradients, losses and gradient norms of five steps of AdamW
    trained/              what PEFT's save_pretrained writes after them
    merged.safetensors    all tensors after merge_and_unload, as transformers saves them
Tensors of the model in memory have PEFT's names, without ".default".
"""
import shutil
import sys
from pathlib import Path

import widened  # noqa: F401  before transformers
import peft
import torch
import transformers
from safetensors.torch import load_file, save_file
from steps import five_steps, sum_of_losses

LANGUAGE = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj".split()
# case: family, linears of language and vision, rank and alpha of each
CASES = {
    "llama": ("llama", LANGUAGE, [], (3, 6.0), None),
    "dropout": ("llama", LANGUAGE, [], (3, 6.0), None),
    "whole": ("llava_clip_qwen3", ["q_proj", "v_proj", "down_proj"],
              ["k_proj", "out_proj", "fc1", "fc2"], (2, 3.0), (4, 2.0)),
}


DROPOUT, SEED = 0.25, 7
WORD = (1 << 64) - 1


def mixed(x):
    """SplitMix64's finaliser."""
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def is_dropped(row, feature):
    x = (row ^ feature) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return (x ^ (x >> 16)) < int(DROPOUT * (1 << 32))


class Dropout(torch.nn.Module):
    """PEFT's dropout, with the choice of docs/decisions/0049 in place of a random one."""
    step = 0

    def __init__(self, adapter):
        super().__init__()
        self.name = 0
        for letter in adapter.encode():
            self.name = mixed(self.name ^ letter)

    def forward(self, x):
        features = [mixed(self.name ^ feature) for feature in range(x.shape[2])]
        mask = torch.empty(x.shape, dtype=x.dtype)
        for sample in range(x.shape[0]):
            for row in range(x.shape[1]):
                key = mixed(mixed(mixed(mixed(SEED) ^ Dropout.step) ^ sample) ^ row)
                mask[sample, row] = torch.tensor(
                    [0.0 if is_dropped(key, feature) else 1 / (1 - DROPOUT)
                     for feature in features], dtype=x.dtype)
        return x * mask


def plain(name):
    return name.replace(".default", "").replace(".modules_to_save", "")


def targets_of(model, language, vision):
    found = []
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear) or ".layers." not in name:
            continue
        wanted = vision if "vision_tower" in name else language
        if name.rsplit(".", 1)[1] in wanted:
            found.append(name)
    # The last layer of the encoder is not used by LLaVA, so it does not train.
    return [name for name in found if not ("vision_tower" in name and ".layers.2." in name)]


def record(case, out):
    family, language, vision, own, of_vision = CASES[case]
    kind = getattr(transformers, transformers.AutoConfig.from_pretrained(out / family)
                   .architectures[0])
    model = kind.from_pretrained(out / family, attn_implementation="eager").double()
    targets = targets_of(model, language, vision)
    of_other = [name for name in targets if "vision_tower" in name]
    config = peft.LoraConfig(
        r=own[0], lora_alpha=own[1], target_modules=targets,
        rank_pattern={name: of_vision[0] for name in of_other},
        alpha_pattern={name: of_vision[1] for name in of_other},
        modules_to_save=["multi_modal_projector"] if vision else None)
    model = peft.get_peft_model(model, config, autocast_adapter_dtype=False)
    if case == "dropout":
        for name, module in model.named_modules():
            if hasattr(module, "lora_dropout"):
                own_name = name.replace("base_model.model.model", "language")
                module.lora_dropout["default"] = Dropout(own_name + ".lora_A.weight")
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for name, value in sorted(model.named_parameters()):
            if "lora_" in name:
                value.copy_(0.2 * torch.randn(value.shape, generator=generator,
                                              dtype=torch.float64))
    trained = {plain(name): value for name, value in model.named_parameters()
               if value.requires_grad}
    folder = out / f"adapters_{case}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()

    def save(name, tensors):
        save_file({key: value.detach().contiguous().clone() for key, value in tensors.items()},
                  folder / name)

    save("start.safetensors", trained)
    given = load_file(out / family / "expected.safetensors")
    inputs = {"input_ids": given["tokens"], "use_cache": False}
    if vision:
        inputs["pixel_values"] = given["images"].double()

    steps_of_calls = iter([0, 0, 1, 2, 3, 4])

    def loss_of():
        Dropout.step = next(steps_of_calls)
        return sum_of_losses(model(**inputs).logits, given["labels"])

    loss = loss_of()
    loss.backward()
    found = {f"gradient/{name}": value.grad.clone() for name, value in trained.items()}
    steps, _ = five_steps(model, loss_of, (given["labels"] != -100).sum())
    save("expected.safetensors", {"loss": loss.view(1), **found, **steps})
    model.save_pretrained(folder / "trained")
    for extra in ("README.md", "adapter_config.json"):
        (folder / "trained" / extra).unlink()
    merged = model.merge_and_unload()
    merged.save_pretrained(folder / "merged")
    shutil.move(folder / "merged" / "model.safetensors", folder / "merged.safetensors")
    shutil.rmtree(folder / "merged")
    print(case, float(loss), [float(x) for x in steps["losses"]])


def main():
    torch.set_num_threads(1)
    for case in CASES:
        record(case, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
