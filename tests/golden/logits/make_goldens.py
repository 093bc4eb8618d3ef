#!/usr/bin/env python3
# make_goldens.py MODEL_NAME MODEL.gguf [PROMPT...], after: pip install numpy gguf tokenizers
# Makes a goldens file: greedy next tokens and top-5 log-probabilities of the NumPy reference. Every
# prompt gets a greedy continuation, then the whole goes to a fresh reference at once (teacher
# forcing); token ids are stored, so that judging needs no tokenizer. Writes MODEL_NAME.json and
# this model's part of manifest.json. Regenerate only in a commit that says why.

import datetime
import hashlib
import importlib.metadata
import json
import pathlib
import platform
import sys
import types

import numpy as np
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from reference import Reference, log_probabilities

HERE = pathlib.Path(__file__).parent
CONTINUATION = 24
TOP = 5


class LongestMatch:
    """Ids of a text for a SentencePiece vocabulary: the longest piece, again and again. Other ids
    than the model's own tokenizer gives, but ids of the same text."""

    def __init__(self, field):
        self.tokens = field("tokens")
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.first = [field("bos_token_id")] if field("add_bos_token") else []
        self.longest = max(len(t) for t in self.tokens)

    def encode(self, text):
        text, ids = text.replace(" ", "\u2581"), list(self.first)
        while text:
            ends = range(min(len(text), self.longest), 0, -1)
            end = next((e for e in ends if text[:e] in self.ids), 0)
            if end:
                ids.append(self.ids[text[:end]])
            else:
                ids += [self.ids[f"<0x{byte:02X}>"] for byte in text[0].encode()]
            text = text[end or 1:]
        return types.SimpleNamespace(ids=ids)

    def decode(self, ids, skip_special_tokens=False):
        return "".join(self.tokens[i] for i in ids).replace("\u2581", " ")


def make_tokenizer(path):
    """Byte-level BPE out of the file's vocabulary; good enough to make ids of a text."""
    reader = GGUFReader(path)
    field = lambda key: reader.fields["tokenizer.ggml." + key].contents()
    if field("model") == "llama":
        return LongestMatch(field)
    tokens, kinds = field("tokens"), field("token_type")
    merges = [tuple(m.split(" ", 1)) for m in field("merges")]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    control = [t for t, kind in zip(tokens, kinds) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in control])
    return tokenizer


def prompt_text(prompt, tokenizer):
    text = prompt["text"] * prompt.get("repeat", 1)
    if prompt.get("chat") and not isinstance(tokenizer, LongestMatch):  # a base model
        return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    return text


def golden(reference, tokenizer, prompt):
    ids = tokenizer.encode(prompt_text(prompt, tokenizer)).ids
    prompt_tokens = len(ids)
    reference.reset()
    logits = reference.forward(ids)[-1:]
    for _ in range(CONTINUATION):
        ids.append(int(np.argmax(logits[-1])))
        if len(ids) < prompt_tokens + CONTINUATION:
            logits = reference.forward(ids[-1:])
    reference.reset()
    positions = range(prompt.get("every", 1) - 1, len(ids), prompt.get("every", 1))
    logprobs = log_probabilities(reference.forward(ids)[positions])
    top = np.argsort(-logprobs, axis=-1, kind="stable")[:, :TOP]
    return {
        "name": prompt["name"],
        "prompt_tokens": prompt_tokens,
        "tokens": ids,
        "positions": list(positions),
        "top": [[int(t) for t in row] for row in top],
        "logprobs": [[round(float(p[t]), 5) for t in row] for p, row in zip(logprobs, top)],
    }


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def main():
    name, path, *chosen = sys.argv[1:]  # names of prompts; none = all
    tokenizer = make_tokenizer(path)
    reference = Reference(path)
    prompts = json.loads((HERE / "prompts.json").read_text())
    prompts = [p for p in prompts if not chosen or p["name"] in chosen]
    goldens = []
    for prompt in prompts:
        goldens.append(golden(reference, tokenizer, prompt))
        tail = tokenizer.decode(goldens[-1]["tokens"][-CONTINUATION:], skip_special_tokens=False)
        print(f"{prompt['name']}: {len(goldens[-1]['tokens'])} tokens, ends {tail!r}", flush=True)
    lines = ",\n".join(json.dumps(g, separators=(",", ":")) for g in goldens)
    out = HERE / f"{name}.json"
    out.write_text(f'{{"model":"{name}","prompts":[\n{lines}\n]}}\n')

    manifest_path = HERE / "manifest.json"
    manifest = json.loads(manifest_path.read_text()) if manifest_path.exists() else {}
    versions = {p: importlib.metadata.version(p) for p in ("numpy", "gguf", "tokenizers")}
    manifest[name] = {
        "tool": "make_goldens.py (NumPy, f32, dequantised weights)",
        "versions": {"python": platform.python_version(), **versions},
        "command": " ".join(["python3 make_goldens.py", name, "MODEL.gguf", *chosen]),
        "date": datetime.date.today().isoformat(),
        "model_sha256": sha256(path),
        "golden_sha256": sha256(out),
        "prompts": len(goldens),
        "positions": sum(len(g["positions"]) for g in goldens),
    }
    manifest_path.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
