// model/families/finite_scan.cc
// Eight bytes at a time: an exponent of all ones is found by adding one to its lowest bit, which
// carries into the sign's place.
#include "model/families/finite_scan.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace plumb::model {
namespace {

constexpr uint64_t kChunkBytes = 4u << 20;
constexpr uint64_t kRoundBytes = 256u << 20;  // between two reports of progress

// Elements are not finite where ((x & exponent) + lowest) has the bit `sign`; for E8M0, which has
// no sign, where x has it too.
struct Rule {
  uint64_t exponent;
  uint64_t lowest;
  uint64_t sign;
  bool top_bit_too;
};
constexpr Rule RuleOf(ScanKind kind) {
  switch (kind) {
    case ScanKind::kF32:
      return {0x7f8000007f800000, 0x0080000000800000, 0x8000000080000000, false};
    case ScanKind::kBf16:
      return {0x7f807f807f807f80, 0x0080008000800080, 0x8000800080008000, false};
    case ScanKind::kF8E4M3:  // no infinities: NaN has all bits below the sign
      return {0x7f7f7f7f7f7f7f7f, 0x0101010101010101, 0x8080808080808080, false};
    case ScanKind::kF8E8M0:
      return {0x7f7f7f7f7f7f7f7f, 0x0101010101010101, 0x8080808080808080, true};
  }
  return {};
}

bool AllFinite(ScanKind kind, std::span<const std::byte> bytes) {
  const Rule rule = RuleOf(kind);
  uint64_t found = 0;
  const auto look = [&](uint64_t x) {
    const uint64_t carried = ((x & rule.exponent) + rule.lowest) & rule.sign;
    found |= rule.top_bit_too ? carried & x : carried;
  };
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= bytes.size(); i += sizeof(uint64_t)) {
    uint64_t x;
    std::memcpy(&x, bytes.data() + i, sizeof x);
    look(x);
  }
  uint64_t rest = 0;
  if (i < bytes.size()) std::memcpy(&rest, bytes.data() + i, bytes.size() - i);
  look(rest);
  return found == 0;
}

struct Chunk {
  size_t job;
  std::span<const std::byte> bytes;
};

}  // namespace

std::optional<size_t> FindNotFinite(std::span<const ScanJob> jobs, tensor::ThreadPool& pool,
                                    const std::function<void(const LoadProgress&)>& progress) {
  LoadProgress state;
  std::vector<Chunk> chunks;
  for (size_t job = 0; job < jobs.size(); ++job) {
    const std::span<const std::byte> bytes = jobs[job].bytes;
    state.bytes_total += bytes.size();
    for (uint64_t begin = 0; begin < bytes.size(); begin += kChunkBytes) {
      chunks.push_back(
          {job, bytes.subspan(begin, std::min<uint64_t>(kChunkBytes, bytes.size() - begin))});
    }
  }
  for (size_t begin = 0; begin < chunks.size();) {
    size_t end = begin;
    uint64_t round_bytes = 0;
    while (end < chunks.size() && round_bytes < kRoundBytes)
      round_bytes += chunks[end++].bytes.size();
    std::atomic<size_t> first{chunks.size()};
    pool.ParallelFor(static_cast<uint32_t>(end - begin), [&](uint32_t item) {
      const Chunk& chunk = chunks[begin + item];
      if (AllFinite(jobs[chunk.job].kind, chunk.bytes)) return;
      size_t known = first.load();
      while (begin + item < known && !first.compare_exchange_weak(known, begin + item)) {
      }
    });
    if (first.load() < chunks.size()) return chunks[first.load()].job;
    state.bytes_done += round_bytes;
    if (progress) progress(state);
    begin = end;
  }
  return std::nullopt;
}

}  // namespace plumb::model
