// cli/bench_engine.cc
// One class that lists the points and takes the samples, behind cli/bench_engine.h.
#include "cli/bench_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "cli/bench_rows.h"
#include "cli/format.h"

namespace plumb::cli {
namespace {

constexpr uint32_t kWarmUpSteps = 4;  // before each sample of decode

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

  base::Result<BenchMeasurement> Do() {
    RETURN_IF_ERROR(CheckPlan(plan_, model_));
    ListPoints();
    ASSIGN_OR_RETURN(rows_, BenchRows::Create(model_, size_, [this](uint64_t rows) {
                       rows_done_ += rows;
                       if (hooks_.progress) hooks_.progress(rows_done_, rows_total_, what_);
                     }));
    std::vector<BenchPoint*> decoding;
    for (BenchPoint& point : points_) {
      if (!point.skipped.empty()) continue;
      if (point.kind == BenchKind::kPrefill) {
        MeasurePrefill(point);
      } else {
        decoding.push_back(&point);
      }
    }
    if (BenchRows::ComputesContexts(model_)) {
      for (BenchPoint* point : decoding) MeasureDecode({&point, 1});
    } else {
      MeasureDecode(decoding);
    }
    if (!decoding.empty()) MeasureRead();
    return BenchMeasurement{std::move(points_), std::move(read_rates_)};
  }

 private:
  void ListPoints() {
    size_.chunk_rows = plan_.chunk_rows;
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
    const uint64_t bytes = uint64_t{PagesOf(point)} * model_.info().page_bytes +
                           BenchRows::StateBytes(model_, point.batch);
    if (bytes > plan_.kv_memory_max) {
      point.skipped = fmt::format("needs {} for keys and values, {} may be used",
                                  FormatBytes(bytes), FormatBytes(plan_.kv_memory_max));
    } else {
      size_.pages = std::max(size_.pages, PagesOf(point));
      size_.sequences = std::max(size_.sequences, point.batch);
      size_.prompt_max = std::max(size_.prompt_max, point.prompt);
      const uint64_t warm_ups = point.kind == BenchKind::kPrefill ? 1 : plan_.repeat;
      rows_total_ +=
          point.tokens * plan_.repeat + WarmUpTokens(point) * warm_ups + ContextTokens(point);
    }
    points_.push_back(std::move(point));
  }

  uint32_t PagesPerSequence(const BenchPoint& point) const {
    return PagesForTokens(point.kind == BenchKind::kPrefill
                              ? point.prompt
                              : uint64_t{point.context} + plan_.decode_tokens);
  }
  uint32_t PagesOf(const BenchPoint& point) const { return PagesPerSequence(point) * point.batch; }
  uint64_t WarmUpTokens(const BenchPoint& point) const {
    return point.kind == BenchKind::kPrefill
               ? std::min(point.prompt, plan_.chunk_rows)
               : uint64_t{point.batch} * std::min(kWarmUpSteps, plan_.decode_tokens);
  }
  // That are computed for this point, and not for the one before it.
  uint64_t ContextTokens(const BenchPoint& point) {
    if (point.kind != BenchKind::kDecode || !BenchRows::ComputesContexts(model_)) return 0;
    size_.prompt_max = std::max(size_.prompt_max, point.context);
    return std::exchange(context_, point.context) == point.context ? 0 : point.context;
  }

  void MeasurePrefill(BenchPoint& point) {
    what_ = NameOf(point);
    rows_->Prefill(std::min(point.prompt, plan_.chunk_rows));
    for (uint32_t sample = 0; sample < plan_.repeat; ++sample) {
      const base::Instant start = clock_.Now();
      rows_->Prefill(point.prompt);
      point.seconds.push_back(SecondsSince(start));
    }
  }

  // One sample of each point in turn, `repeat` times.
  void MeasureDecode(std::span<BenchPoint* const> points) {
    for (uint32_t sample = 0; sample < plan_.repeat; ++sample) {
      for (BenchPoint* point : points) {
        MeasureRead();
        SampleDecode(*point);
      }
    }
  }

  void SampleDecode(BenchPoint& point) {
    what_ = NameOf(point);
    const BenchDecode decode = {point.context, point.batch, PagesPerSequence(point)};
    rows_->Prepare(decode);
    rows_->Rewind(decode);
    rows_->Decode(decode, std::min(kWarmUpSteps, plan_.decode_tokens));
    rows_->Rewind(decode);
    const base::Instant start = clock_.Now();
    rows_->Decode(decode, plan_.decode_tokens);
    point.seconds.push_back(SecondsSince(start));
  }

  // Between the samples, and before the steps that warm up, since it empties the caches.
  void MeasureRead() {
    if (!hooks_.read_rate) return;
    for (uint32_t i = 0; i < kReadProbes; ++i) read_rates_.push_back(hooks_.read_rate());
  }

  double SecondsSince(base::Instant start) const {
    return std::max((clock_.Now() - start).seconds(), 1e-9);
  }

  model::Model& model_;
  const EngineBenchPlan& plan_;
  const base::Clock& clock_;
  const BenchHooks& hooks_;
  std::vector<BenchPoint> points_;
  std::vector<double> read_rates_;
  BenchSize size_;
  std::optional<uint32_t> context_;  // of the last point that decodes
  std::unique_ptr<BenchRows> rows_;
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

base::Result<BenchMeasurement> MeasureEngine(model::Model& model, const EngineBenchPlan& plan,
                                             const base::Clock& clock, const BenchHooks& hooks) {
  return Bench(model, plan, clock, hooks).Do();
}

}  // namespace plumb::cli
