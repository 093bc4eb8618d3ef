// cli/bench_rows.cc
// Memory first, then the two kinds of steps, behind cli/bench_rows.h.
#include "cli/bench_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace plumb::cli {
namespace {

constexpr uint64_t kTokensMin = 256;  // different ones in turn, as text has
// Clears exponent bits so that every 16 bits are a half below 1 in magnitude, and every 32 a float.
constexpr uint64_t kFiniteMask = 0xbbff'bbff'bbff'bbff;

}  // namespace

uint32_t PagesForTokens(uint64_t tokens) {
  return static_cast<uint32_t>((tokens + model::kPageTokens - 1) / model::kPageTokens);
}

BenchRows::BenchRows(model::Model& model, const BenchSize& size,
                     std::function<void(uint64_t)> advance)
    : model_(model), size_(size), advance_(std::move(advance)) {}

BenchRows::~BenchRows() {
  for (const kvcache::PageId id : page_ids_) pool_->Release(id);
}

base::Result<std::unique_ptr<BenchRows>> BenchRows::Create(model::Model& model,
                                                           const BenchSize& size,
                                                           std::function<void(uint64_t)> advance) {
  CHECK(size.sequences >= 1 && size.chunk_rows >= 1);
  std::unique_ptr<BenchRows> rows(new BenchRows(model, size, std::move(advance)));
  RETURN_IF_ERROR(rows->MakePages());
  rows->MakeTokens();
  if (ComputesContexts(model)) {
    rows->states_.assign(size.sequences, std::vector<std::byte>(model.info().state_bytes));
  }
  rows->logits_.resize(uint64_t{size.sequences} * model.info().vocabulary_size);
  rows->rows_.resize(size.sequences);
  return rows;
}

uint64_t BenchRows::StateBytes(const model::Model& model, uint64_t batch) {
  return ComputesContexts(model) ? (batch + 1) * model.info().state_bytes : 0;
}

// Every page is written here: the first touch of memory is not what is measured.
base::Status BenchRows::MakePages() {
  if (size_.pages == 0) return base::OkStatus();
  const uint64_t page_bytes = model_.info().page_bytes;
  const kvcache::PageLayout layout{.page_tokens = model::kPageTokens, .page_bytes = page_bytes};
  const uint64_t alignment = kvcache::PagePool::kAlignment;
  const uint64_t stride = (page_bytes + alignment - 1) / alignment * alignment;
  auto pool = kvcache::PagePool::Create(layout, size_.pages * stride);
  if (!pool.ok()) return base::Status(base::Code::kOverloaded, pool.status().message());
  pool_ = std::move(pool).value();
  base::Rng rng(1);
  for (uint32_t i = 0; i < size_.pages; ++i) {
    const std::optional<kvcache::PageId> id = pool_->Allocate();
    CHECK(id.has_value());
    const std::span<std::byte> page = pool_->Data(*id);
    for (uint64_t offset = 0; offset < page.size(); offset += sizeof(uint64_t)) {
      const uint64_t bits = rng.Next() & kFiniteMask;
      std::memcpy(page.data() + offset, &bits,
                  std::min<uint64_t>(sizeof bits, page.size() - offset));
    }
    page_ids_.push_back(*id);
    pages_.push_back(page.data());
  }
  return base::OkStatus();
}

void BenchRows::MakeTokens() {
  const uint64_t count = std::max<uint64_t>({kTokensMin, size_.prompt_max, size_.sequences});
  base::Rng rng(2);
  for (uint64_t i = 0; i < count; ++i) {
    tokens_.push_back(
        base::TokenId{static_cast<uint32_t>(rng.Below(model_.info().vocabulary_size))});
  }
}

uint32_t BenchRows::ReplayFrom(uint32_t tokens) const {
  const uint32_t replayed = model_.info().replay_rows;
  return replayed == 0 ? 0 : tokens - std::min(tokens, replayed);
}

// The first `tokens` tokens of sequence 0.
void BenchRows::Compute(uint32_t tokens, bool last_has_logits) {
  const std::span<std::byte* const> pages = std::span(pages_).first(PagesForTokens(tokens));
  for (uint32_t begin = 0; begin < tokens; begin += size_.chunk_rows) {
    const uint32_t rows = std::min(size_.chunk_rows, tokens - begin);
    const uint32_t logits = last_has_logits && begin + rows == tokens ? 1 : 0;
    rows_[0] = {.tokens = std::span(tokens_).subspan(begin, rows),
                .position = begin,
                .pages = pages,
                .logits_rows = logits,
                .state = StateOf(0),
                .replay_from = ReplayFrom(tokens)};
    Forward(1, logits);
    advance_(rows);
  }
}

void BenchRows::Prefill(uint32_t prompt) {
  prepared_.reset();
  Compute(prompt, /*last_has_logits=*/true);
}

void BenchRows::Prepare(const BenchDecode& decode) {
  if (states_.empty()) return;
  if (prepared_ != decode.context) {
    Compute(decode.context, /*last_has_logits=*/false);
    kept_state_ = states_[0];
    prepared_ = decode.context;
  }
  const uint64_t page_bytes = model_.info().page_bytes;
  for (uint32_t i = 1; i < decode.batch; ++i) {
    for (uint32_t page = 0; page < PagesForTokens(decode.context); ++page) {
      std::memcpy(pages_[uint64_t{i} * decode.pages + page], pages_[page], page_bytes);
    }
  }
}

void BenchRows::Rewind(const BenchDecode& decode) {
  if (states_.empty()) return;
  CHECK(prepared_ == decode.context) << decode.context;
  for (uint32_t i = 0; i < decode.batch; ++i) states_[i] = kept_state_;
}

void BenchRows::Decode(const BenchDecode& decode, uint32_t steps) {
  for (uint32_t step = 0; step < steps; ++step) {
    for (uint32_t i = 0; i < decode.batch; ++i) {
      rows_[i] = {.tokens = std::span(tokens_).subspan((i + step) % tokens_.size(), 1),
                  .position = decode.context + step,
                  .pages = std::span(pages_).subspan(uint64_t{i} * decode.pages, decode.pages),
                  .logits_rows = 1,
                  .state = StateOf(i),
                  .replay_from = ReplayFrom(decode.context)};
    }
    Forward(decode.batch, decode.batch);
    advance_(decode.batch);
  }
}

void BenchRows::Forward(uint32_t sequences, uint32_t logits_rows) {
  const uint64_t logits = uint64_t{logits_rows} * model_.info().vocabulary_size;
  model_.Forward(std::span(rows_).first(sequences), std::span(logits_).first(logits));
}

}  // namespace plumb::cli
