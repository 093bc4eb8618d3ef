// model/families/deepseek_v41_need.h
// What a DeepSeek-V4.1 model takes, by its config's numbers alone: bytes of weights and tables,
// what one decoded token touches of them, and what a sequence keeps. For people who choose a
// machine. Thread: any; pure. Layouts: deepseek_v41_state.h.
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

// Bytes of keys and values that a decoded token at `position` reads, in all layers: windows, index
// keys and selected rows.
uint64_t DeepseekKvRead(const DeepseekConfig& config, uint64_t position,
                        Roundings roundings = Roundings::kKvq);

}  // namespace plumb::model
