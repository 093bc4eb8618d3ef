#!/usr/bin/env python3
# tests/golden/sampling/generate.py
# An implementation of the sampler's definition (src/engine/sampler.h, noise.h) that shares nothing
# with the C++ one: plain Python, no library beyond the standard one, whole vocabularies sorted. It
# writes cases.txt and manifest.json beside itself; the C++ test must give the same tokens.
# Usage: generate.py [--check]   (--check: compares with cases.txt, writes nothing)
import datetime
import hashlib
import json
import math
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
MASK32 = 0xFFFFFFFF
BLOCK = 128
FLOAT_MAX = struct.unpack("f", struct.pack("I", 0x7F7FFFFF))[0]


def f32(x):
    """The nearest float, held within the finite ones."""
    return struct.unpack("f", struct.pack("f", max(-FLOAT_MAX, min(FLOAT_MAX, x))))[0]


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., SC11)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK32, (p0 >> 32) ^ c3 ^ k1, p0 & MASK32
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c0, c1, c2, c3


# Known answers of the Random123 distribution (kat_vectors), so that the base is right by itself.
assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
assert philox((MASK32,) * 4, (MASK32,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)


def exponential(words):
    bits = (words[1] << 32 | words[0]) >> 12
    return -math.log((bits + 0.5) * 2.0**-52)


def time_of(case, token):
    key = (case["seed"] & MASK32, case["seed"] >> 32)
    place = (case["position"], case["sample"])
    block = token // BLOCK
    words = philox((block, *place, 0), key)
    first = exponential(words) / BLOCK
    if block * BLOCK + words[2] % BLOCK == token:
        return first
    return first + exponential(philox((token, *place, 1), key))


def logits_of(case):
    """Logits by a rule both sides can follow exactly: integers of a generator, scaled."""
    state = case["logits_seed"]
    logits = []
    for _ in range(case["vocabulary"]):
        state = (state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        high = state >> 48  # 16 bits
        # Squared so that few are large: (0 to 1)^2 * spread, in steps a float holds exactly.
        logits.append(f32((high * high >> 16) / 65536.0 * case["spread"]))
    return logits


def adjusted(case, logits):
    result = []
    for token, raw in enumerate(logits):
        value = raw
        count = case["generated"].count(token)
        if count or token in case["prompt"]:
            value = value / case["repetition"] if value > 0 else value * case["repetition"]
        if count:
            value = value - case["presence"] - case["frequency"] * count
        value = f32(value)
        for biased, bias in case["bias"]:
            if biased == token:
                value = f32(value + bias)
        result.append(value)
    return result


def weight(d):
    # Multiples of 2^-32; the C++ exp is off by at most 3e-7, which MARGIN below keeps out of reach.
    return round(math.exp(max(d, -745)) * 2**32) * 2.0**-32


MARGIN = 1e-5


def sample(case):
    """The token, and the log-probability of it; fails when a decision is too close to call."""
    logits = logits_of(case)
    values = adjusted(case, logits)
    order = sorted(range(len(values)), key=lambda token: (-values[token], token))
    log_sum = max(logits) + math.log(math.fsum(math.exp(x - max(logits)) for x in logits))
    if case["temperature"] == 0:
        return order[0], logits[order[0]] - log_sum
    top = values[order[0]]
    d = {token: (values[token] - top) / case["temperature"] for token in order}
    if 0 < case["top_k"] < len(order):
        order = order[: case["top_k"]]
    if case["top_p"] < 1:
        total = math.fsum(weight(d[token]) for token in order)
        kept, mass = [], 0.0
        for token in order:
            if mass >= case["top_p"] * total:
                break
            kept.append(token)
            mass += weight(d[token])
            assert abs(mass / total - case["top_p"]) > MARGIN, "top_p is too close to call"
        order = kept
    if case["min_p"] > 0:
        for token in order:
            assert abs(d[token] - math.log(case["min_p"])) > MARGIN, "min_p is too close to call"
        order = [token for token in order if d[token] >= math.log(case["min_p"])]
    scores = sorted(((d[t] - math.log(time_of(case, t)), t) for t in order), reverse=True)
    assert len(scores) < 2 or scores[0][0] - scores[1][0] > 1e-9, "scores are too close to call"
    return scores[0][1], logits[scores[0][1]] - log_sum


def cases():
    base = dict(vocabulary=1000, logits_seed=1, spread=16.0, seed=1, sample=0, position=0,
                temperature=1.0, top_p=1.0, top_k=0, min_p=0.0, presence=0.0, frequency=0.0,
                repetition=1.0, bias=[], prompt=[], generated=[])
    state = 12345

    def pick(options):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
        return options[(state >> 33) % len(options)]

    number = 0
    while number < 400:
        case = dict(base)
        case.update(
            vocabulary=pick([1, 5, 127, 128, 129, 777, 1500]), logits_seed=pick(range(1, 10**6)),
            spread=pick([4.0, 16.0, 32.0]), sample=pick(range(16)), position=pick(range(100000)),
            seed=pick([0, 1, 2**32, 2**63 + 7, 2**64 - 1, 42 + number]),
            temperature=f32(pick([0, 0.25, 0.7, 1, 1.5, 2])),
            top_p=f32(pick([1, 1, 0.95, 0.6, 0.1])),
            top_k=pick([0, 0, 1, 3, 40]), min_p=f32(pick([0, 0, 0.02, 0.3])),
            presence=f32(pick([0, 0, 0.6, -1.5])), frequency=f32(pick([0, 0, 0.3, 2])),
            repetition=f32(pick([1, 1, 1.2, 0.8])))
        size = case["vocabulary"]
        case["prompt"] = [pick(range(size)) for _ in range(pick(range(6)))]
        case["generated"] = [pick(range(min(size, 9))) for _ in range(pick(range(8)))]
        tokens = sorted({pick(range(size)) for _ in range(pick(range(3)))})
        case["bias"] = [(token, f32(pick([-100, -3.5, 4, 100]))) for token in tokens]
        try:
            case["token"], case["logprob"] = sample(case)
        except AssertionError:
            continue  # too close to call: another case
        yield case
        number += 1


FIELDS = ["vocabulary", "logits_seed", "spread", "seed", "sample", "position", "temperature",
          "top_p", "top_k", "min_p", "presence", "frequency", "repetition"]


def line(case):
    def numbers(values):
        return " ".join([str(len(values)), *map(str, values)])

    bias = [str(len(case["bias"]))] + [f"{token} {value!r}" for token, value in case["bias"]]
    parts = [repr(case[field]) for field in FIELDS]
    return " ".join(parts + [numbers(case["prompt"]), numbers(case["generated"]), *bias,
                             str(case["token"]), f"{case['logprob']:.9g}"])


def main():
    text = "# One case a line: " + " ".join(FIELDS) + "; prompt, generated: count, tokens;"
    text += "\n# bias: count, token and value of each;"
    text += " then the expected token and its log-probability.\n"
    text += "\n".join(line(case) for case in cases()) + "\n"
    target = HERE / "cases.txt"
    if "--check" in sys.argv[1:]:
        same = target.read_text() == text
        print("cases.txt agrees" if same else "cases.txt differs")
        return 0 if same else 1
    target.write_text(text)
    manifest = {
        "what": "sampled tokens for fixed logits, parameters and noise keys",
        "tool": "generate.py, an independent implementation in plain Python",
        "version": "Python " + sys.version.split()[0],
        "command": "python3 tests/golden/sampling/generate.py",
        "date": datetime.date.today().isoformat(),
        "cases": text.count("\n") - 2,
        "sha256": {"cases.txt": hashlib.sha256(text.encode()).hexdigest()},
    }
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
