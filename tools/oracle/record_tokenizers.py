"""Trains a small tokenizer of every family, and records the tokens of `tokenizers` for mixed texts.

    python tools/oracle/record_tokenizers.py OUT

OUT/texts.json has the texts, in hexadecimal. For each family OUT/NAME/ has tokenizer.json and
tokenizer_config.json as Hugging Face folders have them, and expected.json: the ids of every text,
special tokens in it taken as text, and the text that they decode to.
"""
import io
import json
import sys
from pathlib import Path

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers
from transformers import LlamaTokenizerFast

from mixed_text import corpus, texts

assert tokenizers.__version__ == "0.22.2", "the recordings are those of tokenizers 0.22.2"

VOCABULARY = 1000
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def trained(tokenizer, size=VOCABULARY, **options):
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, **options)
    tokenizer.train_from_iterator([text.decode() for text in corpus(0.3, seed=1)], trainer)
    return json.loads(tokenizer.to_str())


def byte_level(regex):
    split = pre_tokenizers.Split(Regex(regex), "isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_level_model(pre_tokenizer, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    # All bytes first, in the order of their letters, as in the published vocabularies.
    trained_file = trained(tokenizer, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return trained_file


def with_tokens(file, tokens):
    tokenizer = Tokenizer.from_str(json.dumps(file))
    for token in tokens:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return json.loads(tokenizer.to_str())


def special(*names):
    return [AddedToken(name, special=True, normalized=False) for name in names]


def llama3():
    file = byte_level_model(byte_level(LLAMA3))
    file["model"]["ignore_merges"] = True
    # A token that the merges do not reach.
    file["model"]["vocab"]["Ġsquarrose"] = len(file["model"]["vocab"])
    file = with_tokens(file, special("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>",
                                     "<|end_header_id|>", "<|eot_id|>"))
    tokenizer = Tokenizer.from_str(json.dumps(file))
    bos = "<|begin_of_text|>"
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
                                      special_tokens=[(bos, tokenizer.token_to_id(bos))])])
    return json.loads(tokenizer.to_str()), dict(bos_token=bos, eos_token="<|eot_id|>")


def qwen2():
    file = byte_level_model(byte_level(QWEN2), normalizers.NFC())
    file["model"].update(continuing_subword_prefix="", end_of_word_suffix="")
    tokens = special("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    tokens += [AddedToken("<think>", special=False, normalized=False)]
    return with_tokens(file, tokens), dict(add_bos_token=False, bos_token=None, eos_token="<|im_end|>",
                                           pad_token="<|endoftext|>")


def gpt2():
    """With added tokens of every kind; the published one has only <|endoftext|>."""
    file = byte_level_model(pre_tokenizers.ByteLevel(add_prefix_space=True))
    tokens = special("<|endoftext|>") + [
        AddedToken("cat", single_word=True), AddedToken("old ", lstrip=True, normalized=False),
        AddedToken("(USER", rstrip=True), AddedToken("red chair", lstrip=True, rstrip=True)]
    return with_tokens(file, tokens), dict(eos_token={"content": "<|endoftext|>"}, bos_token="<|endoftext|>",
                                           pad_token="<|endoftext|>", add_bos_token=True)


def nfkc():
    """Characters without bytes to fall back to, unknown ones fused, and NFKC."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    file = trained(tokenizer, 600, special_tokens=["<unk>", "</s>"], limit_alphabet=120)
    return file, dict(eos_token="</s>")


def sentencepiece_model():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in corpus(0.3, seed=1) for line in text.decode().split("\n")]),
        model_writer=model, model_type="bpe", vocab_size=VOCABULARY, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True,
        allow_whitespace_only_pieces=True, character_coverage=0.999, num_threads=1, minloglevel=2)
    return model.getvalue()


def llama2(folder, legacy):
    """As transformers converts a sentencepiece model: with a normalizer, or with Metaspace."""
    (folder / "tokenizer.model").write_bytes(sentencepiece_model())
    tokenizer = LlamaTokenizerFast(vocab_file=str(folder / "tokenizer.model"), legacy=legacy, add_bos_token=True,
                                   add_prefix_space=True)
    return json.loads(tokenizer.backend_tokenizer.to_str()), dict(
        bos_token={"content": "<s>"}, eos_token="</s>", unk_token="<unk>", add_bos_token=True, legacy=legacy)


def record(folder, file, config, all_texts):
    write = lambda name, value: (folder / name).write_text(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
    write("tokenizer.json", file)
    write("tokenizer_config.json", config)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    ids = [tokenizer.encode(text.decode(errors="replace"), add_special_tokens=False).ids for text in all_texts]
    write("expected.json", {"ids": ids, "decoded": [tokenizer.decode(row) for row in ids]})


def main():
    out = Path(sys.argv[1])
    all_texts = texts(140, seed=7)
    out.mkdir(parents=True, exist_ok=True)
    (out / "texts.json").write_text(json.dumps({"texts": [text.hex() for text in all_texts]}) + "\n")
    for name, make in {"llama3": llama3, "qwen2": qwen2, "gpt2": gpt2, "nfkc": nfkc}.items():
        (out / name).mkdir(exist_ok=True)
        record(out / name, *make(), all_texts)
    for name, legacy in {"llama2": True, "vicuna": False}.items():
        (out / name).mkdir(exist_ok=True)
        record(out / name, *llama2(out / name, legacy), all_texts)


main()
