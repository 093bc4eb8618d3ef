// tensor/cpu/panel-inl.h
// From the bytes of a panel to registers: scales, offsets, and quads of quants as 16-bit words.
// Every function is compiled for its type and place, so that shifts and masks are constants. The
// layout: tensor/packed_matrix.h.

constexpr uint32_t kParts = kPanelOutputs / kLanes;  // vectors to a panel

// A group of a panel, and the header of its block.
struct GroupView {
  const std::byte* header;
  const std::byte* bytes;
};

template <DType kType>
inline Floats LoadFloatWeights(const std::byte* p) {
  if constexpr (kType == DType::kF16) return LoadHalfs(p);
  return Load(reinterpret_cast<const float*>(p));
}

// Scales of one vector of outputs; K formats: exact products of two small numbers.
template <DType kType>
inline Floats LoadScales(GroupView group, uint32_t half, uint32_t lane) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  const std::byte* scales = group.bytes + kLayout.scale_offset(half);
  if constexpr (kLayout.exponents) return PowersOfTwo(LoadUint8s(scales + lane));
  if constexpr (!kLayout.factors) return LoadHalfs(scales + 2 * lane);
  const Ints factors = kType == DType::kQ6_K ? LoadInt8s(scales + lane) : LoadUint8s(scales + lane);
  return Mul(LoadHalfs(group.header + 2 * lane), ToFloats(factors));
}

template <DType kType>
inline Floats LoadOffsets(GroupView group, uint32_t lane) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  const std::byte* offsets = group.bytes + kLayout.offset_offset();
  if constexpr (!kLayout.factors) return LoadHalfs(offsets + 2 * lane);
  return Mul(LoadHalfs(group.header + 2 * (kPanelOutputs + lane)),
             ToFloats(LoadUint8s(offsets + lane)));
}

// The unsigned quants of one quad and one vector of outputs, as 16-bit words.
struct QuadWords {
  Ints even;  // inputs 0 and 2
  Ints odd;   // inputs 1 and 3
};

// Of up to 8 bits: a byte each, then split.
template <DType kType, uint32_t kQuad>
inline Ints LoadQuadBytes(const std::byte* group, uint32_t lane) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  if constexpr (kLayout.low_bits == 8) return LoadBytes(group + 64 * kQuad + 4 * lane);
  const Ints both = LoadBytes(group + 64 * (kQuad / 2) + 4 * lane);
  const Ints low = AndBytes<15>(ShiftRight<4 * (kQuad % 2)>(both));
  if constexpr (kLayout.high_bits == 0) return low;
  constexpr uint32_t kBits = kLayout.high_bits == 0 ? 1 : kLayout.high_bits;
  constexpr uint32_t kQuads = 8 / kBits;  // that share 64 bytes
  constexpr uint32_t kAt = kQuad % kQuads * kBits;
  const Ints high = LoadBytes(group + kLayout.high_offset() + 64 * (kQuad / kQuads) + 4 * lane);
  constexpr uint8_t kMask = kBits == 1 ? 0x10 : 0x30;
  if constexpr (kAt < 4) return Or(low, AndBytes<kMask>(ShiftLeft<4 - kAt>(high)));
  return Or(low, AndBytes<kMask>(ShiftRight<kAt - 4>(high)));
}

template <DType kType, uint32_t kQuad>
inline QuadWords LoadQuad(const std::byte* group, uint32_t lane) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  const Ints bytes = LoadQuadBytes<kType, kQuad>(group, lane);
  const QuadWords low = {AndWords<0xff>(bytes), ShiftRight<8>(bytes)};
  if constexpr (kLayout.high_bits != 4) return low;
  const Ints high = LoadBytes(group + kLayout.high_offset() + 64 * (kQuad / 2) + 4 * lane);
  constexpr uint32_t kAt = kQuad % 2 * 4;
  return {Or(low.even, AndWords<0xf00>(ShiftLeft<8 - kAt>(high))),
          Or(low.odd, AndWords<0xf00>(ShiftRight<kAt>(high)))};
}
