// tensor/probe-inl.h
// The probe's loops, once for every target: included by probe_avx2.cc and probe_avx512.cc inside
// their namespace and target region, after they define Floats, Ints, kLanes (32-bit values in a
// vector), Fma, Dot8, Dot16, AddWords, Set32, Zero, ZeroInts, Load, Hide, Sum and
// SumWords. Hide(x) makes a register's content unknown to the compiler, so that nothing is hoisted
// or folded.

constexpr uint32_t kSums = 10;  // at least latency times issue width of all targets

inline uint64_t RunFma(uint64_t turns) {
  Floats a = SetFloat(1), b = SetFloat(1);
  Floats sums[kSums];
  for (Floats& sum : sums) sum = Zero();
  for (uint64_t turn = 0; turn < turns; ++turn) {
    Hide(a);
    Hide(b);
#pragma GCC unroll 16
    for (uint32_t i = 0; i < kSums; ++i) sums[i] = Fma(a, b, sums[i]);
  }
  uint64_t total = 0;
  for (const Floats& sum : sums) total += Sum(sum);
  return total;
}

// Each product is computed, though all are equal, and each sum stays in its register.
template <Ints (*DotOf)(Ints sum, Ints a, Ints b)>
inline void AddDot(Ints& sum, Ints a, Ints& b) {
  Hide(b);
  sum = DotOf(sum, a, b);
  Hide(sum);
}

// `ones` holds the factor 1 in every element. The sums have names of their own, since the compiler
// would keep an array of them in memory.
template <Ints (*DotOf)(Ints sum, Ints a, Ints b)>
uint64_t RunDot(uint64_t turns, int32_t ones) {
  Ints a = Set32(ones), b = Set32(ones);
  Ints s0 = ZeroInts(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0,
       s9 = s0;
  for (uint64_t turn = 0; turn < turns; ++turn) {
    AddDot<DotOf>(s0, a, b);
    AddDot<DotOf>(s1, a, b);
    AddDot<DotOf>(s2, a, b);
    AddDot<DotOf>(s3, a, b);
    AddDot<DotOf>(s4, a, b);
    AddDot<DotOf>(s5, a, b);
    AddDot<DotOf>(s6, a, b);
    AddDot<DotOf>(s7, a, b);
    AddDot<DotOf>(s8, a, b);
    AddDot<DotOf>(s9, a, b);
  }
  return Sum(s0) + Sum(s1) + Sum(s2) + Sum(s3) + Sum(s4) + Sum(s5) + Sum(s6) + Sum(s7) + Sum(s8) +
         Sum(s9);
}

inline uint64_t RunDot8(uint64_t turns) { return RunDot<Dot8>(turns, 0x01010101); }
inline uint64_t RunDot16(uint64_t turns) { return RunDot<Dot16>(turns, 0x00010001); }

inline uint64_t Read(const std::byte* data, uint64_t size) {
  constexpr uint64_t kVectorBytes = sizeof(Ints);
  constexpr uint64_t kVectors = kProbeReadStep / kVectorBytes;
  Ints sums[4];
  for (Ints& sum : sums) sum = ZeroInts();
  const std::byte* end = data + size;
  for (const std::byte* p = data; p != end; p += kProbeReadStep) {
#pragma GCC unroll 16
    for (uint64_t i = 0; i < kVectors; ++i) {
      sums[i % 4] = AddWords(sums[i % 4], Load(p + i * kVectorBytes));
    }
  }
  return SumWords(AddWords(AddWords(sums[0], sums[1]), AddWords(sums[2], sums[3])));
}

inline constexpr ProbeTable MakeTable(std::string_view name, std::string_view fma,
                                      std::string_view dot8, std::string_view dot16) {
  return {name,
          {fma, uint64_t{kSums} * kLanes, RunFma},
          {dot8, uint64_t{kSums} * kLanes * 4, RunDot8},
          {dot16, uint64_t{kSums} * kLanes * 2, RunDot16},
          Read};
}
