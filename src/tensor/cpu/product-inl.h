// tensor/cpu/product-inl.h
// Matrix products over panels. One tile = one panel (16 outputs) times up to kTileRowsMax rows:
// weights are read and unpacked once for all of them, and each (row, output) has its own
// accumulator that walks the inputs in order, so rows cannot influence each other. Order and
// roundings: docs/numerics.md.

// Adds one quad of inputs to the dots of every row.
template <DType kType, int kRows, uint32_t kQuad>
inline void AddQuad(Ints (*dots)[kParts], const std::byte* group, const int16_t* inputs) {
  Ints even[kParts];  // inputs 0 and 2 of the quad
  Ints odd[kParts];   // inputs 1 and 3
#pragma GCC unroll 2
  for (uint32_t v = 0; v < kParts; ++v) {
    const QuadWords words = LoadQuad<kType, kQuad>(group, v * kLanes);
    even[v] = words.even;
    odd[v] = words.odd;
  }
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    AddDots(dots[row], even, inputs + 32 * row + 4 * kQuad);
    AddDots(dots[row], odd, inputs + 32 * row + 4 * kQuad + 2);
  }
}

// kQuads quads from kFirst on, each compiled for its place.
template <DType kType, int kRows, uint32_t kFirst, uint32_t kQuads>
inline void AddQuads(Ints (*dots)[kParts], const std::byte* group, const int16_t* inputs) {
  AddQuad<kType, kRows, kFirst>(dots, group, inputs);
  if constexpr (kQuads > 1) AddQuads<kType, kRows, kFirst + 1, kQuads - 1>(dots, group, inputs);
}

// Where a tile's sums live: in registers when there are enough, else in the caller's memory.
template <int kRows, bool kInRegisters>
struct TileSums {
  Floats at[kRows][kParts];
  explicit TileSums(float* /*memory*/) {
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (uint32_t v = 0; v < kParts; ++v) at[row][v] = Zero();
    }
  }
  Floats Get(int row, uint32_t v) const { return at[row][v]; }
  void Put(int row, uint32_t v, Floats sum) { at[row][v] = sum; }
  void StoreTo(float* memory) const {
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (uint32_t v = 0; v < kParts; ++v) {
        Store(memory + row * kPanelOutputs + v * kLanes, at[row][v]);
      }
    }
  }
};
template <int kRows>
struct TileSums<kRows, false> {
  float* memory;
  explicit TileSums(float* place) : memory(place) {
    __builtin_memset(memory, 0, kRows * kPanelOutputs * sizeof(float));
  }
  Floats Get(int row, uint32_t v) const { return Load(memory + row * kPanelOutputs + v * kLanes); }
  void Put(int row, uint32_t v, Floats sum) {
    Store(memory + row * kPanelOutputs + v * kLanes, sum);
  }
  void StoreTo(float* /*memory*/) const {}
};

// The inputs of a group that share a scale: all, or half kHalf of it.
template <DType kType, int kRows, uint32_t kHalf, typename Sums>
inline void AddScaledDots(Sums& sums, GroupView group, const int16_t* inputs,
                          const ActivationGroup* groups) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  constexpr uint32_t kQuads = 8 / kLayout.scales;
  Ints dots[kRows][kParts];
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    const int32_t* minus8 =
        kLayout.scales == 2 ? &groups[row].minus8_half[kHalf] : &groups[row].minus8_sum;
#pragma GCC unroll 2
    for (uint32_t v = 0; v < kParts; ++v) dots[row][v] = StartDot<kLayout.zero_point>(minus8);
  }
  AddQuads<kType, kRows, kHalf * kQuads, kQuads>(dots, group.bytes, inputs);
#pragma GCC unroll 2
  for (uint32_t v = 0; v < kParts; ++v) {
    const Floats scales = LoadScales<kType>(group, kHalf, v * kLanes);
    Floats offsets = Zero();
    if constexpr (kLayout.offsets) offsets = LoadOffsets<kType>(group, v * kLanes);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      Floats sum = Fma(ToFloats(dots[row][v]), scales, sums.Get(row, v));
      if constexpr (kLayout.offsets) sum = Fma(Set(groups[row].sum), offsets, sum);
      sums.Put(row, v, sum);
    }
  }
}

template <DType kType, int kRows, typename Sums>
inline void AddGroup(Sums& sums, GroupView group, const int16_t* inputs,
                     const ActivationGroup* groups) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  AddScaledDots<kType, kRows, 0>(sums, group, inputs, groups);
  if constexpr (kLayout.scales == 2) AddScaledDots<kType, kRows, 1>(sums, group, inputs, groups);
}

// A tile of the task: `panel` times rows [row, row + kRows), into sums[kRows][16].
template <DType kType, int kRows>
void QuantTile(const ProductTask& task, const std::byte* panel, uint32_t row, float* sums_out) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  const uint32_t inputs = task.matrix->inputs();
  const uint32_t blocks = inputs / (kGroupInputs * kLayout.groups());
  const uint32_t tile = row / kTileRows * kTileRows;
  const uint32_t tile_rows = task.rows - tile < kTileRows ? task.rows - tile : kTileRows;
  const int16_t* quants = task.quants + size_t{tile} * inputs + kGroupInputs * (row - tile);
  const ActivationGroup* groups =
      task.groups + size_t{tile} * (inputs / kGroupInputs) + (row - tile);
  TileSums<kRows, kRows * kParts <= kSumsInRegisters> sums(sums_out);
  const std::byte* block = panel;
  for (uint32_t b = 0; b < blocks; ++b) {
    const std::byte* group = block + kLayout.header_bytes();
    for (uint32_t g = 0; g < kLayout.groups(); ++g) {
      AddGroup<kType, kRows>(sums, {block, group}, quants, groups);
      group += kLayout.group_bytes();
      quants += 32 * tile_rows;
      groups += tile_rows;
    }
    block += kLayout.block_bytes();
  }
  sums.StoreTo(sums_out);
}

template <DType kType, int kRows>
void FloatTile(const ProductTask& task, const std::byte* panel, uint32_t row, float* sums_out) {
  constexpr uint32_t kElementBytes = kType == DType::kF32 ? 4 : 2;
  const uint32_t inputs = task.matrix->inputs();
  const float* x = task.x + size_t{row} * inputs;
  Floats sums[kRows][kParts];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (uint32_t part = 0; part < kParts; ++part) sums[r][part] = Zero();
  }
  for (uint32_t i = 0; i < inputs; ++i) {
    Floats weights[kParts];
#pragma GCC unroll 2
    for (uint32_t part = 0; part < kParts; ++part) {
      weights[part] = LoadFloatWeights<kType>(panel + part * kLanes * kElementBytes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Floats input = Set(x[size_t(r) * inputs + i]);
#pragma GCC unroll 2
      for (uint32_t part = 0; part < kParts; ++part) {
        sums[r][part] = Fma(input, weights[part], sums[r][part]);
      }
    }
    panel += kPanelOutputs * kElementBytes;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (uint32_t part = 0; part < kParts; ++part) {
      Store(sums_out + r * kPanelOutputs + part * kLanes, sums[r][part]);
    }
  }
}

template <DType kType, int kRows>
inline void Tile(const ProductTask& task, const std::byte* panel, uint32_t row, float* sums) {
  if constexpr (LayoutOf(kType).quantized()) {
    QuantTile<kType, kRows>(task, panel, row, sums);
  } else {
    FloatTile<kType, kRows>(task, panel, row, sums);
  }
}

template <DType kType>
void TileOf(uint32_t rows, const ProductTask& task, const std::byte* panel, uint32_t row,
            float* sums) {
  if constexpr (kTileRowsMax > 4) {
    switch (rows) {
      case 5:
        return Tile<kType, 5>(task, panel, row, sums);
      case 6:
        return Tile<kType, 6>(task, panel, row, sums);
      case 7:
        return Tile<kType, 7>(task, panel, row, sums);
      case 8:
        return Tile<kType, 8>(task, panel, row, sums);
      default:
        break;
    }
  }
  switch (rows) {
    case 1:
      return Tile<kType, 1>(task, panel, row, sums);
    case 2:
      return Tile<kType, 2>(task, panel, row, sums);
    case 3:
      return Tile<kType, 3>(task, panel, row, sums);
    default:
      return Tile<kType, 4>(task, panel, row, sums);
  }
}

// out = sums (* scale) (+ bias) (+ out), for the outputs that exist.
template <bool kScaled>
inline void FinishTile(const ProductTask& task, uint32_t panel, uint32_t row, uint32_t rows,
                       const float* sums) {
  const uint32_t outputs = task.matrix->outputs();
  const uint32_t first = panel * kPanelOutputs;
  const uint32_t lanes = outputs - first < kPanelOutputs ? outputs - first : kPanelOutputs;
  for (uint32_t r = 0; r < rows; ++r) {
    const float scale = kScaled ? task.scales[row + r] : 1.0f;
    float* out = task.out + size_t{row + r} * outputs + first;
    const float* tile = sums + r * kPanelOutputs;
    if (lanes == kPanelOutputs) {
#pragma GCC unroll 2
      for (uint32_t at = 0; at < kPanelOutputs; at += kLanes) {
        Floats value = Load(tile + at);
        if constexpr (kScaled) value = Mul(value, Set(scale));
        if (task.bias != nullptr) value = Add(value, Load(task.bias + first + at));
        if (task.add) value = Add(Load(out + at), value);
        Store(out + at, value);
      }
      continue;
    }
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      float value = kScaled ? tile[lane] * scale : tile[lane];
      if (task.bias != nullptr) value = value + task.bias[first + lane];
      if (task.add) value = out[lane] + value;
      out[lane] = value;
    }
  }
}

template <DType kType>
void MultiplyAs(const ProductTask& task) {
  alignas(64) float sums[kTileRowsMax * kPanelOutputs];
  for (uint32_t panel = task.panel_begin; panel < task.panel_end; ++panel) {
    const std::byte* weights = task.matrix->panel(panel);
    for (uint32_t row = task.row_begin; row < task.row_end;) {
      // Never across an activation tile, since kTileRowsMax divides kTileRows.
      const uint32_t left = task.row_end - row;
      const uint32_t rows = left < kTileRowsMax ? left : kTileRowsMax;
      TileOf<kType>(rows, task, weights, row, sums);
      FinishTile<LayoutOf(kType).quantized()>(task, panel, row, rows, sums);
      row += rows;
    }
  }
}

void Multiply(const ProductTask& task) {
  switch (task.matrix->dtype()) {
    case DType::kF32:
      return MultiplyAs<DType::kF32>(task);
    case DType::kF16:
      return MultiplyAs<DType::kF16>(task);
    case DType::kBF16:
      return MultiplyAs<DType::kBF16>(task);
    case DType::kQ4_0:
      return MultiplyAs<DType::kQ4_0>(task);
    case DType::kQ4_1:
      return MultiplyAs<DType::kQ4_1>(task);
    case DType::kQ5_0:
      return MultiplyAs<DType::kQ5_0>(task);
    case DType::kQ5_1:
      return MultiplyAs<DType::kQ5_1>(task);
    case DType::kQ8_0:
      return MultiplyAs<DType::kQ8_0>(task);
    case DType::kQ4_K:
      return MultiplyAs<DType::kQ4_K>(task);
    case DType::kQ5_K:
      return MultiplyAs<DType::kQ5_K>(task);
    case DType::kQ6_K:
      return MultiplyAs<DType::kQ6_K>(task);
  }
}
