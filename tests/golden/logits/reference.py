# reference.py: an independent forward pass in NumPy, for judging plumb's logits. It shares no code
# with plumb: the PyPI package `gguf` reads and dequantises the file, everything after that is f32
# arithmetic on plain arrays, with keys and values kept in f32.

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize


class Reference:
    """A Llama, Qwen2 or Gemma 3 model. `forward` appends tokens to the cache and returns their
    logits."""

    def __init__(self, path):
        reader = GGUFReader(path)
        keys = [k for k in reader.fields if not k.startswith("tokenizer.")]
        field = {k: reader.fields[k].contents() for k in keys}
        arch = field["general.architecture"]
        assert arch in ("llama", "qwen2", "gemma3"), arch
        self.gemma = arch == "gemma3"
        self.layers = field[f"{arch}.block_count"]
        self.heads = field[f"{arch}.attention.head_count"]
        self.kv_heads = field[f"{arch}.attention.head_count_kv"]
        self.epsilon = np.float32(field[f"{arch}.attention.layer_norm_rms_epsilon"])
        width = field[f"{arch}.embedding_length"]
        self.head_dim = field.get(f"{arch}.attention.key_length", width // self.heads)
        # llama.cpp's converter permutes Llama's query and key rows, so that pairs are adjacent.
        self.adjacent_pairs = arch == "llama"
        base = field[f"{arch}.rope.freq_base"]
        half = self.head_dim // 2
        powers = np.arange(half, dtype=np.float64) * 2 / self.head_dim
        self.frequencies = 1.0 / base**powers
        # Gemma 3: all layers but every sixth see a window, and rotate by a base of their own.
        self.window = field.get(f"{arch}.attention.sliding_window") if self.gemma else None
        self.local_frequencies = 1.0 / 10000.0**powers
        self.w = {}
        for t in reader.tensors:
            shape = [int(d) for d in reversed(t.shape)]
            values = dequantize(t.data, t.tensor_type).astype(np.float32).reshape(shape)
            self.w[t.name] = np.ascontiguousarray(values)
        if "rope_freqs.weight" in self.w:
            self.frequencies = self.frequencies / self.w["rope_freqs.weight"].astype(np.float64)
        self.reset()

    def reset(self):
        self.keys = [np.zeros((0, self.kv_heads, self.head_dim), np.float32)] * self.layers
        self.values = [np.zeros((0, self.kv_heads, self.head_dim), np.float32)] * self.layers
        self.position = 0

    def norm(self, x, name):
        mean = np.mean(x.astype(np.float64) ** 2, axis=-1, keepdims=True)
        return (x / np.sqrt(mean + self.epsilon)).astype(np.float32) * self.w[name]

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T
        bias = self.w.get(name + ".bias")
        return y if bias is None else y + bias

    def sees_all(self, layer):
        return self.window is None or layer % 6 == 5

    def rotate(self, x, positions, layer):
        """x: [tokens, heads, head_dim]"""
        frequencies = self.frequencies if self.sees_all(layer) else self.local_frequencies
        angle = positions[:, None] * frequencies[None, :]
        cos = np.cos(angle).astype(np.float32)[:, None, :]
        sin = np.sin(angle).astype(np.float32)[:, None, :]
        out = np.empty_like(x)
        half = self.head_dim // 2
        if self.adjacent_pairs:
            first, second = x[..., 0::2], x[..., 1::2]
            out[..., 0::2] = first * cos - second * sin
            out[..., 1::2] = first * sin + second * cos
        else:
            first, second = x[..., :half], x[..., half:]
            out[..., :half] = first * cos - second * sin
            out[..., half:] = first * sin + second * cos
        return out

    def attention(self, x, layer, positions):
        block = f"blk.{layer}."
        n = x.shape[0]
        q = self.linear(x, block + "attn_q").reshape(n, self.heads, self.head_dim)
        k = self.linear(x, block + "attn_k").reshape(n, self.kv_heads, self.head_dim)
        v = self.linear(x, block + "attn_v").reshape(n, self.kv_heads, self.head_dim)
        if self.gemma:
            q = self.norm(q, block + "attn_q_norm.weight")
            k = self.norm(k, block + "attn_k_norm.weight")
        q, k = self.rotate(q, positions, layer), self.rotate(k, positions, layer)
        self.keys[layer] = np.concatenate([self.keys[layer], k])
        self.values[layer] = np.concatenate([self.values[layer], v])
        group = self.heads // self.kv_heads
        keys = np.repeat(self.keys[layer], group, axis=1)
        values = np.repeat(self.values[layer], group, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, keys) / np.float32(np.sqrt(self.head_dim))
        ages = positions[:, None] - np.arange(keys.shape[0])[None, :]
        mask = ages < 0 if self.sees_all(layer) else (ages < 0) | (ages >= self.window)
        scores[:, mask] = -np.inf
        scores = scores - scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores)
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", weights, values)
        return self.linear(mixed.reshape(n, -1), block + "attn_output")

    def feed_forward(self, x, layer):
        block = f"blk.{layer}."
        gate = self.linear(x, block + "ffn_gate")
        up = self.linear(x, block + "ffn_up")
        if self.gemma:  # GELU, tanh form
            inner = np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)
            act = 0.5 * gate * (1 + np.tanh(inner))
        else:
            act = gate / (1 + np.exp(-gate))
        return self.linear((act * up).astype(np.float32), block + "ffn_down")

    def forward(self, tokens):
        """Logits of every given token: [tokens, vocabulary] f32."""
        x = self.w["token_embd.weight"][np.asarray(tokens)]
        if self.gemma:
            x = x * np.float32(np.sqrt(x.shape[-1]))
        positions = np.arange(self.position, self.position + len(tokens), dtype=np.float64)
        for layer in range(self.layers):
            block = f"blk.{layer}."
            y = self.attention(self.norm(x, block + "attn_norm.weight"), layer, positions)
            x = x + (self.norm(y, block + "post_attention_norm.weight") if self.gemma else y)
            y = self.feed_forward(self.norm(x, block + "ffn_norm.weight"), layer)
            x = x + (self.norm(y, block + "post_ffw_norm.weight") if self.gemma else y)
        self.position += len(tokens)
        x = self.norm(x, "output_norm.weight")
        return x @ self.w.get("output.weight", self.w["token_embd.weight"]).T


def log_probabilities(logits):
    z = logits.astype(np.float64)
    z -= z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
