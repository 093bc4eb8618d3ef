#!/usr/bin/env python3
# make_goldens.py, after: pip install -r requirements.txt
# Makes a small random checkpoint per family with `transformers` (config.json, model.safetensors)
# and the logits that transformers computes from it in f32: once as it is, once with keys and values
# rounded to f16, as plumb stores them. qwen3_f8 has its matrices in F8_E4M3 with a scale for each
# block (transformers gets them widened). The tests read only what is committed. Regenerate only in
# a commit that says why.

import datetime
import hashlib
import importlib.metadata
import json
import pathlib
import platform
import shutil
import sys

import safetensors.torch
import torch
import transformers

HERE = pathlib.Path(__file__).parent
SHAPE = dict(vocab_size=48, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=96, max_position_embeddings=512,
             bos_token_id=1, eos_token_id=2, pad_token_id=0, initializer_range=0.12)
NARROW = {**SHAPE, "hidden_size": 48}
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
F8_BLOCK = (24, 40)  # outputs, inputs: cuts the matrices unevenly
SEEDS = dict(llama=1, mistral=2, qwen2=3, qwen3=4, qwen3_moe=5, qwen3_moe_plain=6, mixtral=7,
             gemma3_text=8, qwen3_f8=9)
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
        "qwen3_f8": (t.Qwen3ForCausalLM(t.Qwen3Config(
            **SHAPE, head_dim=32)), torch.float32),
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


def to_f8(weight):
    """F8_E4M3 values, a scale for each block, and what they stand for in f32."""
    stored = torch.empty(weight.shape, dtype=torch.float8_e4m3fn)
    widened = torch.empty_like(weight)
    counts = [-(-size // block) for size, block in zip(weight.shape, F8_BLOCK)]
    scales = torch.empty(counts)
    for i in range(counts[0]):
        for k in range(counts[1]):
            at = (slice(i * F8_BLOCK[0], (i + 1) * F8_BLOCK[0]),
                  slice(k * F8_BLOCK[1], (k + 1) * F8_BLOCK[1]))
            scales[i, k] = weight[at].abs().max() / 448
            stored[at] = (weight[at] / scales[i, k]).to(torch.float8_e4m3fn)
            widened[at] = stored[at].float() * scales[i, k]
    return stored, scales, widened


def store_matrices_as_f8(folder, model):
    """Rewrites the checkpoint that `model` was saved as, and gives `model` what a reader gets."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            stored, scales, widened = to_f8(module.weight.data)
            tensors[f"{name}.weight"] = stored
            tensors[f"{name}.weight_scale_inv"] = scales
            module.weight.data = widened
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": F8_BLOCK}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


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
    if name.endswith("_f8"):
        store_matrices_as_f8(folder, model)
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
    for name in names:
        make(name, SEEDS[name])
    manifest["sha256"] = {
        str(path.relative_to(HERE)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in sorted(families()) for path in sorted((HERE / folder).iterdir())}
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
