#!/usr/bin/env python3
"""Makes ids.json or v4_ids.json: the ids of chat_goldens_more.json's prompts by PyPI tokenizers,
stretch by stretch between the recorded special tokens, with no added tokens; and the number of
classes of n-gram tables by the same package's normalisers.

    python3 make_ids.py TOKENIZER.json OUT.json      (needs PyPI tokenizers; see MANIFEST.md)
"""
import hashlib
import json
import pathlib
import sys

from tokenizers import Regex, Tokenizer, normalizers

HERE = pathlib.Path(__file__).parent


def fnv1a(ids):
    value = 0xCBF29CE484222325
    for number in ids:
        for byte in number.to_bytes(4, "little"):
            value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def prompt_ids(golden, whole, plain):
    ids, at, prompt = [], 0, golden["recipe_prompt"]
    for begin, end in golden["recipe_special_ranges"]:
        if begin > at:
            ids += plain.encode(prompt[at:begin], add_special_tokens=False).ids
        special = whole.token_to_id(prompt[begin:end])
        if special is None:
            return None
        ids.append(special)
        at = end
    if at < len(prompt):
        ids += plain.encode(prompt[at:], add_special_tokens=False).ids
    return ids


def token_classes(tokenizer):
    normalizer = normalizers.Sequence([
        normalizers.NFKC(), normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(),
        normalizers.Replace(Regex(r"[ \t\r\n]+"), " "),
        normalizers.Replace(Regex(r"^ $"), "\ue000"), normalizers.Strip(),
        normalizers.Replace("\ue000", " ")])
    seen, classes = {}, []
    for number in range(tokenizer.get_vocab_size()):
        text = tokenizer.decode([number], skip_special_tokens=False)
        if "\ufffd" in text:
            key = tokenizer.id_to_token(number)
        else:
            key = normalizer.normalize_str(text) or text
        classes.append(seen.setdefault(key, len(seen)))
    return classes


def main():
    path = pathlib.Path(sys.argv[1])
    parsed = json.loads(path.read_text())
    whole = Tokenizer.from_str(json.dumps(parsed))
    plain = Tokenizer.from_str(json.dumps({**parsed, "added_tokens": []}))
    prompts = {}
    for golden in json.loads((HERE / "chat_goldens_more.json").read_text()):
        if not golden.get("recipe_prompt") or not golden.get("recipe_special_ranges"):
            continue
        ids = prompt_ids(golden, whole, plain)
        prompts[golden["name"]] = ids and {"count": len(ids), "fnv1a": fnv1a(ids)}
    classes = token_classes(whole)
    out = {"tokenizer sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
           "classes": max(classes) + 1, "classes fnv1a": fnv1a(classes), "prompts": prompts}
    pathlib.Path(sys.argv[2]).write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")


main()
