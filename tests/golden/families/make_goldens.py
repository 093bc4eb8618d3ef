#!/usr/bin/env python3
# make_goldens.py, after: pip install -r requirements.txt
# Makes a small random checkpoint per family with `transformers` (config.json, model.safetensors)
# and the logits that transformers computes from it in f32: once as it is, once with keys and values
# rounded to f16, as plumb stores them. The tests read only what is committed. Regenerate only in a
# commit that says why.

import datetime
import hashlib
import importlib.metadata
import json
import pathlib
import platform
import shutil
import sys

import torch
import transformers

HERE = pathlib.Path(__file__).parent
SHAPE = dict(vocab_size=48, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=96, max_position_embeddings=512,
             bos_token_id=1, eos_token_id=2, pad_token_id=0, initializer_range=0.12)
NARROW = {**SHAPE, "hidden_size": 48}
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
LENGTHS = (1, 5, 33, 150)  # of the prompts; a page holds 128 tokens


def families():
    """name -> (model, dtype of the checkpoint)"""
    t = transformers
    return {
        "llama": (t.LlamaForCausalLM(t.LlamaConfig(
            **SHAPE, rope_theta=10000.0, rope_scaling=LLAMA3)), torch.float32),
        "mistral": (t.MistralForCausalLM(t.MistralConfig(
            **SHAPE, sliding_window=24)), torch.bfloat16),
        "qwen2": (t.Qwen2ForCausalLM(t.Qwen2Config(
            **SHAPE, tie_word_embeddings=True)), torch.float32),
        "qwen3": (t.Qwen3ForCausalLM(t.Qwen3Config(
            **SHAPE, head_dim=32, tie_word_embeddings=True)), torch.bfloat16),
        "qwen3_moe": (t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(
            **NARROW, head_dim=16, num_experts=7, num_experts_per_tok=3, norm_topk_prob=True,
            moe_intermediate_size=24, decoder_sparse_step=1)), torch.float32),
        "qwen3_moe_plain": (t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(
            **NARROW, head_dim=16, num_experts=5, num_experts_per_tok=2, norm_topk_prob=False,
            moe_intermediate_size=32, decoder_sparse_step=1)), torch.float32),
        "mixtral": (t.MixtralForCausalLM(t.MixtralConfig(
            **{**NARROW, "intermediate_size": 40}, head_dim=16, num_local_experts=4,
            num_experts_per_tok=2)), torch.float32),
        "gemma3_text": (t.Gemma3ForCausalLM(t.Gemma3TextConfig(
            **{**NARROW, "num_hidden_layers": 3}, head_dim=16, query_pre_attn_scalar=24,
            sliding_window=20, rope_local_base_freq=10000.0, rope_theta=1000000.0,
            rope_scaling=dict(rope_type="linear", factor=4.0),
            final_logit_softcapping=8.0,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
            torch.float32),
    }


def randomise(model, generator):
    """Weights as initialised, and vectors that would be trivial (norms, biases) made random."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            gemma = "Gemma3" in type(model).__name__
            base = 0.0 if name.endswith("bias") or gemma else 1.0
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.data = base + 0.2 * noise
        elif name.endswith("gate.weight"):  # routers: far from ties
            parameter.data = torch.randn(parameter.shape, generator=generator)


def rounded_attention(eager):
    def attention(module, query, key, value, *args, **kwargs):
        return eager(module, query, key.half().float(), value.half().float(), *args, **kwargs)
    return attention


@torch.no_grad()
def logits(model, tokens, f16_kv):
    module = sys.modules[type(model).__module__]
    eager = module.eager_attention_forward
    if f16_kv:
        module.eager_attention_forward = rounded_attention(eager)
    try:
        return model(torch.tensor([tokens]), use_cache=False).logits[0]
    finally:
        module.eager_attention_forward = eager


def rows(values, positions):
    return [[float(f"{v:.7g}") for v in values[p].tolist()] for p in positions]


def make(name, seed):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model, dtype = families()[name]
    randomise(model, generator)
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    model.to(dtype).save_pretrained(folder, safe_serialization=True)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "model.safetensors").chmod(0o644)
    # What a reader gets: the stored weights, widened.
    model = type(model).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    model.eval()
    prompts = []
    for length in LENGTHS:
        tokens = torch.randint(3, SHAPE["vocab_size"], (length,), generator=generator).tolist()
        positions = sorted({0, length // 2, length - 2, length - 1} & set(range(length)))
        plain = logits(model, tokens, False)
        rounded = logits(model, tokens, True)
        assert torch.isfinite(plain).all()
        prompts.append({"tokens": tokens, "positions": positions,
                        "logits": rows(plain, positions),
                        "logits_f16_kv": rows(rounded, positions)})
    lines = ",\n".join(json.dumps(p, separators=(",", ":")) for p in prompts)
    (folder / "goldens.json").write_text(f'{{"family":"{name}","prompts":[\n{lines}\n]}}\n')
    print(name, f"largest logit {plain.abs().max():.2f}, "
          f"f16 keys and values change {(plain - rounded).norm() / plain.norm():.1e}")


def main():
    names = sys.argv[1:] or list(families())
    manifest = {"tool": "make_goldens.py (transformers on random checkpoints, f32 arithmetic)",
                "command": "python3 make_goldens.py",
                "date": datetime.date.today().isoformat(),
                "versions": {"python": platform.python_version(), **{
                    p: importlib.metadata.version(p)
                    for p in ("torch", "transformers", "safetensors")}}}
    for seed, name in enumerate(families(), 1):
        if name in names:
            make(name, seed)
    manifest["sha256"] = {
        str(path.relative_to(HERE)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in sorted(families()) for path in sorted((HERE / folder).iterdir())}
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
