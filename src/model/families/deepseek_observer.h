// model/families/deepseek_observer.h
// Where tests look into a forward pass of DeepSeek-V4.1: named stages, each with the values that
// the next operation reads. A test may also replace them, so that every stage can be computed from
// a reference's inputs. Without an observer nothing here costs anything.
#pragma once

#include <cstdint>
#include <span>

namespace plumb::model {

// Shapes are of the rows alive at that moment, row-major.
enum class DeepseekStage : uint8_t {
  kStreamsIn,      // [rows, streams, hidden]: what a layer begins with, after its n-gram rows
  kPreMix,         // [rows, streams]: the mix that the layer's first collapse uses
  kAttentionIn,    // [rows, hidden]
  kAttentionOut,   // [rows, hidden]
  kExpertsOut,     // [rows, hidden]
  kStreamsOut,     // [rows, streams, hidden]: after the layer
  kFinalHidden,    // [rows, hidden]: layer is 0
  kWindowRows,     // [rows, head_dim]: before they are stored
  kExpertWeights,  // [rows, experts_used], in order of the experts' indexes; read only
};

// Lists of the rows alive, of varying length, ascending; read only.
enum class DeepseekChoice : uint8_t {
  kExperts,     // of each row
  kRows,        // selected rows of the layer's source
  kCandidates,  // candidate blocks
};

// Thread: the model's.
class DeepseekObserver {
 public:
  virtual ~DeepseekObserver() = default;
  virtual void Values(DeepseekStage stage, uint32_t layer, std::span<float> values) = 0;
  virtual void Chose(DeepseekChoice choice, uint32_t layer, uint32_t row,
                     std::span<const uint32_t> chosen) = 0;
};

}  // namespace plumb::model
