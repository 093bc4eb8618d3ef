// model/families/deepseek_v41.cc
// The forward pass, read top to bottom: embedding into streams, the layers, the last collapse and
// the head; then loading. Each part is a file of its own: hyper_connections.h (streams),
// deepseek_engram.h (n-gram rows), deepseek_compressor.h (main rows), deepseek_attention.h with
// deepseek_selection.h, deepseek_experts.h; what is kept of a sequence: deepseek_v41_state.h.
// Sources: DeepInfer 0.1.0 (models/v4_modules), vLLM 0.33 (models/deepseek_v41), TileKernels.
#include "model/families/deepseek_v41.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "model/families/deepseek_attention.h"
#include "model/families/deepseek_batch.h"
#include "model/families/deepseek_compressor.h"
#include "model/families/deepseek_engram.h"
#include "model/families/deepseek_experts.h"
#include "model/families/deepseek_rotary.h"
#include "model/families/deepseek_step.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/deepseek_v41_state.h"
#include "model/families/deepseek_v41_weights.h"
#include "model/families/hyper_connections.h"

namespace plumb::model {
namespace {

using base::Result;
using base::Status;

// Activations of the rows alive, row-major f32.
struct Activations {
  Scratch<float> streams;  // [rows, streams, hidden]
  Scratch<float> hidden;   // [rows, hidden]: what a sub-layer reads
  Scratch<float> output;   // [rows, hidden]: what it gives
  Scratch<float> first;    // [rows, streams]: the mix in front of the first layer

  static Result<Activations> Allocate(const DeepseekConfig& config, uint64_t rows) {
    Activations x;
    ASSIGN_OR_RETURN(x.streams, Scratch<float>::Allocate(rows * config.streams * config.hidden));
    ASSIGN_OR_RETURN(x.hidden, Scratch<float>::Allocate(rows * config.hidden));
    ASSIGN_OR_RETURN(x.output, Scratch<float>::Allocate(rows * config.hidden));
    ASSIGN_OR_RETURN(x.first, Scratch<float>::Allocate(rows * config.streams));
    return x;
  }
};

class DeepseekModel final : public Model {
 public:
  // Everything that does not move once parts borrow it.
  DeepseekModel(DeepseekConfig config, DeepseekWeights weights, const LoadOptions& options,
                DeepseekObserver* observer)
      : config_(std::move(config)),
        weights_(std::move(weights)),
        roundings_(RoundingsOf(options.roundings)),
        layout_(config_, roundings_, options.backtrack_rows, *options.replay_rows > 0),
        compute_{options.pool, options.kernels},
        observer_(observer),
        limits_{.rows_max = options.rows_max,
                .logits_rows_max = options.logits_rows_max,
                .context_max =
                    std::min(config_.context_max,
                             options.context_max != 0 ? options.context_max : kContextDefaultMax),
                .vocabulary = config_.vocabulary,
                .width = config_.hidden},
        batch_(limits_) {}

  Status MakeParts(std::shared_ptr<const void> files, EngramAddresses addresses,
                   const LoadOptions& options);

  const ModelInfo& info() const override { return info_; }
  uint32_t rows_max() const override { return limits_.rows_max; }
  uint32_t logits_rows_max() const override { return limits_.logits_rows_max; }
  void Forward(std::span<const SequenceRows> sequences, std::span<float> logits) override;
  void SaveState(const std::byte* state, uint32_t position,
                 std::span<std::byte> checkpoint) const override {
    layout_.Save(state, position, checkpoint);
  }
  void LoadState(std::span<const std::byte> checkpoint, uint32_t position,
                 std::byte* state) const override {
    layout_.Load(checkpoint, position, state);
  }

 private:
  struct Parts {
    Activations x;
    DeepseekRotary rotary;
    HyperConnections hyper;
    DeepseekEngram engram;
    DeepseekCompressor compressor;
    DeepseekAttentionLayer attention;
    DeepseekExperts experts;
  };

  void CheckStates() const;
  void Embed();
  void Layer(uint32_t index, float*& read);
  void EndRows();
  void ReadStreams(const float* read, const Floats& norm);
  void KeepProgress();
  void Observe(DeepseekStage stage, uint32_t layer, float* values, uint64_t width) {
    if (observer_ != nullptr) observer_->Values(stage, layer, {values, batch_.rows() * width});
  }

  std::shared_ptr<const void> files_;  // weights_ are views of them
  const DeepseekConfig config_;
  const DeepseekWeights weights_;
  const DeepseekRoundings roundings_;
  const DeepseekLayout layout_;
  const tensor::Compute compute_;
  DeepseekObserver* const observer_;
  const DeepseekLimits limits_;
  DeepseekBatch batch_;
  std::optional<Parts> parts_;
  ModelInfo info_;
};

// ---- a step ----

void DeepseekModel::Forward(std::span<const SequenceRows> sequences, std::span<float> logits) {
  batch_.Gather(sequences);
  CheckStates();
  Parts& parts = *parts_;
  parts.engram.Begin(batch_, weights_);
  parts.rotary.Begin(compute_, batch_.positions());
  Embed();
  float* read = parts.x.first.data();  // the mix that the next sub-layer reads the streams by
  for (uint32_t i = 0; i < config_.layer_count && batch_.rows() > 0; ++i) Layer(i, read);
  KeepProgress();
  CHECK(logits.size() == uint64_t{batch_.logits_rows()} * config_.vocabulary) << logits.size();
  if (batch_.rows() == 0) return;
  ReadStreams(read, weights_.norm);
  Observe(DeepseekStage::kFinalHidden, 0, parts.x.hidden.data(), config_.hidden);
  batch_.TakeHidden(parts.x.hidden.data());
  const uint32_t rows = batch_.logits_rows();
  if (rows > 0) Multiply(compute_, weights_.head, parts.x.hidden.data(), rows, logits.data());
}

// `read` [rows, streams] is replaced by the mix for the layer above.
void DeepseekModel::Layer(uint32_t index, float*& read) {
  const DeepseekLayerWeights& weights = weights_.layers[index];
  const DeepseekLayer& shape = config_.layers[index];
  Parts& parts = *parts_;
  float* streams = parts.x.streams.data();
  float* hidden = parts.x.hidden.data();
  float* output = parts.x.output.data();
  const uint64_t width = uint64_t{config_.streams} * config_.hidden;

  if (shape.engram != kNoLayer) {
    parts.engram.Add(compute_, batch_, shape.engram, weights.engram, streams);
  }
  Observe(DeepseekStage::kStreamsIn, index, streams, width);
  Observe(DeepseekStage::kPreMix, index, read, config_.streams);
  ReadStreams(read, weights.attention_norm);
  Observe(DeepseekStage::kAttentionIn, index, hidden, config_.hidden);
  if (shape.owns_kv) {
    parts.compressor.Write(compute_, parts.rotary, batch_, index, weights.attention.compressor,
                           hidden);
  }
  if (index == config_.decoder_begin) {
    batch_.KeepReplayed();  // every row of the prompt has its main row now
    EndRows();
  }
  parts.attention.MakeWindowRows(compute_, parts.rotary, batch_, index, weights.attention, hidden);
  if (index + 1 == config_.layer_count) {
    batch_.KeepWanted();
    EndRows();
  }
  if (batch_.rows() > 0) {
    const HyperMix mix = parts.hyper.Mix(compute_, weights.attention_mix, streams, batch_.rows());
    parts.attention.Attend(compute_, parts.rotary, batch_, index, weights.attention, hidden,
                           output);
    Observe(DeepseekStage::kAttentionOut, index, output, config_.hidden);
    parts.hyper.Update(compute_, mix, output, batch_.rows(), streams);
    RoundActivations(compute_, roundings_, batch_.rows(), width, streams);
    read = mix.read;
  }
  parts.attention.KeepWindowRows(batch_, index);

  const HyperMix mix = parts.hyper.Mix(compute_, weights.feed_mix, streams, batch_.rows());
  ReadStreams(read, weights.feed_norm);
  parts.experts.Compute(compute_, index, weights.feed, hidden, batch_.rows(), output);
  Observe(DeepseekStage::kExpertsOut, index, output, config_.hidden);
  parts.hyper.Update(compute_, mix, output, batch_.rows(), streams);
  RoundActivations(compute_, roundings_, batch_.rows(), width, streams);
  Observe(DeepseekStage::kStreamsOut, index, streams, width);
  read = mix.read;
}

// hidden = RMSNorm(the streams, as `read` mixes them) * norm.
void DeepseekModel::ReadStreams(const float* read, const Floats& norm) {
  Parts& parts = *parts_;
  float* hidden = parts.x.hidden.data();
  const uint32_t rows = batch_.rows();
  parts.hyper.Collapse(compute_, parts.x.streams.data(), read, rows, hidden);
  RoundActivations(compute_, roundings_, rows, config_.hidden, hidden);
  RmsNorm(compute_, hidden, rows, config_.hidden, norm.data(), config_.rms_epsilon, hidden);
  RoundActivations(compute_, roundings_, rows, config_.hidden, hidden);
}

void DeepseekModel::EndRows() {
  batch_.Compact(parts_->x.streams.data(), uint64_t{config_.streams} * config_.hidden);
  batch_.Compact(parts_->x.hidden.data(), config_.hidden);
  parts_->attention.Compact(batch_);
}

void DeepseekModel::Embed() {
  const uint64_t hidden = config_.hidden;
  const uint32_t streams = config_.streams;
  ForEachRow(compute_, batch_.rows(), streams * hidden, [&](uint32_t row) {
    float* x = parts_->x.streams.data() + row * streams * hidden;
    tensor::BlockRow(weights_.embedding, base::Index(batch_.tokens()[row]), x);
    for (uint32_t k = 1; k < streams; ++k) std::copy_n(x, hidden, x + k * hidden);
    float* first = parts_->x.first.data() + uint64_t{row} * streams;
    std::fill_n(first, streams, 0.0f);
    first[0] = 1;
  });
}

// ---- what is kept of a sequence ----

void DeepseekModel::CheckStates() const {
  for (const SequenceRows& sequence : batch_.sequences()) {
    if (sequence.position == 0) {
      DeepseekLayout::SetProgress(sequence.state, {});
      continue;
    }
    const DeepseekProgress progress = DeepseekLayout::Progress(sequence.state);
    CHECK(sequence.position <= progress.end &&
          uint64_t{sequence.position} + layout_.backtrack_rows() >= progress.newest)
        << "position " << sequence.position << " after " << progress.end << ", newest "
        << progress.newest;
    CHECK(sequence.replay_from >= progress.begin)
        << "replay from " << sequence.replay_from << ", resumed at " << progress.begin;
  }
}

void DeepseekModel::KeepProgress() {
  for (const SequenceRows& sequence : batch_.sequences()) {
    DeepseekProgress progress = DeepseekLayout::Progress(sequence.state);
    const auto count = static_cast<uint32_t>(sequence.tokens.size());
    progress.end = sequence.position + count;
    progress.newest = std::max(progress.newest, progress.end);
    DeepseekLayout::SetProgress(sequence.state, progress);
    for (uint32_t back = std::min(count, layout_.token_slots()); back >= 1; --back) {
      layout_.SetToken(sequence.state, progress.end - back, sequence.tokens[count - back]);
    }
  }
}

// ---- loading ----

Status DeepseekModel::MakeParts(std::shared_ptr<const void> files, EngramAddresses addresses,
                                const LoadOptions& options) {
  files_ = std::move(files);
  const uint32_t rows = limits_.rows_max;
  const HyperShape shape = {.streams = config_.streams,
                            .hidden = config_.hidden,
                            .iterations = config_.sinkhorn_iterations,
                            .epsilon = config_.hyper_epsilon,
                            .rms_epsilon = config_.rms_epsilon};
  ASSIGN_OR_RETURN(Activations x, Activations::Allocate(config_, rows));
  ASSIGN_OR_RETURN(DeepseekRotary rotary, DeepseekRotary::Create(config_, rows));
  ASSIGN_OR_RETURN(HyperConnections hyper, HyperConnections::Create(shape, rows));
  ASSIGN_OR_RETURN(DeepseekEngram engram, DeepseekEngram::Create(config_, roundings_, layout_,
                                                                 std::move(addresses), rows));
  ASSIGN_OR_RETURN(DeepseekCompressor compressor,
                   DeepseekCompressor::Create(config_, roundings_, layout_, rows));
  ASSIGN_OR_RETURN(
      DeepseekAttentionLayer attention,
      DeepseekAttentionLayer::Create(config_, roundings_, layout_, limits_, observer_));
  ASSIGN_OR_RETURN(DeepseekExperts experts,
                   DeepseekExperts::Create(config_, roundings_, rows, observer_));
  parts_.emplace(Parts{std::move(x), std::move(rotary), std::move(hyper), std::move(engram),
                       std::move(compressor), std::move(attention), std::move(experts)});
  info_ = {.architecture = std::string(kDeepseekArchitecture),
           .name = config_.name,
           .vocabulary_size = config_.vocabulary,
           .hidden_width = config_.hidden,
           .context_max = limits_.context_max,
           .page_bytes = layout_.page_bytes(),
           .parameters = weights_.parameters,
           .weight_bytes = weights_.weight_bytes,
           .numerics_id = DeepseekNumericsId(options.roundings, *options.replay_rows),
           .state_bytes = layout_.state_bytes(),
           .checkpoint_bytes = layout_.checkpoint_bytes(),
           .replay_rows = *options.replay_rows,
           .backtrack_max = options.backtrack_rows};
  if (config_.image_token != kNoToken) info_.never_sampled = {TokenId{config_.image_token}};
  return base::OkStatus();
}

// Rings and scratch grow with it; drafts are never that long.
constexpr uint32_t kBacktrackRowsMax = 1024;

// What they say, with the rows of replay that hold when they do not.
Result<LoadOptions> CheckedOptions(const DeepseekConfig& config, const LoadOptions& options) {
  if (options.backtrack_rows > kBacktrackRowsMax) {
    return base::InvalidArgument("backtrack_rows",
                                 fmt::format("backtrack_rows is {}, expected at most {}",
                                             options.backtrack_rows, kBacktrackRowsMax));
  }
  const uint64_t least = uint64_t{config.window} + options.backtrack_rows;
  LoadOptions checked = options;
  if (!options.replay_rows) {
    checked.replay_rows = std::max(kReplayRows, config.window + 2 * options.backtrack_rows);
  }
  if (*checked.replay_rows == 0 || *checked.replay_rows >= least) return checked;
  return base::InvalidArgument(
      "replay_rows",
      fmt::format("{} rows of replay are too few, expected off (0) or at least {}: the model's "
                  "window of {} and {} rows of backtracking",
                  *checked.replay_rows, least, config.window, options.backtrack_rows));
}

}  // namespace

Result<std::unique_ptr<Model>> LoadDeepseekV41(const Checkpoint& checkpoint,
                                               const LoadOptions& options) {
  return LoadDeepseekV41Observed(checkpoint, options, nullptr);
}

Result<std::unique_ptr<Model>> LoadDeepseekV41Observed(const Checkpoint& checkpoint,
                                                       const LoadOptions& options,
                                                       DeepseekObserver* observer) {
  ASSIGN_OR_RETURN(DeepseekConfig config, ReadDeepseekConfig(checkpoint));
  ASSIGN_OR_RETURN(const LoadOptions checked, CheckedOptions(config, options));
  ASSIGN_OR_RETURN(DeepseekWeights weights, MapDeepseekWeights(checkpoint, config, checked));
  EngramAddresses addresses;
  if (!config.engram_layers.empty()) {
    ASSIGN_OR_RETURN(addresses, EngramAddresses::Create(config, weights.token_classes));
  }
  auto model =
      std::make_unique<DeepseekModel>(std::move(config), std::move(weights), checked, observer);
  RETURN_IF_ERROR(model->MakeParts(checkpoint.Keep(), std::move(addresses), checked));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace plumb::model
