// cli/bench_engine.cc
// One class that owns pages and tokens and takes the samples, behind cli/bench_engine.h.
#include "cli/bench_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/random.h"
#include "cli/format.h"
#include "kvcache/page_pool.h"

namespace plumb::cli {
namespace {

constexpr uint32_t kWarmUpSteps = 4;  // of decode
constexpr uint64_t kTokensMin = 256;  // different ones in turn, as text has
// Clears exponent bits so that every 16 bits are a half below 1 in magnitude, and every 32 a float.
constexpr uint64_t kFiniteMask = 0xbbff'bbff'bbff'bbff;

uint32_t PagesFor(uint64_t tokens) {
  return static_cast<uint32_t>((tokens + model::kPageTokens - 1) / model::kPageTokens);
}

std::string NameOf(const BenchPoint& point) {
  return point.kind == BenchKind::kPrefill
             ? fmt::format("prefill {}", point.prompt)
             : fmt::format("decode {} at {}", point.batch, point.context);
}

// Thread: the model's.
class Bench {
 public:
  Bench(model::Model& model, const EngineBenchPlan& plan, const base::Clock& clock,
        const BenchHooks& hooks)
      : model_(model), plan_(plan), clock_(clock), hooks_(hooks) {}

  ~Bench() {
    for (const kvcache::PageId id : page_ids_) pool_->Release(id);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  base::Result<std::vector<BenchPoint>> Do() {
    RETURN_IF_ERROR(CheckPlan(plan_, model_));
    ListPoints();
    RETURN_IF_ERROR(MakePages());
    MakeTokens();
    for (BenchPoint& point : points_) {
      if (!point.skipped.empty()) continue;
      what_ = NameOf(point);
      Measure(point);
    }
    return std::move(points_);
  }

 private:
  void ListPoints() {
    for (const uint32_t prompt : plan_.prompts) {
      BenchPoint point;
      point.kind = BenchKind::kPrefill;
      point.prompt = prompt;
      point.tokens = prompt;
      AddPoint(std::move(point));
    }
    for (const uint32_t context : plan_.contexts) {
      for (const uint32_t batch : plan_.batches) {
        BenchPoint point;
        point.kind = BenchKind::kDecode;
        point.context = context;
        point.batch = batch;
        point.tokens = uint64_t{batch} * plan_.decode_tokens;
        AddPoint(std::move(point));
      }
    }
  }

  void AddPoint(BenchPoint point) {
    const uint64_t bytes = uint64_t{PagesOf(point)} * model_.info().page_bytes;
    if (bytes > plan_.kv_memory_max) {
      point.skipped = fmt::format("needs {} for keys and values, {} may be used",
                                  FormatBytes(bytes), FormatBytes(plan_.kv_memory_max));
    } else {
      pages_max_ = std::max(pages_max_, PagesOf(point));
      rows_total_ += point.tokens * plan_.repeat + WarmUpTokens(point);
    }
    points_.push_back(std::move(point));
  }

  uint32_t PagesPerSequence(const BenchPoint& point) const {
    return point.kind == BenchKind::kPrefill ? PagesFor(point.prompt)
                                             : PagesFor(point.context + plan_.decode_tokens);
  }
  uint32_t PagesOf(const BenchPoint& point) const { return PagesPerSequence(point) * point.batch; }
  uint64_t WarmUpTokens(const BenchPoint& point) const {
    return point.kind == BenchKind::kPrefill
               ? std::min(point.prompt, plan_.chunk_rows)
               : uint64_t{point.batch} * std::min(kWarmUpSteps, plan_.decode_tokens);
  }

  // Every page is written here: the first touch of memory is not what is measured.
  base::Status MakePages() {
    if (pages_max_ == 0) return base::OkStatus();
    const uint64_t page_bytes = model_.info().page_bytes;
    const kvcache::PageLayout layout{.page_tokens = model::kPageTokens, .page_bytes = page_bytes};
    const uint64_t alignment = kvcache::PagePool::kAlignment;
    const uint64_t stride = (page_bytes + alignment - 1) / alignment * alignment;
    auto pool = kvcache::PagePool::Create(layout, pages_max_ * stride);
    if (!pool.ok()) return base::Status(base::Code::kOverloaded, pool.status().message());
    pool_ = std::move(pool).value();
    base::Rng rng(1);
    for (uint32_t i = 0; i < pages_max_; ++i) {
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

  void MakeTokens() {
    uint64_t count = kTokensMin;
    for (const BenchPoint& point : points_) {
      count = std::max<uint64_t>({count, point.prompt, point.batch});
    }
    base::Rng rng(2);
    for (uint64_t i = 0; i < count; ++i) {
      tokens_.push_back(
          base::TokenId{static_cast<uint32_t>(rng.Below(model_.info().vocabulary_size))});
    }
    uint32_t batch_max = 1;
    for (const uint32_t batch : plan_.batches) batch_max = std::max(batch_max, batch);
    logits_.resize(uint64_t{batch_max} * model_.info().vocabulary_size);
    rows_.resize(batch_max);
  }

  void Measure(BenchPoint& point) {
    if (point.kind == BenchKind::kPrefill) {
      Prefill(std::min(point.prompt, plan_.chunk_rows));
    } else {
      Decode(point, std::min(kWarmUpSteps, plan_.decode_tokens));
    }
    MeasureRead(point);
    for (uint32_t sample = 0; sample < plan_.repeat; ++sample) {
      const base::Instant start = clock_.Now();
      if (point.kind == BenchKind::kPrefill) {
        Prefill(point.prompt);
      } else {
        Decode(point, plan_.decode_tokens);
      }
      point.seconds.push_back(std::max((clock_.Now() - start).seconds(), 1e-9));
      MeasureRead(point);
    }
  }

  // Beside every sample, since what memory gives changes while a measurement runs.
  void MeasureRead(BenchPoint& point) {
    if (point.kind != BenchKind::kDecode || !hooks_.read_rate) return;
    point.read_rates.push_back(hooks_.read_rate());
  }

  // Logits for the last row alone, as for a prompt.
  void Prefill(uint32_t prompt) {
    const std::span<std::byte* const> pages = std::span(pages_).first(PagesFor(prompt));
    for (uint32_t begin = 0; begin < prompt; begin += plan_.chunk_rows) {
      const uint32_t rows = std::min(plan_.chunk_rows, prompt - begin);
      const bool last = begin + rows == prompt;
      rows_[0] = {.tokens = std::span(tokens_).subspan(begin, rows),
                  .position = begin,
                  .pages = pages,
                  .logits_rows = last ? 1u : 0u};
      Forward(1, last ? 1 : 0);
      Advance(rows);
    }
  }

  void Decode(const BenchPoint& point, uint32_t steps) {
    const uint32_t sequence_pages = PagesPerSequence(point);
    for (uint32_t step = 0; step < steps; ++step) {
      for (uint32_t i = 0; i < point.batch; ++i) {
        rows_[i] = {
            .tokens = std::span(tokens_).subspan((i + step) % tokens_.size(), 1),
            .position = point.context + step,
            .pages = std::span(pages_).subspan(uint64_t{i} * sequence_pages, sequence_pages),
            .logits_rows = 1};
      }
      Forward(point.batch, point.batch);
      Advance(point.batch);
    }
  }

  void Forward(uint32_t sequences, uint32_t logits_rows) {
    const uint64_t logits = uint64_t{logits_rows} * model_.info().vocabulary_size;
    model_.Forward(std::span(rows_).first(sequences), std::span(logits_).first(logits));
  }

  void Advance(uint64_t rows) {
    rows_done_ += rows;
    if (hooks_.progress) hooks_.progress(rows_done_, rows_total_, what_);
  }

  model::Model& model_;
  const EngineBenchPlan& plan_;
  const base::Clock& clock_;
  const BenchHooks& hooks_;
  std::vector<BenchPoint> points_;
  uint32_t pages_max_ = 0;
  std::unique_ptr<kvcache::PagePool> pool_;
  std::vector<kvcache::PageId> page_ids_;
  std::vector<std::byte*> pages_;  // theirs, in the same order
  std::vector<base::TokenId> tokens_;
  std::vector<float> logits_;
  std::vector<model::SequenceRows> rows_;
  std::string what_;
  uint64_t rows_done_ = 0;
  uint64_t rows_total_ = 0;
};

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  CHECK(!values.empty());
  Spread spread;
  spread.median = MedianOf(values);
  const auto [min, max] = std::ranges::minmax(values);
  spread.min = min;
  spread.max = max;
  for (double& value : values) value = std::abs(value - spread.median);
  spread.deviation = MedianOf(values);
  return spread;
}

Spread SpeedOf(const BenchPoint& point) {
  std::vector<double> speeds;
  for (const double seconds : point.seconds) speeds.push_back(point.TokensPerSecond(seconds));
  return SpreadOf(std::move(speeds));
}

base::Status CheckPlan(const EngineBenchPlan& plan, const model::Model& model) {
  CHECK(plan.repeat >= 1 && plan.decode_tokens >= 1 && plan.chunk_rows >= 1);
  if (model.info().state_bytes > 0) {
    return base::Unsupported(
        "this model's sequences keep a state besides keys and values, which bench cannot make up "
        "for a context that was not computed");
  }
  const uint32_t context_max = model.info().context_max;
  for (const uint32_t prompt : plan.prompts) {
    if (prompt <= context_max) continue;
    return base::InvalidArgument("--prompt",
                                 fmt::format("--prompt: {} tokens are more than this model's "
                                             "context, {}",
                                             prompt, context_max));
  }
  for (const uint32_t context : plan.contexts) {
    if (uint64_t{context} + plan.decode_tokens <= context_max) continue;
    return base::InvalidArgument("--context",
                                 fmt::format("--context: {} tokens and {} decoded ones are more "
                                             "than this model's context, {}",
                                             context, plan.decode_tokens, context_max));
  }
  const uint32_t batch_max = std::min(model.logits_rows_max(), model.rows_max());
  for (const uint32_t batch : plan.batches) {
    if (batch <= batch_max) continue;
    return base::InvalidArgument(
        "--batch", fmt::format("--batch: {} sequences are more than {}", batch, batch_max));
  }
  if (plan.chunk_rows <= model.rows_max()) return base::OkStatus();
  return base::InvalidArgument("--chunk", fmt::format("--chunk: {} rows are more than {}",
                                                      plan.chunk_rows, model.rows_max()));
}

base::Result<std::vector<BenchPoint>> MeasureEngine(model::Model& model,
                                                    const EngineBenchPlan& plan,
                                                    const base::Clock& clock,
                                                    const BenchHooks& hooks) {
  return Bench(model, plan, clock, hooks).Do();
}

}  // namespace plumb::cli
