// model/families/deepseek_v41_need.h
// What a DeepSeek-V4.1 model takes, by its config's numbers alone: bytes of weights and tables,
// what one decoded token touches of them, what a sequence keeps, and what a step must compute and
// read. For people who choose a machine, and for measurements. Thread: any; pure. Layouts:
// deepseek_v41_state.h.
#pragma once

#include <cstdint>

#include "model/families/deepseek_v41_config.h"
#include "model/load.h"

namespace plumb::model {

struct DeepseekNeed {
  // In the files, mapped and not copied.
  uint64_t weight_bytes = 0;  // of the text model, without n-gram tables
  uint64_t table_bytes = 0;   // n-gram tables
  uint64_t expert_bytes = 0;  // of weight_bytes: the routed experts
  uint64_t draft_bytes = 0;   // draft blocks, which are not computed yet
  uint64_t parameters = 0;    // of the text model, tables included

  // A decoded token.
  uint64_t active_parameters = 0;    // that its row is multiplied with
  uint64_t active_weight_bytes = 0;  // read for it, rows of the embedding and of tables included
  uint64_t table_row_bytes = 0;      // of these, of n-gram tables

  // A sequence.
  uint64_t token_bytes = 0;       // keys and values of a token: 890 for the released model
  uint64_t page_bytes = 0;        // of kPageTokens tokens
  uint64_t state_bytes = 0;       // working memory beside its pages
  uint64_t checkpoint_bytes = 0;  // what is kept to go on from a page boundary

  uint64_t workspace_bytes = 0;  // about, of a step of kDeepseekNeedRows rows
};
constexpr uint32_t kDeepseekNeedRows = 512;

DeepseekNeed NeedOf(const DeepseekConfig& config, Roundings roundings = Roundings::kKvq);

// Rows of some sequences alike in one Forward; words as in SequenceRows.
struct DeepseekStep {
  uint64_t sequences = 1;
  uint64_t position = 0;     // of each one's first row
  uint64_t rows = 1;         // of each
  uint64_t replay_from = 0;  // of each
  uint64_t logits_rows = 1;  // of each
};

// What a step must do at least. Operations of f32 (a multiply-add is two): every matrix that a row
// meets, in the layers in which the row is alive, index scores, scores and sums of attention.
// Bytes: every weight that some row meets, once; of routed experts those that rows which choose
// evenly are expected to meet (exact for one row); rows of embedding and tables; keys and values of
// each sequence, once for each layer.
struct DeepseekWork {
  double operations = 0;
  double weight_bytes = 0;
  double row_bytes = 0;  // of the embedding and of n-gram tables
  double kv_bytes = 0;

  double bytes() const { return weight_bytes + row_bytes + kv_bytes; }
};
DeepseekWork DeepseekWorkOf(const DeepseekConfig& config, const DeepseekStep& step,
                            Roundings roundings = Roundings::kKvq);

}  // namespace plumb::model
