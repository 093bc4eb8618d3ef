// tensor/cpu/panel-inl.h
// From the bytes of a panel to registers: scales, offsets, and quads of quants as 16-bit words.
// Every function is compiled for its type and place, so that shifts and masks are constants. The
// layout: tensor/packed_matrix.h.

constexpr uint32_t kParts = kPanelOutputs / kLanes;  // vectors to a panel

template <DType kType>
inline Floats LoadFloatWeights(const std::byte* p) {
  if constexpr (kType == DType::kF16) return LoadHalfs(p);
  return Load(reinterpret_cast<const float*>(p));
}

// The quants of one quad and one vector of outputs, as 16-bit words.
struct QuadWords {
  Ints even;  // inputs 0 and 2
  Ints odd;   // inputs 1 and 3
};

// A group as it lies in a panel. Words: unsigned, so the zero point is still in them.
template <DType kType>
struct PackedGroup {
  static constexpr PanelLayout kLayout = LayoutOf(kType);
  static constexpr uint32_t kZeroPoint = kLayout.zero_point;
  const std::byte* header;  // of its block
  const std::byte* bytes;

  // Of up to 8 bits: a byte each.
  template <uint32_t kQuad>
  Ints QuadBytes(uint32_t lane) const {
    if constexpr (kLayout.low_bits == 8) return LoadBytes(bytes + 64 * kQuad + 4 * lane);
    const Ints both = LoadBytes(bytes + 64 * (kQuad / 2) + 4 * lane);
    const Ints low = AndBytes<15>(ShiftRight<4 * (kQuad % 2)>(both));
    if constexpr (kLayout.high_bits == 0) return low;
    constexpr uint32_t kBits = kLayout.high_bits == 0 ? 1 : kLayout.high_bits;
    constexpr uint32_t kQuads = 8 / kBits;  // that share 64 bytes
    constexpr uint32_t kAt = kQuad % kQuads * kBits;
    const Ints high = LoadBytes(bytes + kLayout.high_offset() + 64 * (kQuad / kQuads) + 4 * lane);
    constexpr uint8_t kMask = kBits == 1 ? 0x10 : 0x30;
    if constexpr (kAt < 4) return Or(low, AndBytes<kMask>(ShiftLeft<4 - kAt>(high)));
    return Or(low, AndBytes<kMask>(ShiftRight<kAt - 4>(high)));
  }

  template <uint32_t kQuad>
  QuadWords Words(uint32_t lane) const {
    const Ints quad = QuadBytes<kQuad>(lane);
    const QuadWords low = {AndWords<0xff>(quad), ShiftRight<8>(quad)};
    if constexpr (kLayout.high_bits != 4) return low;
    const Ints high = LoadBytes(bytes + kLayout.high_offset() + 64 * (kQuad / 2) + 4 * lane);
    constexpr uint32_t kAt = kQuad % 2 * 4;
    return {Or(low.even, AndWords<0xf00>(ShiftLeft<8 - kAt>(high))),
            Or(low.odd, AndWords<0xf00>(ShiftRight<kAt>(high)))};
  }

  // K formats: exact products of two small numbers.
  Floats Scales(uint32_t half, uint32_t lane) const {
    const std::byte* scales = bytes + kLayout.scale_offset(half);
    if constexpr (kLayout.exponents) return PowersOfTwo(LoadUint8s(scales + lane));
    if constexpr (!kLayout.factors) return LoadHalfs(scales + 2 * lane);
    const Ints factors =
        kType == DType::kQ6_K ? LoadInt8s(scales + lane) : LoadUint8s(scales + lane);
    return Mul(LoadHalfs(header + 2 * lane), ToFloats(factors));
  }
  Floats Offsets(uint32_t lane) const {
    const std::byte* offsets = bytes + kLayout.offset_offset();
    if constexpr (!kLayout.factors) return LoadHalfs(offsets + 2 * lane);
    return Mul(LoadHalfs(header + 2 * (kPanelOutputs + lane)),
               ToFloats(LoadUint8s(offsets + lane)));
  }
};

// A group unpacked once for many rows: words of [8 quads][even, odd][16 lanes], the zero point
// taken off, then scales [2 halves][16 lanes] and offsets [16 lanes] as f32.
template <DType kType>
struct ExpandedGroup {
  static constexpr PanelLayout kLayout = LayoutOf(kType);
  static constexpr uint32_t kZeroPoint = 0;
  static constexpr uint32_t kWordBytes = 8 * 2 * 64;
  static constexpr uint32_t kBytes = kWordBytes + 3 * 64;
  const std::byte* bytes;

  template <uint32_t kQuad>
  QuadWords Words(uint32_t lane) const {
    return {LoadBytes(bytes + 128 * kQuad + 4 * lane),
            LoadBytes(bytes + 128 * kQuad + 64 + 4 * lane)};
  }
  Floats Scales(uint32_t half, uint32_t lane) const {
    return Load(reinterpret_cast<const float*>(bytes + kWordBytes + 64 * half) + lane);
  }
  Floats Offsets(uint32_t lane) const {
    return Load(reinterpret_cast<const float*>(bytes + kWordBytes + 128) + lane);
  }
};

template <DType kType, uint32_t kQuad>
inline void ExpandQuads(PackedGroup<kType> group, uint32_t lane, std::byte* out) {
  const QuadWords words = group.template Words<kQuad>(lane);
  StoreBytes(out + 128 * kQuad + 4 * lane, SubWords<LayoutOf(kType).zero_point>(words.even));
  StoreBytes(out + 128 * kQuad + 64 + 4 * lane, SubWords<LayoutOf(kType).zero_point>(words.odd));
  if constexpr (kQuad < 7) ExpandQuads<kType, kQuad + 1>(group, lane, out);
}

template <DType kType>
inline void ExpandGroup(PackedGroup<kType> group, std::byte* out) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  auto* scales = reinterpret_cast<float*>(out + ExpandedGroup<kType>::kWordBytes);
  for (uint32_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
    ExpandQuads<kType, 0>(group, lane, out);
    Store(scales + lane, group.Scales(0, lane));
    if constexpr (kLayout.scales == 2) Store(scales + 16 + lane, group.Scales(1, lane));
    if constexpr (kLayout.offsets) Store(scales + 32 + lane, group.Offsets(lane));
  }
}
