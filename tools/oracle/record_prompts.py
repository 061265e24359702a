"""Records the tokens and labels that LLaVA's own preprocessing gives for 200 conversations per format.

    python tools/oracle/record_prompts.py TOKENIZERS LLAVA NEXT OUT

TOKENIZERS is the output of record_tokenizers.py. LLAVA is a folder llava/ of haotian-liu/LLaVA 1.2
(PyPI: llava-torch 1.2.2.post1) and NEXT one of LLaVA-NeXT (PyPI: llavaction 0.0.1 holds its
functions). OUT/FORMAT.jsonl has the rows and, for each, the ids, -200 at the image, and the labelled
places as ranges. Nothing of either is imported as a whole: they need CUDA packages.

LLaVA runs with transformers' slow tokenizer of Llama. It differs from the fast one, which has the
tokens of tokenizer.json, only where the text after an image begins with a space: it puts a mark
before that. The recordings are those of the fast one; the script checks that nothing else differs.
"""
import ast
import contextlib
import copy
import importlib.util
import io
import json
import random
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import tokenizers
import torch
import transformers
from packaging import version

from mixed_text import SENTENCES

COUNT = 200
# As Meta-Llama-3-Instruct's template writes conversations.
LLAMA3_TEMPLATE = (
    "{% for m in messages %}{% if loop.index0 == 0 %}{{ bos_token }}{% endif %}{{ '<|start_header_id|>' + m['role'] + "
    "'<|end_header_id|>\n\n' + m['content'] | trim + '<|eot_id|>' }}{% endfor %}")


def functions_of(path, names, context):
    """The functions `names` of a Python file, run with `context` in place of its imports."""
    module = ast.parse(path.read_text())
    module.body = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name in names]
    assert {node.name for node in module.body} == set(names), f"{path}: expected {names}"
    for node in module.body:  # annotations name what is not imported
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
    exec(compile(module, str(path), "exec"), context)
    return SimpleNamespace(**{name: context[name] for name in names})


def load(folder, names):
    spec = importlib.util.spec_from_file_location("conversation_of_" + folder.name, folder / "conversation.py")
    conversations = importlib.util.module_from_spec(spec)
    with contextlib.redirect_stdout(io.StringIO()):  # LLaVA-NeXT asks the Hub for a tokenizer
        spec.loader.exec_module(conversations)
    context = dict(torch=torch, copy=copy, re=re, transformers=transformers, conversation_lib=conversations,
                   IGNORE_INDEX=-100, IMAGE_TOKEN_INDEX=-200, DEFAULT_IMAGE_TOKEN="<image>",
                   IS_TOKENIZER_GREATER_THAN_0_14=version.parse(tokenizers.__version__) >= version.parse("0.14"))
    functions_of(folder / "mm_utils.py", ["tokenizer_image_token"], context)
    return conversations, functions_of(folder / "train" / "train.py", names, context)


def text_of(generator, words):
    text = " ".join(generator.choices(SENTENCES, k=generator.randint(1, 2)))
    begin = generator.randrange(max(1, len(text) - words))
    return text[begin:begin + generator.randint(1, words)]


def usable(text):
    """Without the separators at which LLaVA cuts, special tokens, and nothing but white space."""
    return text.strip() and not re.search(r"<\|?[a-z_]+\|?>|</s>|ASSISTANT", text)


def draw(generator, words):
    while True:
        text = text_of(generator, words)
        if usable(text):
            pad = generator.choice(["", "", "", " ", "\n", "\u3000"])
            return pad + text + generator.choice(["", "", "", " ", "\n"])


def conversation(generator):
    turns = []
    for _ in range(generator.choice([1, 1, 1, 2, 3])):
        turns.append({"from": "human", "value": draw(generator, 25)})
        turns.append({"from": "gpt", "value": draw(generator, 35)})
    image = generator.random() < 0.7
    if image:
        first = turns[0]
        first["value"] = generator.choice(["<image>\n" + first["value"], first["value"] + "\n<image>",
                                           "<image>" + first["value"], "<image>"])
    return turns, image


def ranges(labels):
    """[begin, end) of the runs of labels."""
    out = []
    for place, label in enumerate(labels):
        if label == -100:
            continue
        if out and out[-1][1] == place:
            out[-1][1] += 1
        else:
            out.append([place, place + 1])
    return out


def record(name, rows, run, out):
    lines = []
    for turns, image in rows:
        ids, labels = run(copy.deepcopy(turns), image)
        assert all(label in (-100, token) for token, label in zip(ids, labels))
        assert any(label != -100 for label in labels), f"{name}: LLaVA gives {turns} no labels"
        value = {"conversations": turns, "ids": ids, "labelled": ranges(labels)}
        if image:
            value["image"] = "a.png"
        lines.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    (out / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


def first_of(result):
    return [int(x) for x in result["input_ids"][0]], [int(x) for x in result["labels"][0]]


def main():
    folder, llava_folder, next_folder, out = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    generator = random.Random(3)
    rows = [conversation(generator) for _ in range(COUNT)]
    captions = [([{"from": "human", "value": generator.choice(["<image>", "What is it?\n<image>"])},
                  {"from": "gpt", "value": draw(generator, 60)}], True) for _ in range(COUNT)]
    arguments = SimpleNamespace(is_multimodal=True, mm_use_im_start_end=False)

    conversations, llava = load(llava_folder, ["preprocess_multimodal", "preprocess_v1", "preprocess_plain"])
    legacy = {"vicuna": False, "llama2": True}  # of Vicuna 1.5 and Llama 2
    options = dict(pad_token="<unk>", add_bos_token=True, model_max_length=2048)
    slow = {name: transformers.LlamaTokenizer(str(folder / "vicuna" / "tokenizer.model"), legacy=value, **options)
            for name, value in legacy.items()}
    fast = {name: transformers.LlamaTokenizerFast(tokenizer_file=str(folder / name / "tokenizer.json"), legacy=value,
                                                  **options) for name, value in legacy.items()}

    def with_image(module, turns, image):
        return module.preprocess_multimodal([turns], arguments) if image else [turns]

    def with_llava(version, preprocess, name):
        def run(turns, image):
            conversations.default_conversation = conversations.conv_templates[version]
            sources = with_image(llava, turns, image)
            spaced = image and (turns[0]["value"] == "<image>" or version == "plain") and (
                version == "v1" or turns[1]["value"].startswith(" "))
            of_slow = first_of(preprocess(copy.deepcopy(sources), slow[name], image))
            of_fast = first_of(preprocess(sources, fast[name], image))
            assert of_slow == of_fast or spaced, f"slow and fast tokens of {turns}"
            return of_fast
        return run

    v1 = lambda sources, tokenizer, image: llava.preprocess_v1(sources, tokenizer, has_image=image)
    plain = lambda sources, tokenizer, image: llava.preprocess_plain(sources, tokenizer)
    record("vicuna_v1", rows, with_llava("v1", v1, "vicuna"), out)
    record("vicuna_v1_legacy", rows[:50], with_llava("v1", v1, "llama2"), out)
    record("plain", captions, with_llava("plain", plain, "vicuna"), out)

    conversations_next, llava_next = load(next_folder, ["preprocess_multimodal", "preprocess_llama3", "preprocess_qwen"])
    conversations_next.default_conversation = conversations_next.conv_templates["plain"]
    llama3 = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "llama3" / "tokenizer.json"), bos_token="<|begin_of_text|>",
        eos_token="<|eot_id|>", chat_template=LLAMA3_TEMPLATE)
    qwen = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "qwen2" / "tokenizer.json"), eos_token="<|im_end|>",
        pad_token="<|endoftext|>", additional_special_tokens=["<|im_start|>", "<|im_end|>"])
    record("llama3", rows, lambda turns, image: first_of(llava_next.preprocess_llama3(
        with_image(llava_next, turns, image), llama3, has_image=image)), out)
    record("chatml", rows, lambda turns, image: first_of(llava_next.preprocess_qwen(
        with_image(llava_next, turns, image), qwen, has_image=image)), out)


main()
