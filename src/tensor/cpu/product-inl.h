// tensor/cpu/product-inl.h
// Matrix products over panels. One tile = one panel (16 outputs) times up to kTileRowsMax rows:
// weights are read and unpacked once for all of them, and each (row, output) has its own
// accumulator that walks the inputs in order, so rows cannot influence each other. Order and
// roundings: docs/numerics.md.

constexpr uint32_t kParts = kPanelOutputs / kLanes;  // vectors to a panel

template <DType kType>
inline Floats LoadScales(const std::byte* p) {
  if constexpr (LayoutOf(kType).scale_bytes == 2) return LoadHalfs(p);
  return Load(reinterpret_cast<const float*>(p));
}

template <DType kType>
inline Floats LoadFloatWeights(const std::byte* p) {
  if constexpr (kType == DType::kF16) return LoadHalfs(p);
  if constexpr (kType == DType::kBF16) return LoadBFloats(p);
  return Load(reinterpret_cast<const float*>(p));
}

// Adds one quad of inputs to every row's dot. Input: int8_t or int16_t, the activations.
template <DType kType, int kRows, typename Input>
inline void AddQuad(Dot<kType, Input>* dots, Ints quants, const Input* inputs, uint32_t quads) {
  const Weights<kType, Input> weights(quants);
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) dots[row].Add(weights, inputs + 32 * row, quads);
}

// kQuads quads (8 = a group, 4 = a half) from `first` on, of one vector of outputs.
template <DType kType, int kRows, uint32_t kFirst, uint32_t kQuads, typename Input>
inline void AddQuads(Dot<kType, Input>* dots, const std::byte* quants, const Input* inputs) {
  if constexpr (LayoutOf(kType).quant_bytes == 256) {
#pragma GCC unroll 4
    for (uint32_t pair = 0; pair < kQuads / 2; ++pair) {
      const Ints both = LoadBytes(quants + 64 * pair);
      AddQuad<kType, kRows>(dots, LowNibbles(both), inputs + 8 * pair, 2 * pair);
      AddQuad<kType, kRows>(dots, HighNibbles(both), inputs + 8 * pair + 4, 2 * pair + 1);
    }
  } else {
#pragma GCC unroll 8
    for (uint32_t quad = 0; quad < kQuads; ++quad) {
      AddQuad<kType, kRows>(dots, LoadBytes(quants + 64 * (kFirst + quad)),
                            inputs + 4 * (kFirst + quad), quad);
    }
  }
}

// sums[row] = fma(dot, scale * activation scale, sums[row]).
template <DType kType, int kRows, typename Input>
inline void AddScaled(Floats* sums, const Dot<kType, Input>* dots, Floats scales,
                      const ActivationGroup* groups) {
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    sums[row] = Fma(ToFloats(dots[row].Total()), Mul(scales, Set(groups[row].scale)), sums[row]);
  }
}

// One group of inputs of one vector of outputs (at byte 4 * lane of each quad, lane of each scale).
template <DType kType, int kRows, typename Input>
inline void AddGroup(Floats* sums, const std::byte* group, uint32_t lane, const Input* inputs,
                     const ActivationGroup* groups) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  const std::byte* quants = group + 4 * lane;
  const std::byte* scales = group + kLayout.scale_bytes * lane;
  Dot<kType, Input> dots[kRows];
  if constexpr (kLayout.scales == 2) {
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) dots[row].Start(groups[row].minus8_first);
    AddQuads<kType, kRows, 0, 4>(dots, quants, inputs);
    AddScaled<kType, kRows>(sums, dots, LoadScales<kType>(scales + kLayout.scale_offset(0)),
                            groups);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      dots[row].Start(groups[row].minus8_sum - groups[row].minus8_first);
    }
    AddQuads<kType, kRows, 4, 4>(dots, quants, inputs);
    AddScaled<kType, kRows>(sums, dots, LoadScales<kType>(scales + kLayout.scale_offset(1)),
                            groups);
  } else {
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) dots[row].Start(groups[row].minus8_sum);
    AddQuads<kType, kRows, 0, 8>(dots, quants, inputs);
    AddScaled<kType, kRows>(sums, dots, LoadScales<kType>(scales + kLayout.scale_offset(0)),
                            groups);
  }
  if constexpr (kLayout.offsets) {
    const Floats offsets = LoadScales<kType>(scales + kLayout.offset_offset());
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      sums[row] = Fma(offsets, Set(groups[row].scaled_sum), sums[row]);
    }
  }
}

// A tile of the task: `panel` times rows [row, row + kRows), into sums[kRows][16].
template <DType kType, typename Input, int kRows>
void QuantTile(const ProductTask& task, const std::byte* panel, uint32_t row, float* sums_out) {
  const uint32_t inputs = task.matrix->inputs();
  const uint32_t group_count = inputs / kGroupInputs;
  const uint32_t tile = row / kTileRows * kTileRows;
  const uint32_t tile_rows = task.rows - tile < kTileRows ? task.rows - tile : kTileRows;
  const auto* quants = reinterpret_cast<const Input*>(task.quants) + size_t{tile} * inputs +
                       kGroupInputs * (row - tile);
  const ActivationGroup* groups = task.groups + size_t{tile} * group_count + (row - tile);
  // Few rows: all vectors of the panel in one pass. Many: one pass each, to keep sums in registers.
  constexpr uint32_t kTogether = kRows <= 2 ? kParts : 1;
  for (uint32_t first = 0; first < kParts; first += kTogether) {
    Floats sums[kTogether][kRows];
#pragma GCC unroll 2
    for (uint32_t part = 0; part < kTogether; ++part) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[part][r] = Zero();
    }
    const std::byte* weights = panel;
    const Input* group_quants = quants;
    const ActivationGroup* group_info = groups;
    for (uint32_t g = 0; g < group_count; ++g) {
#pragma GCC unroll 2
      for (uint32_t part = 0; part < kTogether; ++part) {
        AddGroup<kType, kRows>(sums[part], weights, (first + part) * kLanes, group_quants,
                               group_info);
      }
      weights += LayoutOf(kType).group_bytes();
      group_quants += 32 * tile_rows;
      group_info += tile_rows;
    }
#pragma GCC unroll 2
    for (uint32_t part = 0; part < kTogether; ++part) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        Store(sums_out + r * kPanelOutputs + (first + part) * kLanes, sums[part][r]);
      }
    }
  }
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

template <DType kType, typename Input, int kRows>
inline void Tile(const ProductTask& task, const std::byte* panel, uint32_t row, float* sums) {
  if constexpr (LayoutOf(kType).quant_bytes == 0) {
    FloatTile<kType, kRows>(task, panel, row, sums);
  } else {
    QuantTile<kType, Input, kRows>(task, panel, row, sums);
  }
}

template <DType kType, typename Input>
void TileOf(uint32_t rows, const ProductTask& task, const std::byte* panel, uint32_t row,
            float* sums) {
  if constexpr (kTileRowsMax > 4) {
    switch (rows) {
      case 5:
        return Tile<kType, Input, 5>(task, panel, row, sums);
      case 6:
        return Tile<kType, Input, 6>(task, panel, row, sums);
      case 7:
        return Tile<kType, Input, 7>(task, panel, row, sums);
      case 8:
        return Tile<kType, Input, 8>(task, panel, row, sums);
      default:
        break;
    }
  }
  switch (rows) {
    case 1:
      return Tile<kType, Input, 1>(task, panel, row, sums);
    case 2:
      return Tile<kType, Input, 2>(task, panel, row, sums);
    case 3:
      return Tile<kType, Input, 3>(task, panel, row, sums);
    default:
      return Tile<kType, Input, 4>(task, panel, row, sums);
  }
}

// out = sums (+ bias) (+ out), for the outputs that exist.
inline void FinishTile(const ProductTask& task, uint32_t panel, uint32_t row, uint32_t rows,
                       const float* sums) {
  const uint32_t outputs = task.matrix->outputs();
  const uint32_t first = panel * kPanelOutputs;
  const uint32_t lanes = outputs - first < kPanelOutputs ? outputs - first : kPanelOutputs;
  for (uint32_t r = 0; r < rows; ++r) {
    float* out = task.out + size_t{row + r} * outputs + first;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      float value = sums[r * kPanelOutputs + lane];
      if (task.bias != nullptr) value = value + task.bias[first + lane];
      if (task.add) value = out[lane] + value;
      out[lane] = value;
    }
  }
}

template <DType kType, typename Input>
void MultiplyWith(const ProductTask& task) {
  alignas(64) float sums[kTileRowsMax * kPanelOutputs];
  for (uint32_t panel = task.panel_begin; panel < task.panel_end; ++panel) {
    const std::byte* weights = task.matrix->panel(panel);
    for (uint32_t row = task.row_begin; row < task.row_end;) {
      // Never across an activation tile, since kTileRowsMax divides kTileRows.
      const uint32_t left = task.row_end - row;
      const uint32_t rows = left < kTileRowsMax ? left : kTileRowsMax;
      TileOf<kType, Input>(rows, task, weights, row, sums);
      FinishTile(task, panel, row, rows, sums);
      row += rows;
    }
  }
}

template <DType kType>
void MultiplyAs(const ProductTask& task) {
  if constexpr (LayoutOf(kType).quant_bytes != 0) {
    if (task.bits == ActivationBits::k16) return MultiplyWith<kType, int16_t>(task);
  }
  MultiplyWith<kType, int8_t>(task);
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
