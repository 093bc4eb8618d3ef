// model/families/engram.cc
// Multipliers and primes are made at load from the config's numbers alone, as the model's makers
// made them; a table of another size than the primes' sum tells of a config that does not fit.
#include "model/families/engram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/disk.h"
#include "model/families/numpy_integers.h"

namespace plumb::model {
namespace {

using base::Result;

constexpr uint64_t kInt64Max = std::numeric_limits<int64_t>::max();
constexpr uint64_t kSeedFactor = 10007;

uint64_t PowerModulo(uint64_t base, uint64_t exponent, uint64_t modulus) {
  unsigned __int128 power = 1, square = base % modulus;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent % 2 == 1) power = power * square % modulus;
    square = square * square % modulus;
  }
  return static_cast<uint64_t>(power);
}

// Miller-Rabin; these bases decide every 64-bit number (Sorenson, Webster 2015: up to 3.3e24).
bool IsPrime(uint64_t n) {
  constexpr std::array<uint64_t, 12> kBases = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  if (n < 2) return false;
  for (const uint64_t base : kBases) {
    if (n % base == 0) return n == base;
  }
  uint64_t odd = n - 1;
  uint32_t halvings = 0;
  for (; odd % 2 == 0; odd /= 2) ++halvings;
  for (const uint64_t base : kBases) {
    uint64_t power = PowerModulo(base, odd, n);
    bool witness = power != 1 && power != n - 1;
    for (uint32_t i = 1; i < halvings && witness; ++i) {
      power = static_cast<uint64_t>(static_cast<unsigned __int128>(power) * power % n);
      witness = power != n - 1;
    }
    if (witness) return false;
  }
  return true;
}

// Odd, and so small that a class times one stays below 2^63.
std::vector<int64_t> MultipliersOf(uint32_t layer, uint32_t classes, uint32_t count) {
  const uint64_t bound = std::max<uint64_t>(1, kInt64Max / classes / 2);
  std::vector<int64_t> multipliers;
  for (const uint64_t drawn : NumpyIntegers(kSeedFactor * layer, bound, count)) {
    const uint64_t multiplier = 2 * drawn + 1;
    CHECK(multiplier <= kInt64Max / std::max(1u, classes - 1)) << multiplier;
    multipliers.push_back(static_cast<int64_t>(multiplier));
  }
  return multipliers;
}

}  // namespace

Result<EngramAddresses> EngramAddresses::Create(const DeepseekConfig& config,
                                                std::vector<uint32_t> classes) {
  CHECK(classes.size() == config.vocabulary) << classes.size();
  CHECK(classes.empty() ||
        *std::max_element(classes.begin(), classes.end()) < config.engram_classes);
  EngramAddresses out;
  out.ngram_max_ = config.engram_ngram_max;
  out.heads_ = config.engram_heads;
  out.pad_class_ = classes[config.engram_pad_token];
  out.classes_ = std::move(classes);
  // Each table and n-gram begins its search at engram_bucket anew and skips what served before, so
  // together they take the primes from there on, one after the other.
  uint64_t candidate = config.engram_bucket;
  for (size_t place = 0; place < config.engram_layers.size(); ++place) {
    const uint32_t layer = config.engram_layers[place];
    out.multipliers_.push_back(MultipliersOf(layer, config.engram_classes, out.ngram_max_));
    std::vector<uint64_t>& primes = out.primes_.emplace_back();
    uint64_t sum = 0;
    while (primes.size() < out.rows_per_token()) {
      for (; !IsPrime(candidate); ++candidate) {
      }
      sum += candidate;
      primes.push_back(candidate++);
    }
    if (sum == config.engram_rows[place]) continue;
    return base::Corrupt(fmt::format("config.json: engram_num_embeddings says {} rows for layer "
                                     "{}, but the hashes from engram_vocab_size on need {}",
                                     config.engram_rows[place], layer, sum))
        .WithField("config.json: text_config: engram_num_embeddings");
  }
  return out;
}

void EngramAddresses::RowsOf(uint32_t place, std::span<const base::TokenId> recent,
                             std::span<uint64_t> rows) const {
  DCHECK(!recent.empty() && recent.size() <= ngram_max_) << recent.size();
  DCHECK(rows.size() == rows_per_token()) << rows.size();
  const std::vector<int64_t>& multipliers = multipliers_[place];
  const std::vector<uint64_t>& primes = primes_[place];
  const auto term = [&](uint32_t back) {
    const uint32_t token_class =
        back < recent.size() ? classes_[base::Index(recent[back])] : pad_class_;
    return uint64_t{token_class} * static_cast<uint64_t>(multipliers[back]);
  };
  uint64_t hash = term(0);
  uint64_t begin = 0;  // of the rows that belong to a prime
  size_t i = 0;
  for (uint32_t back = 1; back < ngram_max_; ++back) {
    hash ^= term(back);
    for (uint32_t head = 0; head < heads_; ++head, ++i) {
      rows[i] = begin + hash % primes[i];
      begin += primes[i];
    }
  }
}

void PrefetchRows(const EngramTable& table, std::span<const uint64_t> rows) {
  if (!IsPrefetched(table)) return;
  const uint64_t groups = table.width / 32;
  for (const uint64_t row : rows) {
    base::Advise({table.codes + row * table.width, table.width}, base::MapAdvice::kWillNeed);
    base::Advise({table.scales + row * groups, groups}, base::MapAdvice::kWillNeed);
  }
}

}  // namespace plumb::model
