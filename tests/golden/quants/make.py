#!/usr/bin/env python3
"""Golden values of GGUF block formats, by the independent numpy code of the package `gguf`.

Usage: pip install -r requirements.txt && ./make.py > ../../../src/tensor/testdata/quant_golden.h
Random bytes with sane scales, so that every bit of every block decides some value.
"""
import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

# Type, and where its f16 scale fields stand in a block.
TYPES = [
    (T.Q4_0, [0]), (T.Q4_1, [0, 2]), (T.Q5_0, [0]), (T.Q5_1, [0, 2]), (T.Q8_0, [0]),
    (T.Q4_K, [0, 2]), (T.Q5_K, [0, 2]), (T.Q6_K, [208]),
]


def lines(items, per_line):
    for i in range(0, len(items), per_line):
        print("    " + ", ".join(items[i:i + per_line]) + ",")


def main():
    rng = np.random.default_rng(20240501)
    print("// tensor/testdata/quant_golden.h: made by tests/golden/quants/make.py; do not edit.")
    print("// A block of random bytes of each format, and the bits of the f32 values that the "
          "Python\n// package `gguf` dequantises it to.")
    print("// clang-format off\n#pragma once\n\n#include <cstdint>\n#include <span>\n")
    print("#include \"tensor/dtype.h\"\n")
    print("namespace plumb::tensor::golden {\n")
    for dtype, scales in TYPES:
        _, size = GGML_QUANT_SIZES[dtype]
        block = rng.integers(0, 256, size=size, dtype=np.uint8)
        for at in scales:
            scale = np.float16(rng.uniform(0.001, 0.02) * rng.choice([-1, 1]))
            block[at:at + 2] = np.frombuffer(scale.tobytes(), dtype=np.uint8)
        values = quants.dequantize(block.reshape(1, -1), dtype).reshape(-1).astype(np.float32)
        print(f"inline constexpr uint8_t k{dtype.name}Bytes[] = {{")
        lines([str(b) for b in block], 19)
        print("};")
        print(f"inline constexpr uint32_t k{dtype.name}Values[] = {{")
        lines([f"0x{b:08x}" for b in values.view(np.uint32)], 8)
        print("};\n")
    print("struct Case {\n  DType dtype;\n  std::span<const uint8_t> block;\n"
          "  std::span<const uint32_t> values;\n};")
    print("inline constexpr Case kCases[] = {")
    for dtype, _ in TYPES:
        print(f"    {{DType::k{dtype.name}, k{dtype.name}Bytes, k{dtype.name}Values}},")
    print("};\n\n}  // namespace plumb::tensor::golden")


main()
