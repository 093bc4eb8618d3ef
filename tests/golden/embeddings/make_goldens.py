#!/usr/bin/env python3
# make_goldens.py, after: pip install -r requirements.txt
# Embeddings of a small random Qwen2 checkpoint (../families/qwen2), recomputed with NumPy in f64
# from the published architecture: the states of all tokens after the last norm, pooled, at length
# 1; once as they are, once with keys and values rounded to f16, as plumb stores them. That these
# states are the model's shows in its logits, which must be those of transformers (goldens.json
# there). The test reads only what is committed. Regenerate only in a commit that says why.

import datetime
import hashlib
import json
import pathlib
import platform

import numpy as np
from safetensors.numpy import load_file

HERE = pathlib.Path(__file__).parent
FOLDER = HERE.parent / "families" / "qwen2"


def norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def rotate(x, base):
    """[heads, tokens, width], the halves of each head turned by position * base^(-2i / width)."""
    width = x.shape[-1]
    frequencies = base ** (-np.arange(0, width, 2) / width)
    angles = np.arange(x.shape[1])[:, None] * frequencies
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = x[..., :width // 2], x[..., width // 2:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def attention(x, weights, config, stored):
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    width = config["hidden_size"] // heads

    def project(name, count):
        y = x @ weights[f"{name}_proj.weight"].T + weights[f"{name}_proj.bias"]
        return y.reshape(len(x), count, width).transpose(1, 0, 2)

    query = rotate(project("q", heads), config["rope_theta"])
    key = stored(rotate(project("k", kv_heads), config["rope_theta"])).repeat(heads // kv_heads, 0)
    value = stored(project("v", kv_heads)).repeat(heads // kv_heads, 0)
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(width)
    scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (shares / shares.sum(-1, keepdims=True)) @ value
    return mixed.transpose(1, 0, 2).reshape(len(x), -1) @ weights["o_proj.weight"].T


def hidden_states(tokens, weights, config, stored):
    def layer(index, part):
        prefix = f"model.layers.{index}.{part}."
        return {name[len(prefix):]: w for name, w in weights.items() if name.startswith(prefix)}

    epsilon = config["rms_norm_eps"]
    x = weights["model.embed_tokens.weight"][tokens]
    for index in range(config["num_hidden_layers"]):
        around = layer(index, "input_layernorm"), layer(index, "post_attention_layernorm")
        x = x + attention(norm(x, around[0]["weight"], epsilon), layer(index, "self_attn"), config,
                          stored)
        feed, y = layer(index, "mlp"), norm(x, around[1]["weight"], epsilon)
        gate = y @ feed["gate_proj.weight"].T
        y = gate / (1 + np.exp(-gate)) * (y @ feed["up_proj.weight"].T)
        x = x + y @ feed["down_proj.weight"].T
    return norm(x, weights["model.norm.weight"], epsilon)


def in_f16(x):
    return x.astype(np.float16).astype(np.float64)


def embedding(states, pooling):
    pooled = states.mean(0) if pooling == "mean" else states[-1]
    return [float(f"{value:.9g}") for value in pooled / np.linalg.norm(pooled)]


def main():
    config = json.loads((FOLDER / "config.json").read_text())
    weights = {k: v.astype(np.float64) for k, v in load_file(FOLDER / "model.safetensors").items()}
    lines = []
    for prompt in json.loads((FOLDER / "goldens.json").read_text())["prompts"]:
        golden = {"tokens": prompt["tokens"]}
        for suffix, stored in (("", lambda x: x), ("_f16_kv", in_f16)):
            states = hidden_states(prompt["tokens"], weights, config, stored)
            ours = states[prompt["positions"]] @ weights["model.embed_tokens.weight"].T
            theirs = np.array(prompt["logits" + suffix])
            # Theirs are f32; with f16, one value in thousands may round the other way.
            distance = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
            assert distance < (2e-6 if not suffix else 2e-5), distance
            print(len(prompt["tokens"]), suffix or "f32", f"logits differ by {distance:.1e}")
            for pooling in ("mean", "last"):
                golden[pooling + suffix] = embedding(states, pooling)
        lines.append(json.dumps(golden, separators=(",", ":")))
    out = HERE / "goldens.json"
    out.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    manifest = {"tool": "make_goldens.py (NumPy, f64; the checkpoint of ../families/qwen2)",
                "command": "python3 make_goldens.py", "date": datetime.date.today().isoformat(),
                "versions": {"python": platform.python_version(), "numpy": np.__version__},
                "sha256": {"goldens.json": hashlib.sha256(out.read_bytes()).hexdigest()}}
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
