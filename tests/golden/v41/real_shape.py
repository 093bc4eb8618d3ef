"""A checkpoint with the released widths and counts, but seven layers, one of each role.

real_shape.py make OUT       writes OUT/: 100 GB of holes, about 4 GB of data from a random pool
real_shape.py reference OUT  runs ref_v41.py over 128 tokens in f32; OUT/reference.safetensors gets
                             logits and every discrete choice. Needs numpy and ml_dtypes.
"""
import json
import os
import struct
import sys

import numpy as np

import ref_v41 as R
from convert import write
from make_tiny import CONFIG

TOKENS = 128
SEED = 5
REAL_EXPERTS = [0, 1, 100, 255, 256, 300, 382, 383]  # the others are holes, never chosen
TEXT = {
    "vocab_size": 129280, "hidden_size": 5120, "moe_intermediate_size": 2304,
    "num_hidden_layers": 7, "num_attention_heads": 64, "head_dim": 512, "qk_rope_head_dim": 64,
    "q_lora_rank": 1280, "o_lora_rank": 1024, "o_groups": 8, "max_position_embeddings": 1048576,
    "n_routed_experts": 384, "num_experts_per_tok": 6, "sliding_window": 128,
    "compress_ratios": [0, 0, 2, 2, 1, 1, 1], "kv_source_layer_ids": [2, 4],
    "index_source_layer_ids": [2, 4, 6], "index_n_heads": 32, "index_head_dim": 128,
    "index_topk": 512, "candidate_source_layer_id": 4, "candidate_topk_blocks": 2048,
    "candidate_block_size": 8, "engram_layer_ids": [1], "engram_num_embeddings": [384006168],
    "engram_vocab_size": 16000000,
    "engram_n_heads": 8, "engram_head_dim": 256, "engram_compressed_vocab_size": 99092,
    "num_nextn_predict_layers": 0, "dspark_target_layer_ids": [],
    "rope_scaling": {"rope_type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1,
                     "original_max_position_embeddings": 65536}}
POOL = np.random.default_rng(1).integers(0, 256, 1 << 26, dtype=np.uint8)


def config():
    top = json.loads(json.dumps(CONFIG))
    top["text_config"].update(TEXT)
    top["image_token_id"] = 129264
    del top["vision_config"]
    return top


def token_ids():
    ids = np.random.default_rng(SEED).integers(3, 129280, TOKENS)
    ids[5] = 129279
    return ids


def token_map():
    rest = np.random.default_rng(2).integers(0, 99092, 129280 - 99092)
    return np.concatenate([np.arange(99092), rest])


class Writer:
    """Collects tensors, then writes a sparse file; data may be None (a hole) or a function."""

    SIZES = {"F32": 4, "BF16": 2, "F8_E4M3": 1, "F8_E8M0": 1, "I8": 1}

    def __init__(self):
        self.head, self.data, self.end, self.turn = {}, [], 0, 0
        self.rng = np.random.default_rng(3)

    def add(self, name, kind, shape, data):
        size = int(np.prod(shape, dtype=np.int64)) * self.SIZES[kind]
        self.head[name] = {"dtype": kind, "shape": list(shape),
                           "data_offsets": [self.end, self.end + size]}
        self.data.append((self.end, data))
        self.end += size

    def floats(self, name, shape, std, mean=0.0, kind="BF16"):
        values = (mean + self.rng.standard_normal(shape) * std).astype(np.float32)
        self.add(name, kind, shape, values if kind == "F32" else values.astype(R.BF16))

    def pool(self, size):
        self.turn += 7919 * 4096 + 13
        start = self.turn % len(POOL)
        return np.resize(np.concatenate([POOL[start:], POOL[:start]]), size)

    def f8(self, name, out, inputs, gain=1.0):
        def codes():
            raw = self.pool(out * inputs)
            raw[(raw & 0x7F) == 0x7F] = 0x30  # no NaN
            return raw
        exponent = int(np.round(np.log2(gain / (100 * np.sqrt(inputs))))) + 127
        scales = np.full((-(-out // 32), -(-inputs // 32)), exponent, np.uint8)
        scales += (np.arange(scales.size) % 3 == 0).reshape(scales.shape).astype(np.uint8)
        self.add(name + ".weight", "F8_E4M3", (out, inputs), codes)
        self.add(name + ".scale", "F8_E8M0", scales.shape, scales)

    def f4(self, name, out, inputs, real):
        exponent = int(np.round(np.log2(2.0 / (2.9 * np.sqrt(inputs))))) + 127
        codes = (lambda: self.pool(out * inputs // 2)) if real else None
        self.add(name + ".weight", "I8", (out, inputs // 2), codes)
        scales = exponent + (np.arange(out * inputs // 32) % 2).astype(np.uint8)
        self.add(name + ".scale", "F8_E8M0", (out, inputs // 32), scales if real else None)

    def save(self, path):
        text = json.dumps(self.head, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.truncate(8 + len(text) + self.end)
            file.write(struct.pack("<Q", len(text)) + text)
            for offset, data in self.data:
                if data is None:
                    continue
                file.seek(8 + len(text) + offset)
                file.write(np.ascontiguousarray(data() if callable(data) else data).tobytes())
        return 8 + len(text)


def add_layer(w, layer, t):
    p, hidden, hd, m = f"layers.{layer}.", t["hidden_size"], t["head_dim"], 4
    for mix in ("hc_attn", "hc_ffn"):
        w.floats(p + mix + "_fn", ((2 + m) * m, m * hidden), (m * hidden) ** -.5, kind="F32")
        w.floats(p + mix + "_scale", (3,), .2, 1, "F32")
        base = np.concatenate([[2., -1, -1, -1], np.zeros(m), (np.eye(m) * 4 - 2).reshape(-1)])
        w.add(p + mix + "_base", "F32", base.shape, base.astype(np.float32))
    for name, size in (("attn_norm", hidden), ("ffn_norm", hidden), ("attn.q_norm", 1280),
                       ("attn.kv_norm", hd)):
        w.floats(p + name + ".weight", (size,), .1, 1)
    w.f8(p + "attn.wq_a", 1280, hidden)
    w.f8(p + "attn.wq_b", 64 * hd, 1280, 1.5)
    w.f8(p + "attn.wkv", hd, hidden)
    w.floats(p + "attn.attn_sink", (64,), 1, kind="F32")
    w.f8(p + "attn.wo_a", 8192, 4096, 2.0)
    w.f8(p + "attn.wo_b", hidden, 8192, 2.0)
    if layer in t["kv_source_layer_ids"]:
        w.floats(p + "attn.compressor.wkv.weight", (hd, hidden), hidden ** -.5)
        if t["compress_ratios"][layer] == 2:
            w.floats(p + "attn.compressor.wgate.weight", (hd, hidden), 2 * hidden ** -.5)
        w.floats(p + "attn.compressor.norm.weight", (hd,), .1, 1)
        w.floats(p + "attn.indexer.wk.weight", (128, hd), hd ** -.5)
        w.floats(p + "attn.indexer.k_norm.weight", (128,), .1, 1)
    if layer in t["index_source_layer_ids"]:
        w.f8(p + "attn.indexer.wq_b", 32 * 128, 1280)
        w.floats(p + "attn.indexer.weights_proj.weight", (32, hidden), hidden ** -.5)
    if layer in t["engram_layer_ids"]:
        w.add(p + "engram.embed.weight", "F8_E4M3", (384006168, 256), None)
        w.add(p + "engram.embed.scale", "F8_E8M0", (384006168, 8), None)
        w.f8(p + "engram.wkv", hidden * (m + 1), 24 * 256)
        w.floats(p + "engram.q_weight", (m, hidden), .3, 1)
        w.floats(p + "engram.k_weight", (m, hidden), .3, 1)
    w.floats(p + "ffn.gate.weight", (384, hidden), 1.5 * hidden ** -.5)
    bias = np.full(384, -50, np.float32)
    bias[REAL_EXPERTS] = np.linspace(-.1, .1, len(REAL_EXPERTS))
    w.add(p + "ffn.gate.bias", "F32", (384,), bias)
    w.add(p + "ffn.gate.bias_vl", "F32", (384,), bias)
    for name, out, inputs in (("w1", 2304, hidden), ("w3", 2304, hidden), ("w2", hidden, 2304)):
        w.f8(f"{p}ffn.shared_experts.{name}", out, inputs, 1.5)
        for expert in range(384):
            w.f4(f"{p}ffn.experts.{expert}.{name}", out, inputs, expert in REAL_EXPERTS)


def write_rows(path, start, head, name, rows, data):
    begin = head[name]["data_offsets"][0]
    with open(path, "r+b") as file:
        for row, values in zip(rows, data):
            raw = np.ascontiguousarray(values).tobytes()
            file.seek(start + begin + int(row) * len(raw))
            file.write(raw)


def make(out):
    os.makedirs(out, exist_ok=True)
    top = config()
    w, t = Writer(), top["text_config"]
    w.add("embed.weight", "BF16", (129280, 5120), None)
    scaled = ((POOL.astype(np.float32) - 127.5) / 74 * (2 * 5120 ** -.5)).astype(R.BF16)
    w.add("head.weight", "BF16", (129280, 5120),
          lambda: np.resize(scaled[: len(scaled) - 11], 129280 * 5120))
    w.floats("norm.weight", (5120,), .1, 1)
    for layer in range(t["num_hidden_layers"]):
        add_layer(w, layer, t)
    path = os.path.join(out, "model.safetensors")
    start = w.save(path)
    for name, content in (("config.json", top), ("engram_token_map.json", token_map().tolist())):
        with open(os.path.join(out, name), "w") as file:
            json.dump(content, file)
    ids = np.unique(token_ids())
    rng = np.random.default_rng(4)
    write_rows(path, start, w.head, "embed.weight", ids,
               rng.standard_normal((len(ids), 5120)).astype(R.BF16))
    rows = np.unique(engram_rows(top))
    codes = rng.integers(0, 256, (len(rows), 256), dtype=np.uint8)
    codes[(codes & 0x7F) == 0x7F] = 0x30
    write_rows(path, start, w.head, "layers.1.engram.embed.weight", rows, codes)
    write_rows(path, start, w.head, "layers.1.engram.embed.scale", rows,
               rng.integers(119, 122, (len(rows), 8), dtype=np.uint8))


def engram_rows(top):
    class Bare(R.Model):
        def __init__(self, c):
            self.cfg, self.token_map = c, token_map().astype(np.int64)
            self.primes = R.engram_primes(1, 4, 8, c.engram_vocab_size)
            self.mult = R.engram_multipliers([1], 4, c.engram_compressed_vocab_size)
    model = Bare(R.Cfg(top))
    state = R.State(model.cfg)
    state.ids, state.img = [int(i) for i in token_ids()], [False] * TOKENS
    return model.engram_ids(state, 0, TOKENS)


class Rows:
    """Rows of a large tensor, dequantised when asked for; .T is for piecewise_mm."""

    def __init__(self, read, count):
        self.read, self.count, self.T = read, count, self

    def __getitem__(self, rows):
        rows = np.asarray(rows)
        return self.read(rows.reshape(-1)).reshape(*rows.shape, -1)


class LazyWeights:
    def __init__(self, raw):
        self.raw = raw
        self.q8 = {n for n, (kind, _) in raw.items()
                   if kind in ("F8_E4M3", "I8") and ".embed." not in n}

    def __contains__(self, name):
        return name in self.raw

    def __getitem__(self, name):
        kind, a = self.raw[name]
        if name in ("embed.weight", "head.weight"):
            return Rows(lambda rows: a[rows].astype(np.float32), len(a))
        if name.endswith("engram.embed.weight"):
            scales = self.raw[name.replace(".weight", ".scale")][1]
            return Rows(lambda rows: (a[rows].astype(np.float32)
                                      * np.repeat(R.e8m0_to_f32(scales[rows]), 32, 1)), len(a))
        names = (name, name.removesuffix(".weight") + ".scale")
        pair = {n: self.raw[n] for n in names if n in self.raw}
        return DENSE({n: (k, np.array(v)) for n, (k, v) in pair.items()})[name]


DENSE = R.Weights
plain_mm = R.mm


def piecewise_mm(a, b):
    if not isinstance(b, Rows):
        return plain_mm(a, b)
    pieces = []
    for i in range(0, b.count, 4096):
        pieces.append(plain_mm(a, b[np.arange(i, min(i + 4096, b.count))].T))
    return np.concatenate(pieces, 1)


def mapped(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head = json.loads(file.read(size))
    whole = np.memmap(path, np.uint8, "r")
    out = {}
    for name, entry in head.items():
        a, b = (8 + size + offset for offset in entry["data_offsets"])
        out[name] = (entry["dtype"], whole[a:b].view(R._DT[entry["dtype"]]).reshape(entry["shape"]))
    return out


def reference(out):
    R.st_read, R.Weights, R.mm = mapped, LazyWeights, piecewise_mm
    model = R.Model(out)
    record, state = {}, R.State(model.cfg)
    model.margins = []
    logits = model.forward(token_ids(), state, rec=record)
    kept = ("moe_idx", "moe_w", "topk", "cand", "attn_in")
    arrays = {n: v for n, v in record.items() if n.split(".")[0] in kept}
    arrays.update(ids=token_ids().astype(np.int32), logits=logits)
    write(os.path.join(out, "reference.safetensors"), arrays)
    print("smallest margin", min(gap for _, gap in model.margins))


if __name__ == "__main__":
    {"make": make, "reference": reference}[sys.argv[1]](sys.argv[2])
