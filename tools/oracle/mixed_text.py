"""Mixed texts for the tokenizer scripts: prose, code, several writings, emoji, white space, digits."""
import random

SENTENCES = [
    "The harbour was quiet when the ferry came in, and nobody waited on the pier.",
    "She'd said that they've never been here; I'm sure it's true, but we'll see what he'd do.",
    "Don't count on it: you're late, IT'S OVER, and they'RE gone.",
    "In 1987 the town had 12,345 inhabitants, 3.5% fewer than in 1986 (n = 7).",
    "Is the cat on the red chair, or under the table next to the old window?",
    "A photograph of two children who fly a yellow kite above a long green hill.",
    "for (int i = 0; i < 1000000; ++i) { sum += table[i] * 0x1F; }  // a loop",
    "def area(width, height=2):\n    \"\"\"Square metres.\"\"\"\n    return width * height\n",
    "#include <vector>\n\nstd::vector<int> v{1, 22, 333, 4444};\n\treturn v.size();",
    "{\"id\": 7, \"tags\": [\"a\", \"b\"], \"url\": \"https://example.org/a?b=1&c=%20#x\"}",
    "SELECT name, COUNT(*) FROM users WHERE age >= 18 GROUP BY name;",
    "La niña comió piñones en el jardín; ¿cuántos años tenía el señor Muñoz?",
    "Der Bäcker aß süße Brötchen und ließ das große Weißbrot für später übrig.",
    "L'été, où êtes-vous ? Nous avons déjà mangé la crème brûlée près du chêne.",
    "Красная лодка стоит у берега, и дети смотрят на воду.",
    "Το μικρό σπίτι έχει μπλε παράθυρα και μια παλιά πόρτα.",
    "一只黑色的猫坐在窗台上，看着外面的雨。",
    "这张照片里有三个人和两只狗，他们在公园里散步。",
    "赤い自転車が駅の前にあります。カメラを持った人が写真を撮っています。",
    "고양이 두 마리가 의자 위에서 자고 있습니다.",
    "القطة السوداء تجلس على النافذة وتنظر إلى المطر.",
    "שתי ילדות משחקות בגן ליד העץ הגדול.",
    "नीली नाव नदी के किनारे खड़ी है।",
    "ภาพถ่ายของแมวสองตัวบนเก้าอี้สีแดง",
    "Emoji: 👩‍👩‍👧‍👦 👍🏽 🇩🇪🇯🇵 ❤️‍🔥 ☕️ 🧑🏿‍🚀 1️⃣",
    "Combining: e\u0301 n\u0303 A\u030a o\u0323\u0302 \u1100\u1161\u11a8 \u0915\u093c \u212b \ufb01 ½ Ⅷ ﾊﾟ ①",
    "Spaces:  two   three    four\t\ttabs \u00a0\u2003\u3000wide \u200bzero\u200d.",
    "Lines:\n\n\nthree\r\nwindows\r\n\r\nand \n  indented\n    more \n",
    "x=1;y=22;z=333;w=4444444444 -3.14e-10 0b1010 ١٢٣ ४५६ ²³ ⅓",
    "?!... --- *** ((())) <<>> [[a]] ~~b~~ `c` @@ $$ ^^ || \\\\ //",
    "don’t “quote” — dash… naïve café ſ 'S 'LL ’s",
    "<|user|> <s> </s> <unk> <pad> <image> [INST] <|im_start|> <|eot_id|> <|endoftext|>",
    "ab.USER (USER xUSER -USER: _USER /USER",
]

# Bytes that are not UTF-8, alone and in between.
BROKEN = [b"\xff", b"a\x80b", b"\xe4\xb8", b"\xe4\xb8x", b"\xf0\x9f\x91", b"ok\xc3(\xa9", b"\xed\xa0\x80",
          b"\xf4\x90\x80\x80", b"\xc0\xafz", b"tail \xe2\x82", b"\x00\x01 nul \x7f", b"\xf0\x9f\x91\xa9\xe2\x80 \xff\xfe"]


def sample(generator):
    """One text of a few sentences, joined in different ways."""
    parts = generator.choices(SENTENCES, k=generator.randint(1, 3))
    text = generator.choice([" ", "\n", "  ", "", "\n\n", "\t"]).join(parts)
    if generator.random() < 0.3:
        begin = generator.randrange(len(text))
        text = text[begin:begin + generator.randint(1, 80)]
    return text


def texts(count, seed):
    """`count` texts as bytes, all sentences and all broken ones first."""
    generator = random.Random(seed)
    out = [b"", b" ", b"  ", b"\n", b" \n ", b"a", b" a", b"  a "]
    out += [sentence.encode() for sentence in SENTENCES] + BROKEN
    while len(out) < count:
        text = sample(generator).encode()
        if generator.random() < 0.1:
            text = text[:generator.randrange(len(text) + 1)] + generator.choice(BROKEN)
        out.append(text)
    return out[:count]


def corpus(megabytes, seed):
    """Texts of `megabytes` million bytes in all."""
    generator = random.Random(seed)
    out, size = [], 0
    while size < megabytes * 1e6:
        out.append("\n".join(sample(generator) for _ in range(generator.randint(1, 12))).encode())
        size += len(out[-1])
    return out
