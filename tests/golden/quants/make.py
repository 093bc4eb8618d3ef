#!/usr/bin/env python3
"""Golden values of GGUF block formats, by the independent numpy code of the package `gguf`.

Usage: pip install -r requirements.txt && ./make.py > ../../../src/tensor/testdata/quant_golden.h
Random bytes with sane scales, so that every bit of every block decides some value.
"""
import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

# Type, where its f16 scale fields stand in a block, blocks.
TYPES = [
    (T.Q4_0, [0], 2), (T.Q4_1, [0, 2], 2), (T.Q5_0, [0], 2), (T.Q5_1, [0, 2], 2), (T.Q8_0, [0], 2),
    (T.Q4_K, [0, 2], 2), (T.Q5_K, [0, 2], 2), (T.Q6_K, [208], 2),
]


def lines(items, per_line):
    for i in range(0, len(items), per_line):
        print("    " + ", ".join(items[i:i + per_line]) + ",")


def main():
    rng = np.random.default_rng(20240501)
    print("// tensor/testdata/quant_golden.h: made by tests/golden/quants/make.py; do not edit.")
    print("// clang-format off")
    print("// Blocks of random bytes and what the Python package `gguf` dequantises them to.")
    print("#pragma once\n\n#include <cstdint>\n#include <span>\n\n#include \"tensor/dtype.h\"\n")
    print("namespace plumb::tensor::golden {\n")
    for dtype, scales, blocks in TYPES:
        _, size = GGML_QUANT_SIZES[dtype]
        data = rng.integers(0, 256, size=(blocks, size), dtype=np.uint8)
        for block in data:
            for at in scales:
                scale = np.float16(rng.uniform(0.001, 0.02) * rng.choice([-1, 1]))
                block[at:at + 2] = np.frombuffer(scale.tobytes(), dtype=np.uint8)
        values = quants.dequantize(data.reshape(1, -1), dtype).reshape(-1).astype(np.float32)
        print(f"inline constexpr uint8_t k{dtype.name}Bytes[] = {{")
        lines([str(b) for b in data.reshape(-1)], 18)
        print("};")
        print(f"inline constexpr float k{dtype.name}Values[] = {{")
        lines([f"{float(v)!r}f" if "." in repr(float(v)) or "e" in repr(float(v))
               else f"{float(v)!r}.0f" for v in values.astype(np.float64)], 4)
        print("};\n")
    print("struct Case {\n  DType dtype;\n  std::span<const uint8_t> bytes;\n"
          "  std::span<const float> values;\n};")
    print("inline constexpr Case kCases[] = {")
    for dtype, _, _ in TYPES:
        print(f"    {{DType::k{dtype.name}, k{dtype.name}Bytes, k{dtype.name}Values}},")
    print("};\n\n}  // namespace plumb::tensor::golden")


main()
