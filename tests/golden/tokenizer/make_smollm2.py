#!/usr/bin/env python3
"""Makes smollm2.json: ids of SmolLM2's tokenizer for the texts below, by a plain reading of the
algorithm (byte-level BPE: split, bytes to letters, merge the lowest rank first) that shares no code
with ours: Python, PyPI regex with the model's own patterns, look-ahead included.

    python3 make_smollm2.py MODEL.gguf      (needs PyPI gguf and regex; see manifest.json)
"""
import datetime
import hashlib
import json
import pathlib
import sys

import gguf
import regex

HERE = pathlib.Path(__file__).parent
DIGIT = regex.compile(r"\p{N}")
WORD = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
CONTROL = 3
TEXTS = [
    "", " ", "  ", "\n", "\n\n", "\t\n \n", "Hello", " Hello", "Hello, world!",
    "The quick brown fox jumps over the lazy dog.", "I'll say we've it's don't CAN'T",
    "3.14159 and 1,000,000 and 007 and ¼½", "x  = 1\n\tif y:\n\t\treturn  x\n",
    "for (int i = 0; i < n; ++i) { a[i] += b[i] * 2.0f; }  // loop\n",
    "SELECT * FROM t WHERE a >= 'b' AND c IS NOT NULL;",
    "안녕하세요, 세계!", "한국어 문장을 토큰으로 나눕니다. 숫자 12개와 ㅋㅋㅋ",
    "我想在apple工作1314151天～", "日本語のテキストとカタカナ、漢字。", "Привет, мир! Ёжик",
    "مرحبا بالعالم", "שלום עולם", "ภาษาไทย", "नमस्ते दुनिया", "🚀 (normal) 😶‍🌫️ ✅ 👩‍👩‍👧‍👦 🇰🇷",
    "e\u0301 vs \u00e9; a\u0308; z\u0335\u0321",
    "\u00a0nbsp\u2003em\u200bzero\ufefffeff",
    "a\u0000b\u0007c\u001b[0m",
    "<|im_start|>user\nHi<|im_end|>\n", "<|im_start|><|im_end|><|endoftext|>", "<|im_start",
    "\U0010ffff\ud7ff\ue000\uffff",
    "https://example.org/a?b=c&d=%20#e_f-g", "{\"key\": [1, 2.5, true, null], \"k\\n\": \"v\"}",
    "a" * 100, " " * 50 + "x", "aaaa bbbb " * 10,
]


def alphabet():
    letters, moved = {}, 0
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or 174 <= byte <= 255:
            letters[byte] = chr(byte)
        else:
            letters[byte] = chr(256 + moved)
            moved += 1
    return letters


def split(pattern, pieces):
    for piece in pieces:
        at = 0
        for match in pattern.finditer(piece):
            if match.start() > at:
                yield piece[at:match.start()]
            yield match.group()
            at = match.end()
        if at < len(piece):
            yield piece[at:]


class Reference:
    def __init__(self, path):
        fields = gguf.GGUFReader(path).fields
        self.tokens = fields["tokenizer.ggml.tokens"].contents()
        kinds = fields["tokenizer.ggml.token_type"].contents()
        assert fields["tokenizer.ggml.pre"].contents() == "smollm"
        merges = fields["tokenizer.ggml.merges"].contents()
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        control = [token for token, kind in zip(self.tokens, kinds) if kind == CONTROL]
        control.sort(key=len, reverse=True)
        self.control = regex.compile("|".join(map(regex.escape, control)))
        self.letters = alphabet()

    def merge(self, word):
        parts = [self.letters[byte] for byte in word.encode("utf-8")]
        while len(parts) > 1:
            ranked = [(self.ranks.get(pair, 1 << 30), at)
                      for at, pair in enumerate(zip(parts, parts[1:]))]
            rank, at = min(ranked)
            if rank == 1 << 30:
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        return [self.ids[part] for part in parts]

    def plain(self, text):
        words = split(WORD, split(DIGIT, [text]))
        return [token for word in words for token in self.merge(word)]

    def encode(self, text, parse_control):
        if not parse_control:
            return self.plain(text)
        ids, at = [], 0
        for match in self.control.finditer(text):
            ids += self.plain(text[at:match.start()]) + [self.ids[match.group()]]
            at = match.end()
        return ids + self.plain(text[at:])


def main():
    path = pathlib.Path(sys.argv[1])
    reference = Reference(path)
    cases = [{"text": text, "as_text": reference.encode(text, False),
              "parsed": reference.encode(text, True)} for text in TEXTS]
    text = json.dumps(cases, ensure_ascii=True).replace("}, {", "},\n {") + "\n"
    (HERE / "smollm2.json").write_text(text, encoding="utf-8")
    manifest = {
        "smollm2.json": {
            "what": f"ids of SmolLM2-135M-Instruct's tokenizer for {len(TEXTS)} texts",
            "tool": f"make_smollm2.py (pure Python BPE), Python {sys.version.split()[0]}, "
                    f"gguf {gguf_version()}, regex {regex.__version__}",
            "command": "python3 make_smollm2.py SmolLM2-135M-Instruct.Q4_1.gguf",
            "date": datetime.date.today().isoformat(),
            "model sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "sha256": hashlib.sha256(text.encode()).hexdigest()},
        "vectors": {
            "what": "ggml-vocab-*.gguf with .inp and .out, 15 vocabularies; not committed, "
                    "fetch.sh gets them",
            "tool": "llama.cpp, as shipped in PyPI sdist llama-cpp-python==0.3.36",
            "command": "./fetch.sh",
            "sha256": "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"}}
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    print(len(TEXTS), "texts,", len(text), "bytes")


def gguf_version():
    from importlib.metadata import version
    return version("gguf")


if __name__ == "__main__":
    main()
