"""Makes tiny random folders of every family, and records what transformers computes with them.

    python tools/oracle/record_models.py OUT

For each family OUT/NAME/ has config.json and model.safetensors (float32), as transformers writes
them, and expected.safetensors (float64): the input, the loss, the output, the gradient of every
tensor, and the losses and gradient norms of five steps of AdamW. Of some whole models also the
parameters and moments after these steps.
"""
import sys
from pathlib import Path

import widened  # noqa: F401  before transformers
import tiles
import torch
from safetensors.torch import save_file
from steps import five_steps, sum_of_losses
from transformers import (CLIPVisionConfig, CLIPVisionModel, LlamaConfig, LlamaForCausalLM,
                          LlavaConfig, LlavaForConditionalGeneration, LlavaNextConfig,
                          LlavaNextForConditionalGeneration, MistralConfig, MistralForCausalLM, MixtralConfig,
                          MixtralForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen2MoeConfig,
                          Qwen2MoeForCausalLM, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig,
                          Qwen3MoeForCausalLM, SiglipVisionConfig, SiglipVisionModel, __version__)

TEXT = dict(vocab_size=32, hidden_size=16, intermediate_size=12, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
            attn_implementation="eager")
assert __version__ == "4.57.6", "the recordings are those of transformers 4.57.6"

VISION = dict(hidden_size=16, intermediate_size=12, num_hidden_layers=2, num_attention_heads=4,
              image_size=14, patch_size=4, attn_implementation="eager")
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=100)

LANGUAGE = {
    "llama": (LlamaForCausalLM, LlamaConfig(**TEXT, rms_norm_eps=1e-5)),
    "llama_tied": (LlamaForCausalLM, LlamaConfig(**TEXT, tie_word_embeddings=True)),
    "llama_biased": (LlamaForCausalLM, LlamaConfig(**TEXT, attention_bias=True)),
    "llama_linear": (LlamaForCausalLM, LlamaConfig(
        **TEXT, rope_scaling=dict(rope_type="linear", factor=3.0))),
    "llama3": (LlamaForCausalLM, LlamaConfig(
        **TEXT, head_dim=8, rope_theta=10000.0, rope_scaling=LLAMA3)),
    "mistral": (MistralForCausalLM, MistralConfig(**TEXT, sliding_window=None, head_dim=6)),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**TEXT)),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**TEXT, head_dim=8)),
}
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=8)
MOE = {
    "mixtral": (MixtralForCausalLM, MixtralConfig(**TEXT, num_local_experts=4)),
    "qwen2_moe": (Qwen2MoeForCausalLM, Qwen2MoeConfig(
        **TEXT, **EXPERTS, shared_expert_intermediate_size=20)),
    "qwen3_moe": (Qwen3MoeForCausalLM, Qwen3MoeConfig(
        **TEXT, **EXPERTS, head_dim=8, norm_topk_prob=True, decoder_sparse_step=2)),
}
BALANCE = 3.0  # what the loss of unequal experts is multiplied by
ENCODERS = {
    "clip": (CLIPVisionModel, CLIPVisionConfig(**VISION)),
    "clip_gelu": (CLIPVisionModel, CLIPVisionConfig(**VISION, hidden_act="gelu")),
    "siglip": (SiglipVisionModel, SiglipVisionConfig(**VISION, vision_use_head=False)),
}

# LLaVA-1.5: every vision family with every language family, a projector of two linears between.
IMAGE_TOKEN = 30
SMALL_TEXT = dict(TEXT, hidden_size=8, num_attention_heads=4, intermediate_size=10)
SMALL_VISION = dict(hidden_size=8, intermediate_size=10, num_hidden_layers=3,
                    num_attention_heads=2, image_size=8, patch_size=4,
                    attn_implementation="eager")
WHOLE_VISION = {
    "clip": (CLIPVisionConfig(**SMALL_VISION), "default"),
    "siglip": (SiglipVisionConfig(**SMALL_VISION, vision_use_head=False), "full"),
}
WHOLE_LANGUAGE = {
    "llama": LlamaConfig(**SMALL_TEXT),
    "mistral": MistralConfig(**SMALL_TEXT, sliding_window=None),
    "qwen2": Qwen2Config(**SMALL_TEXT),
    "qwen3": Qwen3Config(**SMALL_TEXT, head_dim=4),
}
NEXT = (("clip", "llama"), ("siglip", "qwen2"))  # LLaVA-NeXT
WITH_STATE = ("llava_clip_llama", "llava_siglip_qwen3")


def randomize(model):
    """Distinct values everywhere: biases and norms, too, that start at 0 and 1 otherwise."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, value in sorted(model.named_parameters()):
            noise = torch.randn(value.shape, generator=generator, dtype=torch.float64)
            scale = 0.3 / (value.shape[-1] ** 0.5 if value.dim() > 1 else 1.0)
            start = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            value.copy_((start + scale * noise).float())


def prepare(kind, config, folder):
    torch.manual_seed(0)
    model = kind(config)
    randomize(model)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return model.double().eval()


def fill_gradients(model):
    """An expert that no token chose has none; a zero gradient is a gradient that decays."""
    for value in model.parameters():
        if value.grad is None:
            value.grad = torch.zeros_like(value)


def gradients(model):
    return {f"gradient/{name}": value.grad for name, value in model.named_parameters()
            if value.grad is not None}


def record(folder, tensors):
    save_file({name: value.detach().contiguous().clone() for name, value in tensors.items()},
              folder / "expected.safetensors")


def record_language(name, kind, config, out):
    model = prepare(kind, config, out / name)
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(0, config.vocab_size, (3, 21), generator=generator)
    labels = torch.randint(0, config.vocab_size, (3, 21), generator=generator)
    labels[0, :9] = -100
    labels[2, 5:] = -100
    logits = model(input_ids=tokens, use_cache=False).logits
    assert logits.dtype == torch.float64

    def loss_of():
        logits = model(input_ids=tokens, use_cache=False).logits
        return sum_of_losses(logits, labels)

    loss = loss_of()
    loss.backward()
    if name in MOE:
        fill_gradients(model)
    found = {"loss": loss.view(1), **gradients(model)}
    found = {key: value.clone() for key, value in found.items()}
    if name in MOE:
        found.update(balanced_gradients(model, tokens, labels))
        model.zero_grad()
    steps, _ = five_steps(model, loss_of, (labels != -100).sum(),
                          fill_gradients if name in MOE else None)
    record(out / name, {"tokens": tokens, "labels": labels, "logits": logits, **found, **steps})


def balanced_gradients(model, tokens, labels):
    """Of the loss and that of unequal experts together."""
    model.zero_grad()
    outputs = model(input_ids=tokens, use_cache=False, output_router_logits=True)
    assert outputs.aux_loss.dtype == torch.float64
    (sum_of_losses(outputs.logits, labels) + BALANCE * outputs.aux_loss).backward()
    fill_gradients(model)
    return {f"balanced/{name}": value.grad.clone() for name, value in model.named_parameters()}


def record_encoder(name, kind, config, out):
    model = prepare(kind, config, out / name)
    generator = torch.Generator().manual_seed(3)
    images = torch.randn((2, 3, config.image_size, config.image_size), generator=generator)
    weights = torch.randn((2, (config.image_size // config.patch_size) ** 2, config.hidden_size),
                          generator=generator, dtype=torch.float64)
    outputs = model(pixel_values=images.double(), output_hidden_states=True)
    tensors = {"images": images, "weights": weights, "final": outputs.last_hidden_state}
    for layer in (-1, -2):
        rows = outputs.hidden_states[layer]
        tensors[f"rows{layer}"] = rows[:, -weights.shape[1]:]  # without a class token
    # The gradient of the last layer but one, which LLaVA reads.
    (tensors["rows-2"] * weights).sum().backward()
    record(out / name, {**tensors, **gradients(model)})


def as_stored(key):
    """gradient/NAME with the name that save_pretrained writes, not that of the model in memory."""
    kind, own = key.split("/", 1)
    for before, after in {"model.language_model.": "language_model.model.",
                          "lm_head.": "language_model.lm_head.",
                          "model.vision_tower.": "vision_tower.",
                          "model.multi_modal_projector.": "multi_modal_projector.",
                          "model.image_newline": "image_newline"}.items():
        if own.startswith(before):
            return f"{kind}/{after}{own.removeprefix(before)}"
    raise ValueError(key)


def record_whole(name, vision, strategy, language, out):
    config = LlavaConfig(vision, language, image_token_index=IMAGE_TOKEN, vision_feature_layer=-2,
                         vision_feature_select_strategy=strategy, image_seq_length=4,
                         attn_implementation="eager")
    model = prepare(LlavaForConditionalGeneration, config, out / name)
    generator = torch.Generator().manual_seed(5)
    # One image in the first sample, two in the second, none in the third.
    images = torch.randn((3, 3, 8, 8), generator=generator)
    tokens = torch.randint(0, IMAGE_TOKEN, (3, 14), generator=generator)
    tokens[0, 2:6] = IMAGE_TOKEN
    tokens[1, 0:4] = IMAGE_TOKEN
    tokens[1, 5:9] = IMAGE_TOKEN
    labels = torch.randint(0, IMAGE_TOKEN, (3, 14), generator=generator)
    labels[0, :7] = -100
    labels[1, :9] = -100

    def loss_of():
        logits = model(input_ids=tokens, pixel_values=images.double(), use_cache=False).logits
        assert logits.dtype == torch.float64
        return sum_of_losses(logits, labels)

    loss = loss_of()
    loss.backward()
    found = {key: value.clone() for key, value in gradients(model).items()}
    steps, state = five_steps(model, loss_of, (labels != -100).sum())
    if name in WITH_STATE:
        found.update(state)
    stored = {as_stored(key): value for key, value in found.items()}
    record(out / name, {"tokens": tokens, "labels": labels, "images": images, "loss": loss.view(1),
                        **stored, **steps})


def record_next(name, vision, strategy, language, out):
    config = LlavaNextConfig(vision, language, image_token_index=IMAGE_TOKEN,
                             vision_feature_layer=-2, vision_feature_select_strategy=strategy,
                             image_seq_length=4, image_grid_pinpoints=tiles.GRIDS,
                             attn_implementation="eager")
    model = prepare(LlavaNextForConditionalGeneration, config, out / name)
    generator = torch.Generator().manual_seed(5)
    sizes = torch.tensor(tiles.SIZES)
    images = torch.randn((sum(map(tiles.num_squares, tiles.SIZES)), 3, 8, 8), generator=generator)
    padded = tiles.padded(images.double(), tiles.SIZES)
    # One image in the first sample, two in the second, none in the third.
    counts = list(map(tiles.num_tokens, tiles.SIZES))
    length = 12 + counts[1] + counts[2]
    tokens = torch.randint(0, IMAGE_TOKEN, (3, length), generator=generator)
    tokens[0, 2:2 + counts[0]] = IMAGE_TOKEN
    tokens[1, 0:counts[1]] = IMAGE_TOKEN
    tokens[1, 1 + counts[1]:1 + counts[1] + counts[2]] = IMAGE_TOKEN
    labels = torch.randint(0, IMAGE_TOKEN, (3, length), generator=generator)
    labels[0, :2 + counts[0]] = -100
    labels[1, :1 + counts[1] + counts[2]] = -100

    def loss_of():
        logits = model(input_ids=tokens, pixel_values=padded, image_sizes=sizes,
                       use_cache=False).logits
        assert logits.dtype == torch.float64
        return sum_of_losses(logits, labels)

    loss = loss_of()
    loss.backward()
    found = {as_stored(key): value.clone() for key, value in gradients(model).items()}
    steps, _ = five_steps(model, loss_of, (labels != -100).sum())
    record(out / name, {"tokens": tokens, "labels": labels, "images": images, "sizes": sizes,
                        "loss": loss.view(1), **found, **steps})


def main():
    out = Path(sys.argv[1])
    torch.set_num_threads(1)
    for name, (kind, config) in {**LANGUAGE, **MOE}.items():
        record_language(name, kind, config, out)
    for name, (kind, config) in ENCODERS.items():
        record_encoder(name, kind, config, out)
    for vision, (vision_config, strategy) in WHOLE_VISION.items():
        for language, language_config in WHOLE_LANGUAGE.items():
            record_whole(f"llava_{vision}_{language}", vision_config, strategy, language_config, out)
    for vision, language in NEXT:
        record_next(f"llava_next_{vision}_{language}", *WHOLE_VISION[vision],
                    WHOLE_LANGUAGE[language], out)


if __name__ == "__main__":
    main()
