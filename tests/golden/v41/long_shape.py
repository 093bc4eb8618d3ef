"""A small checkpoint with the released sizes of selection, and a prompt that is long enough.

long_shape.py make OUT [SEED]   writes OUT/: five layers, 512 of at most 2048 blocks of 8 rows
long_shape.py reference OUT     runs ref_v41.py in f32 over 20,096 tokens, decoder rows for the last
                                128; OUT/reference.safetensors gets their logits and choices
Blocks are left out from row 16,384 on, so every one of these rows selects in two levels.
"""
import json
import os
import sys

import numpy as np

import make_tiny
import ref_v41 as R
from convert import write

CHUNK = 128  # tokens that the reference takes at once: its index scores are [CHUNK, heads, rows]
CHUNKS = 157
ROWS = CHUNK  # the decoder's; the last chunk's
TOKENS = CHUNK * CHUNKS
TEXT = {
    "num_hidden_layers": 5, "num_attention_heads": 4, "sliding_window": 32, "index_n_heads": 4,
    "max_position_embeddings": 32768,
    "compress_ratios": [0, 2, 1, 1, 1, 0, 0, 0], "kv_source_layer_ids": [1, 2],
    "index_source_layer_ids": [1, 2, 4], "candidate_source_layer_id": 2,
    "candidate_topk_blocks": 2048, "candidate_block_size": 8, "index_topk": 512,
    "engram_layer_ids": [1], "dspark_target_layer_ids": [2, 3, 4],
    "rope_scaling": {"rope_type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1,
                     "original_max_position_embeddings": 2048}}


def make(out, seed):
    make_tiny.CONFIG["text_config"].update(TEXT)
    config, tensors, token_map = make_tiny.build(seed)
    os.makedirs(out, exist_ok=True)
    R.st_write(os.path.join(out, "model.safetensors"), tensors)
    for name, content in (("config.json", config), ("engram_token_map.json", token_map)):
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            json.dump(content, file)


def token_ids(vocabulary):
    return np.random.default_rng(TOKENS).integers(3, vocabulary - 16, TOKENS)


def smallest(margins):
    """The smallest gap of each kind of choice; exact ties are decided by the lower index."""
    kinds = sorted({kind for kind, _ in margins})
    return {kind: min(gap for k, gap in margins if k == kind and gap > 0) for kind in kinds}


def reference(out):
    model = R.Model(out)
    config, state = model.cfg, R.State(model.cfg)
    ids = token_ids(config.vocab_size)
    for chunk in range(CHUNKS - 1):
        model.forward(ids[chunk * CHUNK:(chunk + 1) * CHUNK], state, keep=ROWS, data_len=TOKENS)
    record, model.margins = {}, []
    logits = model.forward(ids[-CHUNK:], state, keep=ROWS, data_len=TOKENS, rec=record)
    # Encoder layers have rows in every chunk, so only the decoder's are comparable by their number.
    kept = [f"{kind}.{layer}" for layer in range(config.dec_start, config.L)
            for kind in ("topk", "cand", "moe_idx")]
    arrays = {name: record[name] for name in kept if name in record}
    arrays.update(ids=ids.astype(np.int32), logits=logits)
    write(os.path.join(out, "reference.safetensors"), arrays)
    left_out = (record[f"cand.{config.candidate_source_layer_id}"] >= 0).sum(1)
    print(f"{len(logits)} rows of {TOKENS} tokens; candidate blocks {left_out.min()} to "
          f"{left_out.max()} of {-(-TOKENS // config.candidate_block_size)}; smallest gaps "
          + ", ".join(f"{kind} {gap:.1e}" for kind, gap in smallest(model.margins).items()))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 41)
    else:
        reference(sys.argv[2])
