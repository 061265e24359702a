"""Trains LLaVA-1.5's two stages in a plain loop of transformers, on 64 samples, in float64.

    python tools/oracle/record_recipes.py tests/oracle

Writes recipes/ into the folder: model/, a tiny LLaVA with the tokenizer of tokenizers/vicuna; the
images, pretrain.json and finetune.json in LLaVA's form; expected.json, the mean loss per answer token
and the gradient norm of each step. A step is over all 64 samples, one at a time, so that neither
order nor padding matters. Between the stages parameters are rounded to float32, as in an export.
"""
import json
import math
import random
import shutil
import sys
from pathlib import Path

import widened  # noqa: F401  before transformers
import torch
from PIL import Image
from record_models import randomize
from transformers import (CLIPImageProcessor, CLIPVisionConfig, LlamaConfig, LlavaConfig,
                          LlavaForConditionalGeneration, PreTrainedTokenizerFast,
                          get_cosine_schedule_with_warmup)

SAMPLES, STEPS, ROWS = 64, 4, 4
IMAGE_TOKEN, PAD_TOKEN, VOCAB = 1000, 1001, 1024
SYSTEM = ("A chat between a curious user and an artificial intelligence assistant. The assistant "
          "gives helpful, detailed, and polite answers to the user's questions.")
WORDS = "a the red green small large cat dog box tree on under near two three of and is".split()


def make_model(folder, tokenizer):
    vision = CLIPVisionConfig(hidden_size=8, intermediate_size=10, num_hidden_layers=3,
                              num_attention_heads=2, image_size=8, patch_size=4)
    text = LlamaConfig(vocab_size=VOCAB, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
                       num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512)
    model = LlavaForConditionalGeneration(LlavaConfig(
        vision, text, image_token_index=IMAGE_TOKEN, image_seq_length=ROWS,
        vision_feature_layer=-2, vision_feature_select_strategy="default"))
    randomize(model)
    model.save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 8}, crop_size=8).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tokenizer / name, folder)
    file = json.loads((folder / "tokenizer.json").read_text())
    for token, text in ((IMAGE_TOKEN, "<image>"), (PAD_TOKEN, "<pad>")):
        file["added_tokens"].append({"id": token, "content": text, "single_word": False,
                                     "lstrip": False, "rstrip": False, "normalized": False,
                                     "special": True})
    (folder / "tokenizer.json").write_text(json.dumps(file, ensure_ascii=False))


def make_data(out):
    draw = random.Random(5)

    def words(low, high):
        return " ".join(draw.choice(WORDS) for _ in range(draw.randint(low, high)))

    (out / "images").mkdir()
    pretrain, finetune = [], []
    for i in range(SAMPLES):
        width, height = draw.randint(5, 14), draw.randint(5, 14)
        pixels = bytes(draw.randrange(256) for _ in range(3 * width * height))
        Image.frombytes("RGB", (width, height), pixels).save(out / "images" / f"{i}.png")
        row = {"id": str(i), "image": f"images/{i}.png"}
        pretrain.append({**row, "conversations": [
            {"from": "human", "value": "Describe it.\n<image>" if i % 2 else "<image>\nWhat?"},
            {"from": "gpt", "value": words(2, 7)}]})
        turns = []
        for turn in range(1 + i % 3):
            turns += [{"from": "human", "value": words(1, 5) + "?"},
                      {"from": "gpt", "value": words(1, 8) + "."}]
        if i % 4 == 3:  # no image
            del row["image"]
        else:
            turns[0]["value"] = ("<image>\n" + turns[0]["value"] if i % 2
                                 else turns[0]["value"] + "\n<image>")
        finetune.append({**row, "conversations": turns})
    for name, rows in (("pretrain", pretrain), ("finetune", finetune)):
        (out / f"{name}.json").write_text(json.dumps(rows, indent=0))
    return {"pretrain": pretrain, "finetune": finetune}


def plain(row):
    """The text of a sample, and the ranges of its characters that are learned."""
    caption = row["conversations"][1]["value"] + "\n"
    return "<image>" + caption, [(len("<image>"), len("<image>" + caption))]


def vicuna(row):
    text, learned = SYSTEM + " ", []
    for turn in row["conversations"]:
        value = turn["value"]
        if turn["from"] == "human":
            if "<image>" in value:
                value = "<image>\n" + value.replace("<image>", "").strip()
            text += "USER: " + value + " "
        else:
            text += "ASSISTANT:"
            learned.append((len(text), len(text) + len(f" {value}</s>")))
            text += f" {value}</s>"
    return text, learned


def tokens_of(tokenizer, text, learned):
    """Ids, and whether each is learned. The parts around an image are tokenized by themselves."""
    ids, labels, at = [tokenizer.bos_token_id], [False], 0
    for number, part in enumerate(text.split("<image>")):
        if number > 0:
            ids += [IMAGE_TOKEN] * ROWS
            labels += [False] * ROWS
            at += len("<image>")
        if part:
            found = tokenizer(part, add_special_tokens=False, return_offsets_mapping=True)
            ids += found["input_ids"]
            labels += [any(a <= at + begin < b for a, b in learned)
                       for begin, _ in found["offset_mapping"]]
        at += len(part)
    return ids, labels


def train(model, samples, rate, trained):
    for name, value in model.named_parameters():
        value.requires_grad_(any(part in name for part in trained))
    values = [value for value in model.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(values, lr=rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    schedule = get_cosine_schedule_with_warmup(optimizer, math.ceil(0.25 * STEPS), STEPS)
    total = sum(sum(learned[1:]) for _, learned, _ in samples)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        mean = 0.0
        for ids, learned, pixels in samples:
            inputs = {"input_ids": torch.tensor([ids])}
            if pixels is not None:
                inputs["pixel_values"] = pixels
            logits = model(**inputs, use_cache=False).logits[0, :-1]
            assert logits.dtype == torch.float64
            chosen = torch.tensor(learned[1:])
            loss = torch.nn.functional.cross_entropy(
                logits[chosen], torch.tensor(ids[1:])[chosen], reduction="sum") / total
            loss.backward()
            mean += loss.item()
        norms.append(torch.nn.utils.clip_grad_norm_(values, 1.0).item())
        optimizer.step()
        schedule.step()
        losses.append(mean)
    with torch.no_grad():
        for value in values:
            value.copy_(value.float())
    return {"losses": losses, "norms": norms, "tokens": total}


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    oracle = Path(sys.argv[1])
    out = oracle / "recipes"
    shutil.rmtree(out, ignore_errors=True)
    (out / "model").mkdir(parents=True)
    make_model(out / "model", oracle / "tokenizers" / "vicuna")
    data = make_data(out)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(out / "model" / "tokenizer.json"),
                                        bos_token="<s>", eos_token="</s>", pad_token="<pad>")
    processor = CLIPImageProcessor.from_pretrained(out / "model")
    model = LlavaForConditionalGeneration.from_pretrained(
        out / "model", attn_implementation="eager").double()
    found = {}
    for name, form, rate, trained in (
            ("pretrain", plain, 1e-2, ["multi_modal_projector"]),
            ("finetune", vicuna, 5e-3, ["multi_modal_projector", "language_model", "lm_head"])):
        samples = []
        for row in data[name]:
            pixels = None
            if "image" in row:
                image = Image.open(out / row["image"])
                pixels = processor(image, return_tensors="pt")["pixel_values"].double()
            samples.append((*tokens_of(tokenizer, *form(row)), pixels))
        found[name] = train(model, samples, rate, trained)
        print(name, found[name])
    (out / "expected.json").write_text(json.dumps(found, indent=1) + "\n")


main()
