"""eval/speed/lib/deepseek_checkpoint.py
Writes a DeepSeek-V4.1 checkpoint of random weights that a small machine can be measured with: real
tensor names, storage types and layer structure, the released model's proportions at half its width
(attention : experts : head in the bytes of a token), fewer layers and experts. Values repeat in
pieces of a pool, so that it is written as fast as a disk takes it; speed does not depend on them.
Only the standard library. Called by deepseek_speed.sh: deepseek_checkpoint.py FOLDER [--shape NAME]
"""
import argparse
import array
import json
import math
import random
import shutil
import sys
from pathlib import Path

from engram_hashes import engram_factors, engram_primes

# Released: hidden 5120, 64 heads of 512, ranks 1280 and 1024, experts of 2304, 6 of 384 used, 40
# layers of which 20 decode, vocabulary 129280; window, index and head widths are the released ones.
HALF = {
    "vocab_size": 16384, "hidden_size": 2560, "moe_intermediate_size": 1152,
    "num_attention_heads": 32, "head_dim": 512, "qk_rope_head_dim": 64, "q_lora_rank": 640,
    "o_lora_rank": 512, "o_groups": 8, "n_routed_experts": 48, "num_experts_per_tok": 6,
    "sliding_window": 128, "compress_ratios": [0, 2, 2, 2, 1, 1, 1, 1],
    "kv_source_layer_ids": [1, 4], "index_source_layer_ids": [1, 4, 6],
    "index_n_heads": 16, "index_head_dim": 128, "index_topk": 512,
    "candidate_source_layer_id": 4, "candidate_topk_blocks": 2048, "candidate_block_size": 8,
    "engram_layer_ids": [1], "engram_vocab_size": 100000, "engram_n_heads": 8,
    "engram_head_dim": 128, "engram_max_ngram_size": 4, "engram_compressed_vocab_size": 12000,
}
SHAPES = {
    "half": HALF,  # 2.7 GB, 0.7 GB of it for a token
    "quick": HALF | {  # 140 MB: shows that a script works, fits no claim
        "vocab_size": 2048, "hidden_size": 1024, "moe_intermediate_size": 512,
        "num_attention_heads": 8, "q_lora_rank": 256, "o_lora_rank": 128, "o_groups": 4,
        "n_routed_experts": 8, "engram_vocab_size": 5000, "engram_compressed_vocab_size": 1500},
}
TOKENIZER = Path(__file__).parents[3] / "tests/golden/v41/trained/ckpt"
STREAMS = 4
POOL_BYTES = 8 << 20
POOL_VALUES = 1 << 15


def text_config(shape):
    return {
        "model_type": "deepseek_v41_text", "num_hidden_layers": len(shape["compress_ratios"]),
        "num_key_value_heads": 1, "hidden_act": "silu", "swiglu_limit": 10.0,
        "rms_norm_eps": 1e-20, "attention_bias": False, "attention_dropout": 0.0,
        "tie_word_embeddings": False, "max_position_embeddings": 65536, "rope_theta": 10000,
        "rope_scaling": {"rope_type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1,
                         "original_max_position_embeddings": 4096},
        "n_shared_experts": 1, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc",
        "norm_topk_prob": True, "routed_scaling_factor": 1.5, "compress_rope_theta": 160000,
        "hc_mult": STREAMS, "hc_sinkhorn_iters": 20, "hc_eps": 1e-06, "engram_pad_token_id": 2,
        "engram_num_embeddings": [sum(primes) for primes in engram_primes(shape)],
        "num_nextn_predict_layers": 0} | shape


def config(shape):
    return {
        "architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41",
        "dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
        "image_token_id": shape["vocab_size"] - 1,
        "quantization_config": {
            "quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32],
            "scale_fmt": "ue8m0", "expert_dtype": "fp4"},
        "text_config": text_config(shape)}


# ---- values ----

def rms_e4m3():
    def value(code):
        exponent, mantissa = code >> 3 & 15, code & 7
        return mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0**(exponent - 10)
    return math.sqrt(sum(value(code)**2 for code in range(127)) / 127)


class Values:
    """Bytes of a tensor, in pieces of random pools."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        raw = self.random.randbytes(POOL_BYTES)
        not_nan = bytes(code - 1 if code & 127 == 127 else code for code in range(256))
        self.codes4, self.codes8 = raw, raw.translate(not_nan)
        self.normal = [self.random.gauss(0, 1) for _ in range(POOL_VALUES)]
        self.pools = {}

    def _pieces(self, pool, size, unit):
        while size > 0:
            start = self.random.randrange(len(pool) // unit) * unit
            piece = pool[start:start + size]
            size -= len(piece)
            yield piece

    def f4(self, size):
        return self._pieces(self.codes4, size, 1)

    def f8(self, size):
        return self._pieces(self.codes8, size, 1)

    def scales(self, size, exponent):
        key = ("scale", exponent)
        if key not in self.pools:
            table = bytes(127 + exponent + code % 3 - 1 for code in range(256))
            self.pools[key] = self.codes4[:1 << 20].translate(table)
        return self._pieces(self.pools[key], size, 1)

    def floats(self, size, kind, deviation, middle):
        key = (kind, deviation, middle)
        if key not in self.pools:
            values = array.array("f", (middle + deviation * x for x in self.normal)).tobytes()
            if kind == "BF16":  # the upper halves
                values = b"".join(values[i + 2:i + 4] for i in range(0, len(values), 4))
            self.pools[key] = values
        return self._pieces(self.pools[key], size, 4)


class Tensors:
    """Every tensor of a checkpoint: (name, type, shape, function that gives its bytes)."""

    def __init__(self, shape, values):
        self.shape, self.values, self.all = shape, values, []
        vocabulary, hidden = shape["vocab_size"], shape["hidden_size"]
        self.float("BF16", "embed.weight", [vocabulary, hidden], 1)
        self.float("BF16", "head.weight", [vocabulary, hidden], 2 * hidden**-0.5)
        self.norm("norm.weight", hidden)
        for layer in range(len(shape["compress_ratios"])):
            self.layer(layer, f"layers.{layer}.")

    def add(self, name, kind, dims, give):
        size = math.prod(dims) * {"F32": 4, "BF16": 2}.get(kind, 1)
        self.all.append((name, kind, dims, size, give))

    def float(self, kind, name, dims, deviation, middle=0):
        self.add(name, kind, dims, lambda size: self.values.floats(size, kind, deviation, middle))

    def norm(self, name, size):
        self.float("BF16", name, [size], 0.1, 1)

    def scaled(self, name, inputs, dims, gain, rms):
        exponent = round(math.log2(gain / rms / math.sqrt(inputs)))
        self.add(name, "F8_E8M0", dims, lambda size: self.values.scales(size, exponent))

    def f8(self, name, outputs, inputs, gain=1.0):
        self.add(name + ".weight", "F8_E4M3", [outputs, inputs], self.values.f8)
        self.scaled(name + ".scale", inputs, [-(-outputs // 32), -(-inputs // 32)], gain,
                    rms_e4m3())

    def f4(self, name, outputs, inputs, gain=1.0):
        self.add(name + ".weight", "I8", [outputs, inputs // 2], self.values.f4)
        self.scaled(name + ".scale", inputs, [outputs, inputs // 32], gain, 2.96)

    def layer(self, layer, prefix):
        hidden = self.shape["hidden_size"]
        outputs = (2 + STREAMS) * STREAMS
        for mix in ("hc_attn", "hc_ffn"):
            self.float("F32", f"{prefix}{mix}_fn", [outputs, STREAMS * hidden],
                       (STREAMS * hidden)**-0.5)
            self.float("F32", f"{prefix}{mix}_base", [outputs], 0.5)
            self.float("F32", f"{prefix}{mix}_scale", [3], 0.2, 1)
        self.norm(prefix + "attn_norm.weight", hidden)
        self.norm(prefix + "ffn_norm.weight", hidden)
        self.attention(layer, prefix + "attn.")
        if layer in self.shape["engram_layer_ids"]:
            self.engram(layer, prefix + "engram.")
        self.feed(prefix + "ffn.")

    def attention(self, layer, prefix):
        s = self.shape
        hidden, dim, rank = s["hidden_size"], s["head_dim"], s["q_lora_rank"]
        queries, ranks = s["num_attention_heads"] * dim, s["o_groups"] * s["o_lora_rank"]
        self.f8(prefix + "wq_a", rank, hidden)
        self.norm(prefix + "q_norm.weight", rank)
        self.f8(prefix + "wq_b", queries, rank, 1.5)
        self.f8(prefix + "wkv", dim, hidden)
        self.norm(prefix + "kv_norm.weight", dim)
        self.float("F32", prefix + "attn_sink", [s["num_attention_heads"]], 1)
        self.f8(prefix + "wo_a", ranks, queries // s["o_groups"], 2)
        self.f8(prefix + "wo_b", hidden, ranks, 0.5)
        if layer in s["kv_source_layer_ids"]:
            self.float("BF16", prefix + "compressor.wkv.weight", [dim, hidden], hidden**-0.5)
            if s["compress_ratios"][layer] == 2:
                self.float("BF16", prefix + "compressor.wgate.weight", [dim, hidden],
                           2 * hidden**-0.5)
            self.norm(prefix + "compressor.norm.weight", dim)
            self.float("BF16", prefix + "indexer.wk.weight", [s["index_head_dim"], dim], dim**-0.5)
            self.norm(prefix + "indexer.k_norm.weight", s["index_head_dim"])
        if layer in s["index_source_layer_ids"]:
            self.f8(prefix + "indexer.wq_b", s["index_n_heads"] * s["index_head_dim"], rank)
            self.float("BF16", prefix + "indexer.weights_proj.weight", [s["index_n_heads"], hidden],
                       hidden**-0.5)

    def engram(self, layer, prefix):
        s = self.shape
        width = s["engram_head_dim"]
        rows = sum(engram_primes(s)[s["engram_layer_ids"].index(layer)])
        self.add(prefix + "embed.weight", "F8_E4M3", [rows, width], self.values.f8)
        self.scaled(prefix + "embed.scale", 1, [rows, width // 32], 1, rms_e4m3())
        self.f8(prefix + "wkv", s["hidden_size"] * (STREAMS + 1),
                (s["engram_max_ngram_size"] - 1) * s["engram_n_heads"] * width)
        self.float("BF16", prefix + "q_weight", [STREAMS, s["hidden_size"]], 0.3, 1)
        self.float("BF16", prefix + "k_weight", [STREAMS, s["hidden_size"]], 0.3, 1)

    def feed(self, prefix):
        s = self.shape
        hidden, width, experts = s["hidden_size"], s["moe_intermediate_size"], s["n_routed_experts"]
        self.float("BF16", prefix + "gate.weight", [experts, hidden], 1.5 * hidden**-0.5)
        self.float("F32", prefix + "gate.bias", [experts], 0.1)
        self.float("F32", prefix + "gate.bias_vl", [experts], 0.3)
        for name, outputs, inputs in (("w1", width, hidden), ("w3", width, hidden),
                                      ("w2", hidden, width)):
            gain = 0.5 if name == "w2" else 1.5
            self.f8(f"{prefix}shared_experts.{name}", outputs, inputs, gain)
            for expert in range(experts):
                self.f4(f"{prefix}experts.{expert}.{name}", outputs, inputs, gain)


def write(folder, shape_name):
    """Into `folder`, which is there afterwards only when it is complete."""
    target = Path(folder)
    partial = target.with_name(target.name + ".part")
    partial.mkdir(parents=True, exist_ok=True)
    shape = SHAPES[shape_name]
    values = Values(seed=41)
    tensors = Tensors(shape, values).all
    header, end = {}, 0
    for name, kind, dims, size, _ in tensors:
        header[name] = {"dtype": kind, "shape": dims, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(partial / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, _, _, size, give in tensors:
            file.writelines(give(size))
    small = {
        "config.json": config(shape),
        "model.safetensors.index.json": {
            "metadata": {"total_size": end},
            "weight_map": {name: "model.safetensors" for name in header}},
        # The class of each token for the n-gram hashes, for plumb and (with the hashes' factors)
        # for fastllm. The tokenizer beside it has fewer tokens; no text is ever made of them.
        "engram_token_map.json": token_map(shape),
        "engram_meta.json": {
            "token_map": token_map(shape), "pad_token_id": 2,
            "compressed_vocab_size": shape["engram_compressed_vocab_size"],
            "engram_layer_ids": shape["engram_layer_ids"],
            "multipliers": [[str(factor) for factor in row] for row in engram_factors(shape)]},
    }
    for name, content in small.items():
        (partial / name).write_text(json.dumps(content), encoding="utf-8")
    for name in ("tokenizer.json", "tokenizer_config.json"):  # fastllm will not start without
        shutil.copyfile(TOKENIZER / name, partial / name)
    partial.rename(target)
    return end


def token_map(shape):
    return [token % shape["engram_compressed_vocab_size"] for token in range(shape["vocab_size"])]


def main():
    parser = argparse.ArgumentParser(prog="deepseek_checkpoint.py")
    parser.add_argument("folder")
    parser.add_argument("--shape", choices=SHAPES, default="half")
    arguments = parser.parse_args()
    print(f"{arguments.folder}: {write(arguments.folder, arguments.shape) / 1e9:.2f} GB",
          file=sys.stderr)


if __name__ == "__main__":
    main()
