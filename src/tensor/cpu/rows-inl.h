// tensor/cpu/rows-inl.h
// Functions of single rows: quantising, norms, activation functions, rotation. Sums go by 16
// virtual lanes (element k belongs to lane k mod 16) folded in a fixed tree, whatever the vector
// width.

// 16 virtual lanes in kParts vectors.
struct Lanes {
  Floats part[kPanelOutputs / kLanes];
};

// lane i += lane i + 8, then 4, 2, 1.
inline float FoldSum(float* lanes) {
  for (uint32_t width = 8; width > 0; width /= 2) {
    for (uint32_t i = 0; i < width; ++i) lanes[i] = lanes[i] + lanes[i + width];
  }
  return lanes[0];
}

void Quantize(const QuantizeTask& task) {
  const uint32_t bits = AbsoluteMaxBits(task.x, task.inputs);
  float largest;
  __builtin_memcpy(&largest, &bits, 4);
  const bool finite = bits < 0x7f800000u;
  const bool zero = !finite || largest < 0x1.0p-100f;  // all quants
  *task.scale = finite ? 0.0f : __builtin_nanf("");    // NaN: the row's products become NaN
  if (!zero) *task.scale = largest / kQuantMax;
  const float inverse = zero ? 0.0f : kQuantMax / largest;
  int16_t* quants = task.quants;
  ActivationGroup* out = task.groups;
  for (uint32_t first = 0; first < task.inputs; first += kGroupInputs) {
    int32_t sums[2] = {0, 0};
    if (zero) {
      __builtin_memset(quants, 0, kGroupInputs * sizeof(int16_t));
    } else {
      QuantizeGroup(task.x + first, inverse, quants, sums);
    }
    const int32_t sum = sums[0] + sums[1];
    *out = {static_cast<float>(sum), -8 * sum, {-8 * sums[0], -8 * sums[1]}};
    quants += size_t{kGroupInputs} * task.tile_rows;
    out += task.tile_rows;
  }
}

void RmsNormRow(const float* x, const float* weight, float epsilon, uint32_t n, float* out) {
  Lanes lanes;
  for (Floats& part : lanes.part) part = Zero();
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (uint32_t part = 0; part < 16 / kLanes; ++part) {
      const Floats value = Load(x + i + part * kLanes);
      lanes.part[part] = Fma(value, value, lanes.part[part]);
    }
  }
  alignas(64) float sums[16];
  for (uint32_t part = 0; part < 16 / kLanes; ++part) {
    Store(sums + part * kLanes, lanes.part[part]);
  }
  for (uint32_t k = i; k < n; ++k) sums[k - i] = __builtin_fmaf(x[k], x[k], sums[k - i]);
  const float mean = FoldSum(sums) / static_cast<float>(n);
  const float inverse = 1.0f / __builtin_sqrtf(mean + epsilon);
  uint32_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    Store(out + k, Mul(Mul(Load(x + k), Set(inverse)), Load(weight + k)));
  }
  for (; k < n; ++k) out[k] = x[k] * inverse * weight[k];
}

// gate / (1 + exp(-gate)) * up
void SwiGluRow(const float* gate, const float* up, uint32_t n, float* out) {
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats g = Load(gate + i);
    const Floats silu = Div(g, Add(Set(1.0f), Exp(Negate(g))));
    Store(out + i, Mul(silu, Load(up + i)));
  }
  for (; i < n; ++i) {
    const float g = gate[i];
    out[i] = g / (1.0f + ExactExp(-g)) * up[i];
  }
}

// gate / (1 + exp(c (gate + k gate^3))) * up
void GeGluRow(const float* gate, const float* up, uint32_t n, float* out) {
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats g = Load(gate + i);
    const Floats cube = Mul(Mul(g, g), Set(kGeluCubic));
    const Floats exponent = Mul(Fma(cube, g, g), Set(kGeluExponent));
    const Floats gelu = Div(g, Add(Set(1.0f), Exp(exponent)));
    Store(out + i, Mul(gelu, Load(up + i)));
  }
  for (; i < n; ++i) {
    const float g = gate[i];
    const float cube = g * g * kGeluCubic;
    const float exponent = __builtin_fmaf(cube, g, g) * kGeluExponent;
    out[i] = g / (1.0f + ExactExp(exponent)) * up[i];
  }
}

void AddRow(const float* a, const float* b, uint32_t n, float* out) {
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(out + i, Add(Load(a + i), Load(b + i)));
  for (; i < n; ++i) out[i] = a[i] + b[i];
}

void AddScaledRow(const float* x, float scale, uint32_t n, float* out) {
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(out + i, Fma(Set(scale), Load(x + i), Load(out + i)));
  for (; i < n; ++i) out[i] = __builtin_fmaf(scale, x[i], out[i]);
}

// cap * tanh(x / cap), tanh(r) = 1 - 2 / (1 + exp(2 r))
void SoftCapRow(const float* x, float cap, uint64_t n, float* out) {
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Floats ratio = Div(Load(x + i), Set(cap));
    const Floats half = Div(Set(2.0f), Add(Set(1.0f), Exp(Add(ratio, ratio))));
    Store(out + i, Mul(Set(cap), Sub(Set(1.0f), half)));
  }
  for (; i < n; ++i) {
    const float ratio = x[i] / cap;
    out[i] = cap * (1.0f - 2.0f / (1.0f + ExactExp(ratio + ratio)));
  }
}

// (x0, x1) -> (fma(x0, c, -(x1 s)), fma(x1, c, x0 s))
inline void RotatePair(float* x0, float* x1, float cosine, float sine) {
  const float a = *x0;
  const float b = *x1;
  *x0 = __builtin_fmaf(a, cosine, -(b * sine));
  *x1 = __builtin_fmaf(b, cosine, a * sine);
}

inline void RotateHalves(float* x, uint32_t half, const float* cosines, const float* sines) {
  uint32_t i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const Floats a = Load(x + i);
    const Floats b = Load(x + half + i);
    const Floats c = Load(cosines + i);
    const Floats s = Load(sines + i);
    Store(x + i, Fma(a, c, Negate(Mul(b, s))));
    Store(x + half + i, Fma(b, c, Mul(a, s)));
  }
  for (; i < half; ++i) RotatePair(x + i, x + half + i, cosines[i], sines[i]);
}

inline void RotateAdjacent(float* x, uint32_t half, const float* cosines, const float* sines) {
  uint32_t i = 0;
  for (; i + kLanes / 2 <= half; i += kLanes / 2) {
    const Floats pairs = Load(x + 2 * i);
    const Floats crossed = Mul(SwapPairs(pairs), DuplicatePairs(sines + i));
    Store(x + 2 * i, FmaSubAdd(pairs, DuplicatePairs(cosines + i), crossed));
  }
  for (; i < half; ++i) RotatePair(x + 2 * i, x + 2 * i + 1, cosines[i], sines[i]);
}

void RotateHeads(float* x, uint32_t heads, uint32_t head_dim, uint32_t dims, RotaryPairing pairing,
                 const float* cosines, const float* sines) {
  for (uint32_t head = 0; head < heads; ++head, x += head_dim) {
    if (pairing == RotaryPairing::kHalves) {
      RotateHalves(x, dims / 2, cosines, sines);
    } else {
      RotateAdjacent(x, dims / 2, cosines, sines);
    }
  }
}

inline float MaxOf(const float* x, uint64_t n) {
  float largest = x[0];
  uint64_t i = 0;
  if (n >= kLanes) {
    Floats lanes = Load(x);
    for (; i + kLanes <= n; i += kLanes) lanes = Max(lanes, Load(x + i));
    alignas(64) float values[kLanes];
    Store(values, lanes);
    for (float value : values) largest = value > largest ? value : largest;
  }
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// The 16 virtual lanes of exp(x - largest), folded; the terms go to `terms` unless it is null.
inline float SumExp(const float* x, uint64_t n, float largest, float* terms) {
  Lanes lanes;
  for (Floats& part : lanes.part) part = Zero();
  uint64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (uint32_t part = 0; part < 16 / kLanes; ++part) {
      const uint64_t k = i + part * kLanes;
      const Floats term = Exp(Sub(Load(x + k), Set(largest)));
      if (terms != nullptr) Store(terms + k, term);
      lanes.part[part] = Add(lanes.part[part], term);
    }
  }
  alignas(64) float sums[16];
  for (uint32_t part = 0; part < 16 / kLanes; ++part) {
    Store(sums + part * kLanes, lanes.part[part]);
  }
  for (uint64_t k = i; k < n; ++k) {
    const float term = ExactExp(x[k] - largest);
    if (terms != nullptr) terms[k] = term;
    sums[k - i] = sums[k - i] + term;
  }
  return FoldSum(sums);
}

float LogSumExpRow(const float* x, uint64_t n) {
  const float largest = MaxOf(x, n);
  return largest + ExactLog(SumExp(x, n, largest, nullptr));
}

void SoftmaxRow(const float* x, uint64_t n, float* out) {
  const float sum = SumExp(x, n, MaxOf(x, n), out);
  uint64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(out + i, Div(Load(out + i), Set(sum)));
  for (; i < n; ++i) out[i] = out[i] / sum;
}
