// tensor/cpu/cache_rows-inl.h
// Cache rows, a chunk of 32 values at a time: one group of 32, or two of 16. Primitives:
// row_avx2-inl.h and row_avx512-inl.h. Formulas: docs/numerics_deepseek_v41.md, "Cache rows".

// How RoundToCodes narrows f32. With the last kShift bits rounded away (kUp, and 1 more where what
// remains is odd), what is left of a normal number is its code plus kBias; adding kSubnormalShift
// rounds others to a multiple of the smallest.
struct F8Codes {
  static constexpr int kShift = 20;
  static constexpr int kUp = (1 << 19) - 1;
  static constexpr int kBias = (127 - 7) << 3;
  static constexpr int kSignShift = 24;
  static constexpr float kMax = kE4m3Max;
  static constexpr float kLeastNormal = 0x1p-6f;
  static constexpr float kSubnormalShift = 0x1p14f;
};
struct F4Codes {
  static constexpr int kShift = 22;
  static constexpr int kUp = (1 << 21) - 1;
  static constexpr int kBias = (127 - 1) << 1;
  static constexpr int kSignShift = 28;
  static constexpr float kMax = kE2m1Max;
  static constexpr float kLeastNormal = 1;
  static constexpr float kSubnormalShift = 0x1p22f;
};

// Where a chunk's elements and scales lie in its row.
template <RowFormat kFormat>
struct ChunkLayout {
  static constexpr bool kFourBits = kFormat != RowFormat::kF8Group32;
  static constexpr uint32_t kCodeBytes = kFourBits ? kRowChunk / 2 : kRowChunk;
  static constexpr uint32_t kScaleBytes = kFormat == RowFormat::kF4Group16 ? 2 : 1;
};
template <>
struct ChunkLayout<RowFormat::kF32> {
  static constexpr uint32_t kCodeBytes = 4 * kRowChunk;
  static constexpr uint32_t kScaleBytes = 0;
};

template <RowFormat kFormat>
struct Format {
  static constexpr RowFormat kValue = kFormat;
};

// Calls f with `format` as a compile-time value.
template <typename F>
inline void WithFormat(RowFormat format, const F& f) {
  switch (format) {
    case RowFormat::kF32:
      return f(Format<RowFormat::kF32>());
    case RowFormat::kF8Group32:
      return f(Format<RowFormat::kF8Group32>());
    case RowFormat::kF4Group16:
      return f(Format<RowFormat::kF4Group16>());
    case RowFormat::kF4Group32:
      return f(Format<RowFormat::kF4Group32>());
  }
}

// The group's scale that the chunk's value `i` has.
template <RowFormat kFormat>
inline float ChunkScale(const std::byte* scales, uint32_t i) {
  if constexpr (kFormat == RowFormat::kF4Group16) {
    return kE4m3Values.values[static_cast<uint8_t>(scales[i / 16])];
  }
  return E8m0Value(static_cast<uint8_t>(scales[0]));
}

template <RowFormat kFormat>
inline void DecodeChunk(const std::byte* codes, const std::byte* scales, float* values) {
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kRowChunk; i += kLanes) {
    if constexpr (kFormat == RowFormat::kF32) {
      Store(values + i, Load(reinterpret_cast<const float*>(codes) + i));
    } else if constexpr (kFormat == RowFormat::kF8Group32) {
      Store(values + i, Mul(LoadF8(codes + i), Set(ChunkScale<kFormat>(scales, i))));
    } else {
      Store(values + i, Mul(LoadF4(codes + i / 2), Set(ChunkScale<kFormat>(scales, i))));
    }
  }
}

// The scale of `count` values, as its byte; and what they are multiplied by, 0 where the scale is
// NaN.
template <RowFormat kFormat>
inline uint8_t FindGroupScale(const float* values, uint32_t count, float* inverse) {
  Ints largest = {};
  for (uint32_t i = 0; i < count; i += kLanes) {
    largest = MaxInts(largest, MagnitudeBits(Load(values + i)));
  }
  const uint32_t bits = MaxOfInts(largest);
  *inverse = 0;
  if (bits >= 0x7f800000u) return kFormat == RowFormat::kF4Group16 ? kE4m3Nan : kE8m0Nan;
  float magnitude;
  __builtin_memcpy(&magnitude, &bits, 4);
  constexpr float kLeast = kFormat == RowFormat::kF8Group32   ? kF8GroupLeast
                           : kFormat == RowFormat::kF4Group32 ? kF4Group32Least
                                                              : kF4Group16Least;
  if (magnitude < kLeast) magnitude = kLeast;
  if constexpr (kFormat == RowFormat::kF4Group16) {
    const uint8_t code = E4m3Code(magnitude * kSixth);
    *inverse = 1.0f / kE4m3Values.values[code];
    return code;
  }
  constexpr float kMax = kFormat == RowFormat::kF8Group32 ? kE4m3Max : kE2m1Max;
  const uint8_t code = E8m0Above(magnitude / kMax);
  *inverse = 1.0f / E8m0Value(code);
  return code;
}

template <RowFormat kFormat>
inline void EncodeChunk(const float* values, std::byte* codes, std::byte* scales) {
  using Layout = ChunkLayout<kFormat>;
  if constexpr (kFormat == RowFormat::kF32) {
    for (uint32_t i = 0; i < kRowChunk; i += kLanes) {
      Store(reinterpret_cast<float*>(codes) + i, Load(values + i));
    }
  } else {
    constexpr uint32_t kGroup = kRowChunk / Layout::kScaleBytes;
    for (uint32_t group = 0; group < Layout::kScaleBytes; ++group) {
      float inverse;
      scales[group] = static_cast<std::byte>(
          FindGroupScale<kFormat>(values + group * kGroup, kGroup, &inverse));
      for (uint32_t i = group * kGroup; i < (group + 1) * kGroup; i += kLanes) {
        // What is not finite has the code 0.
        const Floats x = inverse == 0 ? Zero() : Mul(Load(values + i), Set(inverse));
        if constexpr (Layout::kFourBits) {
          StoreF4(codes + i / 2, RoundToCodes<F4Codes>(x));
        } else {
          StoreF8(codes + i, RoundToCodes<F8Codes>(x));
        }
      }
    }
  }
}

void EncodeRow(RowFormat format, const float* values, uint64_t n, std::byte* row) {
  if (format == RowFormat::kF32) {
    __builtin_memcpy(row, values, 4 * n);
    return;
  }
  WithFormat(format, [&](auto tag) {
    using Layout = ChunkLayout<tag.kValue>;
    std::byte* scales = row + n / kRowChunk * Layout::kCodeBytes;
    for (uint64_t chunk = 0; chunk < n / kRowChunk; ++chunk) {
      EncodeChunk<tag.kValue>(values + chunk * kRowChunk, row + chunk * Layout::kCodeBytes,
                              scales + chunk * Layout::kScaleBytes);
    }
  });
}

void DecodeRow(RowFormat format, const std::byte* row, uint64_t n, float* values) {
  if (format == RowFormat::kF32) {
    __builtin_memcpy(values, row, 4 * n);
    return;
  }
  WithFormat(format, [&](auto tag) {
    using Layout = ChunkLayout<tag.kValue>;
    const std::byte* scales = row + n / kRowChunk * Layout::kCodeBytes;
    for (uint64_t chunk = 0; chunk < n / kRowChunk; ++chunk) {
      DecodeChunk<tag.kValue>(row + chunk * Layout::kCodeBytes,
                              scales + chunk * Layout::kScaleBytes, values + chunk * kRowChunk);
    }
  });
}

void RoundRow(RowFormat format, uint64_t n, float* values) {
  if (format == RowFormat::kF32) return;
  WithFormat(format, [&](auto tag) {
    using Layout = ChunkLayout<tag.kValue>;
    std::byte codes[Layout::kCodeBytes];
    std::byte scales[2];
    for (uint64_t first = 0; first < n; first += kRowChunk) {
      EncodeChunk<tag.kValue>(values + first, codes, scales);
      DecodeChunk<tag.kValue>(codes, scales, values + first);
    }
  });
}

void RoundToBf16(uint64_t n, float* values) {
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(values + i, RoundBf16(Load(values + i)));
  if (i == n) return;
  alignas(64) float rest[kLanes] = {};
  __builtin_memcpy(rest, values + i, (n - i) * sizeof(float));
  Store(rest, RoundBf16(Load(rest)));
  __builtin_memcpy(values + i, rest, (n - i) * sizeof(float));
}
