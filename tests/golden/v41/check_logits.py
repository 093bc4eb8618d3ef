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
# The largest logit must be that of the same token, unless the reference's two best are as near,
# relative to the largest: some times the error that f32 sums show (4e-6).
LOGITS_TIE = 1e-5
# Where all positions agree, all is well. Else a position counts only where the gap between the last
# kept and the first dropped choice (expert, row, block) was never narrower: what f32 sums cannot
# tell apart may go either way. Exact ties are decided (lower index first), so they count.
NEAR_TIE = 2e-6
# A value that is stored may lie on a rounding's tie as near as that; a flipped code then changes
# what is selected. The reference tells: with this relative noise on its embedding (below f32's own)
# it gives the other answer too. So many draws are tried before an answer is called wrong, or, where
# near ties leave fewer than a quarter of the positions to count, unknown.
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


def judge(ours, theirs, bound):
    """For each position: the distance, whether it is too far, whether another token leads."""
    size = np.abs(theirs).max(1)
    errors = np.abs(ours - theirs).max(1) / size
    best = np.sort(theirs, 1)[:, -2:]
    told_apart = best[:, 1] - best[:, 0] > LOGITS_TIE * size
    other = (ours.argmax(1) != theirs.argmax(1)) & told_apart
    return errors, ~(errors <= bound), other  # NaN is too far


def explained_by_noise(ours, path, mode, tokens):
    for seed in range(1, DRAWS + 1):
        errors, far, other = judge(ours, noisy(path, mode, tokens, seed), BOUNDS[mode])
        if not (far | other).any():
            print(f"{mode}: the reference gives that too with noise {NOISE:.0e}, draw {seed}: "
                  f"largest error {errors.max():.1e}")
            return True
    return False


def compare(path, mode, ids_path, logits_path):
    with open(ids_path) as file:
        tokens = json.load(file)
    ours = np.load(logits_path)
    theirs, gaps = reference(path, mode, tokens)
    if ours.shape != theirs.shape or ours.dtype != np.float32:
        sys.exit(f"{mode}: {ours.dtype} {ours.shape}, expected float32 {theirs.shape}")
    errors, far, other = judge(ours, theirs, BOUNDS[mode])
    counted = gaps > NEAR_TIE
    wrong = far | other
    print(f"{mode}: {len(tokens)} positions, {int(counted.sum())} before the first near tie; "
          f"largest error there {errors[counted].max(initial=0):.1e}, overall {errors.max():.1e}; "
          f"too far {int(far.sum())}, other choice {int(other.sum())}")
    if not wrong.any():
        return
    few = not counted[: len(tokens) // 4].all()
    if not few and not (wrong & counted).any():
        return
    # Noise decides near ties the other way as well, so it tells of both; but in f32 nothing that is
    # stored can flip, and before the first near tie there is no excuse.
    if (mode == "kvq" or not (wrong & counted).any()) and explained_by_noise(
            ours, path, mode, tokens):
        return
    if (wrong & counted).any():
        sys.exit(f"{mode}: position {int((wrong & counted).argmax())} is wrong, the first of "
                 f"{int((wrong & counted).sum())} before the first near tie")
    sys.exit(f"{mode}: cannot be told: fewer than a quarter of the positions lie before the first "
             f"near tie, and position {int(wrong.argmax())} behind it differs; take another seed")


if __name__ == "__main__":
    if sys.argv[1] == "ids":
        ids(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        compare(*sys.argv[2:6])
