// tensor/cpu/product-inl.h
// Matrix products over panels. One tile = one panel (16 outputs) times up to kTileRowsMax rows:
// weights are read and unpacked once for all of them, and each (row, output) has its own
// accumulator that walks the inputs in order, so rows cannot influence each other. Order and
// roundings: docs/numerics.md.

// Adds one quad of inputs to the dots of every row. Group: PackedGroup or ExpandedGroup.
template <int kRows, uint32_t kQuad, typename Group>
inline void AddQuad(Ints (*dots)[kParts], Group group, const int16_t* inputs) {
  Ints even[kParts];  // inputs 0 and 2 of the quad
  Ints odd[kParts];   // inputs 1 and 3
#pragma GCC unroll 2
  for (uint32_t v = 0; v < kParts; ++v) {
    const QuadWords words = group.template Words<kQuad>(v * kLanes);
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
template <int kRows, uint32_t kFirst, uint32_t kQuads, typename Group>
inline void AddQuads(Ints (*dots)[kParts], Group group, const int16_t* inputs) {
  AddQuad<kRows, kFirst>(dots, group, inputs);
  if constexpr (kQuads > 1) AddQuads<kRows, kFirst + 1, kQuads - 1>(dots, group, inputs);
}

// A tile's sums [kRows][16] in the caller's memory: held in registers meanwhile when there are
// enough.
template <int kRows, bool kInRegisters>
struct TileSums {
  Floats at[kRows][kParts];
  explicit TileSums(const float* memory) {
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (uint32_t v = 0; v < kParts; ++v) {
        at[row][v] = Load(memory + row * kPanelOutputs + v * kLanes);
      }
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
  explicit TileSums(float* place) : memory(place) {}
  Floats Get(int row, uint32_t v) const { return Load(memory + row * kPanelOutputs + v * kLanes); }
  void Put(int row, uint32_t v, Floats sum) {
    Store(memory + row * kPanelOutputs + v * kLanes, sum);
  }
  void StoreTo(float* /*memory*/) const {}
};

// The inputs of a group that share a scale: all, or half kHalf of it.
template <int kRows, uint32_t kHalf, typename Sums, typename Group>
inline void AddScaledDots(Sums& sums, Group group, const int16_t* inputs,
                          const ActivationGroup* groups) {
  constexpr PanelLayout kLayout = Group::kLayout;
  constexpr uint32_t kQuads = 8 / kLayout.scales;
  Ints dots[kRows][kParts];
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    const int32_t* minus8 =
        kLayout.scales == 2 ? &groups[row].minus8_half[kHalf] : &groups[row].minus8_sum;
#pragma GCC unroll 2
    for (uint32_t v = 0; v < kParts; ++v) dots[row][v] = StartDot<Group::kZeroPoint>(minus8);
  }
  AddQuads<kRows, kHalf * kQuads, kQuads>(dots, group, inputs);
#pragma GCC unroll 2
  for (uint32_t v = 0; v < kParts; ++v) {
    const Floats scales = group.Scales(kHalf, v * kLanes);
    Floats offsets = Zero();
    if constexpr (kLayout.offsets) offsets = group.Offsets(v * kLanes);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      Floats sum = Fma(ToFloats(dots[row][v]), scales, sums.Get(row, v));
      if constexpr (kLayout.offsets) sum = Fma(Set(groups[row].sum), offsets, sum);
      sums.Put(row, v, sum);
    }
  }
}

template <int kRows, typename Sums, typename Group>
inline void AddGroup(Sums& sums, Group group, const int16_t* inputs,
                     const ActivationGroup* groups) {
  AddScaledDots<kRows, 0>(sums, group, inputs, groups);
  if constexpr (Group::kLayout.scales == 2) AddScaledDots<kRows, 1>(sums, group, inputs, groups);
}

// Where a row of a task has its quants, and how far it is to its next group.
struct RowView {
  const int16_t* quants;
  const ActivationGroup* groups;
  uint32_t tile_rows;
};
inline RowView ViewRow(const ProductTask& task, uint32_t row, uint32_t first_group) {
  const uint32_t inputs = task.matrix->inputs();
  const uint32_t tile = row / kTileRows * kTileRows;
  const uint32_t tile_rows = task.rows - tile < kTileRows ? task.rows - tile : kTileRows;
  const size_t entry = size_t{first_group} * tile_rows + (row - tile);
  return {task.quants + size_t{tile} * inputs + kGroupInputs * entry,
          task.groups + size_t{tile} * (inputs / kGroupInputs) + entry, tile_rows};
}

template <int kRows>
using Sums = TileSums<kRows, kRows * kParts <= kSumsInRegisters>;

// Weights come from memory in one pass, and the processor's own prefetching stops at each page of
// 4 KB, so a tile of several rows asks for what lies so far ahead (measured: decoding 16 rows of a
// matrix beyond the caches is 12 % faster in Q4_0, 8 % in Q4_K, 20 % in Q8_0 and Q6_K). With fewer
// rows memory is the limit whoever asks.
constexpr uint32_t kBytesAhead = 3072;
constexpr int kPrefetchRowsMin = 4;

inline void PrefetchGroup(const std::byte* group, uint32_t bytes) {
  for (uint32_t byte = 0; byte < bytes; byte += 64) {
    __builtin_prefetch(group + kBytesAhead + byte, 0, 3);
  }
}

// Few rows: a panel times rows [row, row + kRows), added to sums[kRows][16].
template <DType kType, int kRows>
void PackedTile(const ProductTask& task, const std::byte* panel, uint32_t row, float* memory) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  const uint32_t blocks = task.matrix->inputs() / (kGroupInputs * kLayout.groups());
  RowView view = ViewRow(task, row, 0);
  Sums<kRows> sums(memory);
  for (uint32_t b = 0; b < blocks; ++b, panel += kLayout.block_bytes()) {
    const std::byte* group = panel + kLayout.header_bytes();
    for (uint32_t g = 0; g < kLayout.groups(); ++g, group += kLayout.group_bytes()) {
      if constexpr (kRows >= kPrefetchRowsMin) PrefetchGroup(group, kLayout.group_bytes());
      AddGroup<kRows>(sums, PackedGroup<kType>{panel, group}, view.quants, view.groups);
      view.quants += 32 * view.tile_rows;
      view.groups += view.tile_rows;
    }
  }
  sums.StoreTo(memory);
}

// Many rows: `count` groups from `first` on, which lie expanded at `expanded`.
template <DType kType, int kRows>
void ExpandedTile(const ProductTask& task, const std::byte* expanded, uint32_t first,
                  uint32_t count, uint32_t row, float* memory) {
  RowView view = ViewRow(task, row, first);
  Sums<kRows> sums(memory);
  for (uint32_t g = 0; g < count; ++g, expanded += ExpandedGroup<kType>::kBytes) {
    AddGroup<kRows>(sums, ExpandedGroup<kType>{expanded}, view.quants, view.groups);
    view.quants += 32 * view.tile_rows;
    view.groups += view.tile_rows;
  }
  sums.StoreTo(memory);
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

// Calls f<rows>() for rows in [1, kTileRowsMax].
template <typename F>
inline void WithRows(uint32_t rows, const F& f) {
  if constexpr (kTileRowsMax > 4) {
    switch (rows) {
      case 5:
        return f.template operator()<5>();
      case 6:
        return f.template operator()<6>();
      case 7:
        return f.template operator()<7>();
      case 8:
        return f.template operator()<8>();
      default:
        break;
    }
  }
  switch (rows) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    default:
      return f.template operator()<4>();
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

// Rows of one tile from `row` on. Never across an activation tile, since kTileRowsMax divides
// kTileRows.
inline uint32_t TileRowsAt(uint32_t row, uint32_t end) {
  return end - row < kTileRowsMax ? end - row : kTileRowsMax;
}

template <DType kType>
void MultiplyFew(const ProductTask& task) {
  constexpr bool kQuantized = LayoutOf(kType).quantized();
  alignas(64) float sums[kTileRowsMax * kPanelOutputs];
  for (uint32_t panel = task.panel_begin; panel < task.panel_end; ++panel) {
    const std::byte* weights = task.matrix->panel(panel);
    for (uint32_t row = task.row_begin; row < task.row_end;) {
      const uint32_t rows = TileRowsAt(row, task.row_end);
      WithRows(rows, [&]<int kRows>() {
        if constexpr (kQuantized) {
          __builtin_memset(sums, 0, sizeof sums);
          PackedTile<kType, kRows>(task, weights, row, sums);
        } else {
          FloatTile<kType, kRows>(task, weights, row, sums);
        }
      });
      FinishTile<kQuantized>(task, panel, row, rows, sums);
      row += rows;
    }
  }
}

constexpr uint32_t kExpandedGroups = 8;  // 10 KB: a third of a first-level cache
constexpr uint32_t kExpandedRows = 128;  // that share an expansion; their sums take 8 KB

// A panel times up to kExpandedRows rows from `row` on, into sums.
template <DType kType>
void MultiplyPanel(const ProductTask& task, const std::byte* panel, uint32_t row, uint32_t end,
                   float* sums) {
  constexpr PanelLayout kLayout = LayoutOf(kType);
  alignas(64) std::byte expanded[kExpandedGroups * ExpandedGroup<kType>::kBytes];
  const uint32_t groups = task.matrix->inputs() / kGroupInputs;
  __builtin_memset(sums, 0, (end - row) * kPanelOutputs * sizeof(float));
  for (uint32_t first = 0; first < groups; first += kExpandedGroups) {
    const uint32_t count = groups - first < kExpandedGroups ? groups - first : kExpandedGroups;
    for (uint32_t g = 0; g < count; ++g) {
      const std::byte* block = panel + (first + g) / kLayout.groups() * kLayout.block_bytes();
      const std::byte* group =
          block + kLayout.header_bytes() + (first + g) % kLayout.groups() * kLayout.group_bytes();
      PrefetchGroup(group, kLayout.group_bytes());
      ExpandGroup(PackedGroup<kType>{block, group}, expanded + g * ExpandedGroup<kType>::kBytes);
    }
    for (uint32_t at = row; at < end;) {
      const uint32_t rows = TileRowsAt(at, end);
      WithRows(rows, [&]<int kRows>() {
        ExpandedTile<kType, kRows>(task, expanded, first, count, at,
                                   sums + size_t{at - row} * kPanelOutputs);
      });
      at += rows;
    }
  }
}

template <DType kType>
void MultiplyMany(const ProductTask& task) {
  alignas(64) float sums[kExpandedRows * kPanelOutputs];
  for (uint32_t panel = task.panel_begin; panel < task.panel_end; ++panel) {
    for (uint32_t row = task.row_begin; row < task.row_end; row += kExpandedRows) {
      const uint32_t left = task.row_end - row;
      const uint32_t rows = left < kExpandedRows ? left : kExpandedRows;
      MultiplyPanel<kType>(task, task.matrix->panel(panel), row, row + rows, sums);
      FinishTile<true>(task, panel, row, rows, sums);
    }
  }
}

template <DType kType>
void MultiplyAs(const ProductTask& task) {
  if constexpr (LayoutOf(kType).quantized()) {
    if constexpr (kManyRows != 0) {
      if (task.row_end - task.row_begin >= kManyRows) return MultiplyMany<kType>(task);
    }
  }
  MultiplyFew<kType>(task);
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
