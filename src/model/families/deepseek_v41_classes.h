// model/families/deepseek_v41_classes.h
// Classes of token ids for the n-gram tables: tokens whose normalised texts are equal share one.
// They are no tensor: a folder may bring them as engram_token_map.json, a list of a class for each
// id; else whoever has the tokenizer makes them (LoadOptions::token_classes). Read next: engram.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"
#include "model/families/deepseek_v41_config.h"

namespace plumb::model {

using TokenClassMaker = std::function<base::Result<std::vector<uint32_t>>()>;

// One for each id below config.vocabulary, each below config.engram_classes. Ids behind those of
// the tokenizer, which no text yields, have the class of the padding token. kCorrupt: the file is
// no such list, or their number is not the config's; kUnsupported: neither file nor tokenizer;
// field() names the file; and the errors of `make`, LoadOptions::token_classes.
base::Result<std::vector<uint32_t>> DeepseekClasses(const Checkpoint& checkpoint,
                                                    const DeepseekConfig& config,
                                                    const TokenClassMaker& make);

// "[3, 1, 2]", and nothing else but white space. kCorrupt: another text, or more than `size_max`
// numbers.
base::Result<std::vector<uint32_t>> ParseIdList(std::string_view json, uint64_t size_max);

}  // namespace plumb::model
