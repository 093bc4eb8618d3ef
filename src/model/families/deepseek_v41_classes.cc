// model/families/deepseek_v41_classes.cc
// The file's list, or the tokenizer's, held to the config.
#include "model/families/deepseek_v41_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace plumb::model {
namespace {

using base::Corrupt;
using base::Result;
using base::Status;

constexpr const char* kFile = "engram_token_map.json";

Status Wrong(std::string message) { return Corrupt(std::move(message)).WithField(kFile); }

void SkipSpace(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

// Takes one character, and white space behind it.
bool TakeMark(std::string_view& text, char mark) {
  if (!text.starts_with(mark)) return false;
  text.remove_prefix(1);
  SkipSpace(text);
  return true;
}

Result<std::vector<uint32_t>> FromFile(std::string_view json, const DeepseekConfig& config) {
  ASSIGN_OR_RETURN(std::vector<uint32_t> classes, ParseIdList(json, config.vocabulary));
  if (classes.size() != config.vocabulary) {
    return Wrong(fmt::format("{} has {} numbers, but the vocabulary has {} entries", kFile,
                             classes.size(), config.vocabulary));
  }
  return classes;
}

Result<std::vector<uint32_t>> FromTokenizer(const DeepseekConfig& config,
                                            const TokenClassMaker& make) {
  if (!make) {
    return base::Unsupported(fmt::format("the folder has no {}, and its tokenizer.json was not "
                                         "given to make one from",
                                         kFile))
        .WithField(kFile);
  }
  Result<std::vector<uint32_t>> made = make();
  if (!made.ok()) {
    return Status(made.status().code(),
                  fmt::format("the folder has no {}, and none can be made from its tokenizer: {}",
                              kFile, made.status().message()))
        .WithField(kFile);
  }
  std::vector<uint32_t> classes = std::move(made).value();
  if (classes.size() <= config.engram_pad_token || classes.size() > config.vocabulary) {
    return Corrupt(fmt::format("the tokenizer has {} entries, but the vocabulary {}",
                               classes.size(), config.vocabulary))
        .WithField("tokenizer.json");
  }
  // A tokenizer of another version, or other normalisers: every hash would be another.
  const uint64_t count = uint64_t{*std::max_element(classes.begin(), classes.end())} + 1;
  if (count != config.engram_classes) {
    return Corrupt(fmt::format("the tokenizer's texts make {} classes, but config.json says {} "
                               "(engram_compressed_vocab_size)",
                               count, config.engram_classes))
        .WithField("tokenizer.json");
  }
  classes.resize(config.vocabulary, classes[config.engram_pad_token]);
  return classes;
}

}  // namespace

Result<std::vector<uint32_t>> DeepseekClasses(const Checkpoint& checkpoint,
                                              const DeepseekConfig& config,
                                              const TokenClassMaker& make) {
  if (!checkpoint.Has(kDeepseekTokenMapKey)) return FromTokenizer(config, make);
  ASSIGN_OR_RETURN(const std::string_view json, checkpoint.Text(kDeepseekTokenMapKey));
  ASSIGN_OR_RETURN(std::vector<uint32_t> classes, FromFile(json, config));
  for (size_t id = 0; id < classes.size(); ++id) {
    if (classes[id] < config.engram_classes) continue;
    return Wrong(fmt::format("{} gives token {} the class {}, but there are {}", kFile, id,
                             classes[id], config.engram_classes));
  }
  return classes;
}

Result<std::vector<uint32_t>> ParseIdList(std::string_view json, uint64_t size_max) {
  const Status no_list =
      Wrong(fmt::format("{} is no list of at most {} integers >= 0", kFile, size_max));
  std::string_view text = json;
  SkipSpace(text);
  if (!TakeMark(text, '[')) return no_list;
  std::vector<uint32_t> ids;
  if (!text.starts_with(']')) {
    do {
      uint32_t id = 0;
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
      if (parsed.ec != std::errc() || ids.size() == size_max) return no_list;
      ids.push_back(id);
      text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
      SkipSpace(text);
    } while (TakeMark(text, ','));
  }
  if (!TakeMark(text, ']') || !text.empty()) return no_list;
  return ids;
}

}  // namespace plumb::model
