"""Hold logits of `plumb model logits` against the reference. Needs numpy and ml_dtypes.

check_logits.py ids CHECKPOINT TOKENS SEED      prints random ids as a JSON array
check_logits.py compare CHECKPOINT MODE IDS NPY exits 1 when they are further off than BOUNDS
"""
import json
import sys

import numpy as np

from ref_v41 import Model, State

# Of a position's largest difference, relative to its largest logit.
BOUNDS = {"f32": 1e-4, "kvq": 1e-3}
# A position counts only where the gap between the last kept and the first dropped choice (expert,
# row, block) was never narrower: what f32 sums cannot tell apart may go either way. Exact ties are
# decided (lower index first), so they count.
NEAR_TIE = 2e-6
# A value that is stored may lie on a rounding's tie as near as that; a flipped code then changes
# what is selected. The reference tells: with this relative noise on its embedding (below f32's own)
# it gives the other answer too. So many draws are tried before an answer is called wrong.
NOISE, DRAWS = 1e-7, 8


def ids(path, tokens, seed):
    with open(f"{path}/config.json") as file:
        vocabulary = json.load(file)["text_config"]["vocab_size"]
    print(np.random.default_rng(seed).integers(3, vocabulary - 16, tokens).tolist())


def reference(path, mode, tokens):
    """Logits [tokens, vocabulary] and, for each position, the smallest gap up to it."""
    model = Model(path, kv_quant=mode == "kvq")
    state, rows, gaps = State(model.cfg), [], []
    for token in tokens:
        model.margins = []
        rows.append(model.forward([token], state)[0])
        gaps.append(min([gap for _, gap in model.margins if gap > 0] + [1.0]))
    return np.stack(rows), np.minimum.accumulate(gaps)


def noisy(path, mode, tokens, seed):
    model = Model(path, kv_quant=mode == "kvq")
    embedding = model.W.w["embed.weight"]
    noise = np.random.default_rng(seed).standard_normal(embedding.shape)
    model.W.w["embed.weight"] = (embedding * (1 + NOISE * noise)).astype(np.float32)
    return model.forward(tokens, State(model.cfg))


def distance(ours, theirs):
    return np.abs(ours - theirs).max(1) / np.abs(theirs).max(1)


def compare(path, mode, ids_path, logits_path):
    with open(ids_path) as file:
        tokens = json.load(file)
    ours = np.load(logits_path)
    theirs, gaps = reference(path, mode, tokens)
    if ours.shape != theirs.shape or ours.dtype != np.float32:
        sys.exit(f"{mode}: {ours.dtype} {ours.shape}, expected float32 {theirs.shape}")
    errors = distance(ours, theirs)
    counted = gaps > NEAR_TIE
    wrong = counted & ~(errors <= BOUNDS[mode])
    arg_wrong = counted & (ours.argmax(1) != theirs.argmax(1)) & wrong
    print(f"{mode}: {len(tokens)} positions, {int(counted.sum())} before the first near tie; "
          f"largest error there {errors[counted].max(initial=0):.1e}, overall {errors.max():.1e}; "
          f"too far {int(wrong.sum())}, other choice {int(arg_wrong.sum())}")
    if not counted[: len(tokens) // 4].all():
        sys.exit(1)
    if not wrong.any():
        return
    for seed in range(1, DRAWS + 1) if mode == "kvq" else []:
        errors = distance(ours, noisy(path, mode, tokens, seed))
        if errors.max() <= BOUNDS[mode]:
            print(f"{mode}: the reference gives that too with noise {NOISE:.0e}, draw {seed}: "
                  f"largest error {errors.max():.1e}")
            return
    sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "ids":
        ids(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        compare(*sys.argv[2:6])
