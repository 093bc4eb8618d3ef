// tensor/cpu/attention_tile-inl.h
// The inner loops of attention: both of its products are sums over rows of a matrix B, in order,
// with a lane per column. B is read as the page holds it (few queries), or widened once to f32 in
// the order in which the loops walk (many queries). No sum's order depends on a tile's shape.

template <int kCount>
struct Number {
  static constexpr int kValue = kCount;
};

// Calls f with `count` as a compile-time number.
template <typename F>
inline void WithCount(uint32_t count, const F& f) {
  switch (count) {
    case 1:
      return f(Number<1>());
    case 2:
      return f(Number<2>());
    case 3:
      return f(Number<3>());
    case 4:
      return f(Number<4>());
    case 5:
      return f(Number<5>());
    case 6:
      return f(Number<6>());
    case 7:
      return f(Number<7>());
    default:
      return f(Number<8>());
  }
}

// What B holds, a lane per column, and how a row is added to a sum.
struct Halfs {
  using Factor = float;
  using Vector = Floats;
  static constexpr uint32_t kLaneBytes = 2;
  static Vector Read(const std::byte* p) { return LoadHalfs(p); }
  static Vector Resume(const Factor* p) { return Load(p); }
  static Vector Spread(Factor factor) { return Set(factor); }
  static Vector Step(Vector factor, Vector element, Vector sum) {
    return Fma(factor, element, sum);
  }
};
struct Singles : Halfs {
  static constexpr uint32_t kLaneBytes = 4;
  static Vector Read(const std::byte* p) { return Load(reinterpret_cast<const float*>(p)); }
};
// Two int8 of adjacent rows; the factor holds two int16. Sums are exact.
struct BytePairs {
  using Factor = int32_t;
  using Vector = Ints;
  static constexpr uint32_t kLaneBytes = 2;
  static Vector Read(const std::byte* p) { return WidenBytes(p); }
  static Vector Resume(const Factor* p) { return LoadBytes(p); }
  static Vector Spread(Factor factor) { return SetInts(factor); }
  static Vector Step(Vector factor, Vector element, Vector sum) {
    return AddPairs(factor, element, sum);
  }
};

// Queries that share a tile of widened elements, and the tile's vectors: they fill the registers.
constexpr uint32_t kTileQueries = kLanes == 8 ? 6 : 8;
constexpr uint32_t kTileVectors = 2;
constexpr uint32_t kTileColumns = kTileVectors * kLanes;
static_assert(kQueriesMax % kTileQueries == 0);

// Up to this many queries read the page directly, all in one tile or in tiles of four.
constexpr uint32_t kDirectQueries = 8;
constexpr uint32_t DirectTile(uint32_t queries) { return queries <= kTileQueries ? queries : 4; }

// Vectors of a tile over directly read elements, for as many queries: enough independent sums to
// hide the latency of Fma, and as few conversions as the registers allow.
template <int kQueries>
constexpr uint32_t DirectVectors() {
  if (kQueries == 1) return 8;
  if (kQueries <= 3) return 4;
  if (kLanes == 8) return 2;
  return kQueries <= 7 ? 4 : 2;
}

// A part of B: rows of `stride` bytes; the first row read is row 0. The same rows of the page to
// be read next lie `ahead` bytes further (0 = unknown).
struct Matrix {
  const std::byte* rows;
  size_t stride;
  ptrdiff_t ahead;
};

// sum[q][v] = start[q][v] + a[q][row] * B[row][v] for rows [begin, end) in order, with one rounding
// each; then finish(q, v, sum). `start` null: zeros.
template <typename Element, int kQueries, uint32_t kVectors, typename Finish>
inline void SumTile(const typename Element::Factor* const* a, uint32_t begin, uint32_t end,
                    const Matrix& b, const typename Element::Factor (*start)[kVectors * kLanes],
                    const Finish& finish) {
  using Vector = typename Element::Vector;
  Vector sums[kQueries][kVectors];
  const typename Element::Factor* factors[kQueries];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    factors[q] = a[q];
#pragma GCC unroll 8
    for (uint32_t v = 0; v < kVectors; ++v) {
      sums[q][v] = start == nullptr ? Vector{} : Element::Resume(&start[q][v * kLanes]);
    }
  }
  const std::byte* row = b.rows + begin * b.stride;
  for (uint32_t k = begin; k < end; ++k, row += b.stride) {
    if constexpr (Element::kLaneBytes == 2) {  // a page: towards L2, a line at a time
#pragma GCC unroll 4
      for (uint32_t byte = 0; byte < 2 * kVectors * kLanes; byte += 64) {
        __builtin_prefetch(row + b.ahead + byte, 0, 2);
      }
    }
    const auto read = [&](uint32_t v) {
      return Element::Read(row + v * kLanes * Element::kLaneBytes);
    };
    if constexpr (kQueries < static_cast<int>(kVectors)) {
      Vector factor[kQueries];
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) factor[q] = Element::Spread(factors[q][k]);
#pragma GCC unroll 8
      for (uint32_t v = 0; v < kVectors; ++v) {
        const Vector element = read(v);
#pragma GCC unroll 8
        for (int q = 0; q < kQueries; ++q) {
          sums[q][v] = Element::Step(factor[q], element, sums[q][v]);
        }
      }
    } else {
      Vector elements[kVectors];
#pragma GCC unroll 8
      for (uint32_t v = 0; v < kVectors; ++v) elements[v] = read(v);
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) {
        const Vector factor = Element::Spread(factors[q][k]);
#pragma GCC unroll 8
        for (uint32_t v = 0; v < kVectors; ++v) {
          sums[q][v] = Element::Step(factor, elements[v], sums[q][v]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
    for (uint32_t v = 0; v < kVectors; ++v) finish(q, v, sums[q][v]);
  }
}

// Widens columns [begin, end) (multiples of 16) of `rows` rows of f16: column tile t, row r begins
// at out[(t * rows_max + r) * kTileColumns], t counted from `begin`.
inline void Widen(const Matrix& halfs, uint32_t row_begin, uint32_t row_end, uint32_t begin,
                  uint32_t end, uint32_t rows_max, float* out) {
  for (uint32_t row = row_begin; row < row_end; ++row) {
    const std::byte* from = halfs.rows + row * halfs.stride;
    float* to = out + size_t{row} * kTileColumns;
    for (uint32_t column = begin; column < end; column += kTileColumns) {
      Store(to, LoadHalfs(from + 2 * column));
      if (kLanes == 8 || column + kLanes < end) {
        Store(to + kLanes, LoadHalfs(from + 2 * (column + kLanes)));
      }
      to += size_t{rows_max} * kTileColumns;
    }
  }
}
