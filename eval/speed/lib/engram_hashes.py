"""eval/speed/lib/engram_hashes.py
The n-gram tables of DeepSeek-V4.1 as its makers made them: how many rows a table has (a prime for
each head of each n-gram), and the factors of its hashes, which NumPy's generator gives. Twin in
C++: src/model/families/engram.cc, numpy_integers.cc.
"""
import math


def is_prime(n):
    return n > 1 and all(n % i for i in range(2, math.isqrt(n) + 1))


def engram_primes(shape):
    """Of each table, one for each head of each n-gram, ascending over all."""
    candidate = shape["engram_vocab_size"]
    tables = []
    for _ in shape["engram_layer_ids"]:
        primes = []
        while len(primes) < (shape["engram_max_ngram_size"] - 1) * shape["engram_n_heads"]:
            if is_prime(candidate):
                primes.append(candidate)
            candidate += 1
        tables.append(primes)
    return tables


def numpy_integers(seed, bound, count):
    """What numpy.random.default_rng(seed).integers(bound, size=count) gives for bound > 2^32."""
    word, wide = (1 << 32) - 1, (1 << 128) - 1

    def hasher(constant, factor):
        def mix(value):
            nonlocal constant
            value ^= constant
            constant = constant * factor & word
            value = value * constant & word
            return value ^ value >> 16
        return mix

    hashed = hasher(0x43b0d7e5, 0x931e8875)
    pool = [hashed(value) for value in (seed & word, seed >> 32, 0, 0)]
    for source in range(4):
        for to in range(4):
            if source != to:
                mixed = (pool[to] * 0xca01f9dd - hashed(pool[source]) * 0x4973f715) & word
                pool[to] = mixed ^ mixed >> 16
    hashed = hasher(0x8b51f9dd, 0x58f38ded)
    words = [hashed(pool[i % 4]) for i in range(8)]
    state, increment = (sum(words[at + i] << 64 * (1 - i // 2) + 32 * (i % 2) for i in range(4))
                        for at in (0, 4))
    increment = (increment << 1 | 1) & wide

    def step(value):
        return (value * 0x2360ed051fc65da44385df649fccf645 + increment) & wide

    state = step((step(0) + state) & wide)
    found = []
    while len(found) < count:
        state = step(state)
        folded = (state >> 64 ^ state) & ((1 << 64) - 1)
        turn = state >> 122
        product = ((folded >> turn | folded << (64 - turn)) & ((1 << 64) - 1)) * bound
        if product & ((1 << 64) - 1) >= (1 << 64) % bound:
            found.append(product >> 64)
    return found


def engram_factors(shape):
    bound = max(1, (2**63 - 1) // shape["engram_compressed_vocab_size"] // 2)
    return [[2 * value + 1 for value in numpy_integers(10007 * layer, bound,
                                                      shape["engram_max_ngram_size"])]
            for layer in shape["engram_layer_ids"]]
