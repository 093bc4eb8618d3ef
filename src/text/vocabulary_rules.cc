// text/vocabulary_rules.cc: defaults by model and pre-tokenizer follow llama.cpp's loader, since
// the files leave them out where that loader knows them.
#include "text/vocabulary_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace plumb::text {
namespace {

using base::InvalidArgument;
using base::OkStatus;
using base::Status;

constexpr std::string_view kEndNames[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|EOT|>",
    "<eos>",
    "<|end_of_text|>",
    "<turn|>",
    "<end_of_utterance>",
    "[e~[",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "<|END_OF_TURN_TOKEN|>",
};
constexpr std::string_view kBosNames[] = {
    "<s>", "[CLS]", "<bos>", "<|startoftext|>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>",
};
constexpr std::string_view kEosNames[] = {
    "<|endoftext|>", "</s>", "<eos>", "<|end_of_text|>", "<｜end▁of▁sentence｜>",
};
// Pre-tokenizers whose files need a BOS even where they do not say so.
constexpr std::string_view kPreWithBos[] = {
    "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1",    "pixtral",
    "lfm2",   "midm-2.0", "tekken",    "gemma4",  "jina-v5-nano",
};

template <size_t n>
bool Holds(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

template <size_t n>
uint32_t Rank(const std::string_view (&names)[n], std::string_view name) {
  const auto at = std::find(std::begin(names), std::end(names), name);
  return at == std::end(names) ? 0 : static_cast<uint32_t>(at - std::begin(names)) + 1;
}

bool IsUnmistakable(std::string_view name) {
  return name.starts_with("<|") || name.starts_with("<｜") || name.starts_with("<end_of");
}

bool IsByteName(std::string_view name) {
  return name.size() == 6 && name.starts_with("<0x") && name.back() == '>' &&
         std::isxdigit(static_cast<unsigned char>(name[3])) &&
         std::isxdigit(static_cast<unsigned char>(name[4]));
}

Status CheckTexts(const VocabularySpec& spec) {
  uint64_t bytes = 0;
  for (const std::string& token : spec.tokens) {
    if (token.size() > kTokenTextBytesMax) {
      return InvalidArgument("tokens", fmt::format("a token of {} bytes is longer than {}",
                                                   token.size(), kTokenTextBytesMax));
    }
    bytes += token.size();
  }
  for (const std::string& merge : spec.merges) {
    if (merge.size() > 2 * kTokenTextBytesMax) {
      return InvalidArgument("merges", fmt::format("a merge of {} bytes is longer than {}",
                                                   merge.size(), 2 * kTokenTextBytesMax));
    }
    bytes += merge.size();
  }
  if (bytes > kVocabularyBytesMax) {
    return InvalidArgument("tokens", fmt::format("the vocabulary's {} bytes are more than {}",
                                                 bytes, kVocabularyBytesMax));
  }
  return OkStatus();
}

Status CheckShapes(const VocabularySpec& spec) {
  const size_t count = spec.tokens.size();
  if (count == 0 || count > kTokensMax) {
    return InvalidArgument("tokens",
                           fmt::format("{} tokens are not in [1, {}]", count, kTokensMax));
  }
  if (spec.merges.size() > kMergesMax) {
    return InvalidArgument(
        "merges", fmt::format("{} merges are more than {}", spec.merges.size(), kMergesMax));
  }
  if (!spec.scores.empty() && spec.scores.size() != count) {
    return InvalidArgument("scores",
                           fmt::format("{} scores for {} tokens", spec.scores.size(), count));
  }
  if (!spec.kinds.empty() && spec.kinds.size() != count) {
    return InvalidArgument("kinds",
                           fmt::format("{} kinds for {} tokens", spec.kinds.size(), count));
  }
  for (const float score : spec.scores) {
    if (std::isnan(score)) return InvalidArgument("scores", "a score is not a number");
  }
  for (const TokenKind kind : spec.kinds) {
    if (kind < TokenKind::kNormal || kind > TokenKind::kByte) {
      return InvalidArgument("kinds",
                             fmt::format("{} is no kind of token", static_cast<unsigned>(kind)));
    }
  }
  return CheckTexts(spec);
}

Status CheckIds(const VocabularySpec& spec) {
  const std::pair<const char*, std::optional<uint32_t>> ids[] = {
      {"bos", spec.bos}, {"eos", spec.eos}, {"eot", spec.eot}, {"unk", spec.unk},
      {"pad", spec.pad}, {"sep", spec.sep}, {"cls", spec.cls}, {"mask", spec.mask},
  };
  for (const auto& [name, id] : ids) {
    if (id && *id >= spec.tokens.size()) {
      return InvalidArgument(
          name, fmt::format("the {} token {} is not below {}", name, *id, spec.tokens.size()));
    }
  }
  return OkStatus();
}

void DecideKinds(const VocabularySpec& spec, VocabularyRules& rules) {
  rules.kinds = spec.kinds;
  if (rules.kinds.empty()) {
    rules.kinds.assign(spec.tokens.size(), TokenKind::kNormal);
    for (size_t id = 0; spec.model == "llama" && id < spec.tokens.size(); ++id) {
      if (IsByteName(spec.tokens[id])) rules.kinds[id] = TokenKind::kByte;
    }
  }
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    // Some files call these user-defined; as control tokens they are neither shown nor taken from
    // a user's text. Not so names that may be plain text: Gemma's "</s>" is an HTML tag.
    if (rules.kinds[id] == TokenKind::kUserDefined && IsEndName(spec.tokens[id]) &&
        IsUnmistakable(spec.tokens[id])) {
      rules.kinds[id] = TokenKind::kControl;
    }
  }
}

void DecideEnds(const VocabularySpec& spec, VocabularyRules& rules) {
  std::vector<std::string_view> names;
  for (uint32_t id = 0; id < spec.tokens.size(); ++id) {
    if (rules.kinds[id] == TokenKind::kControl && IsEndName(spec.tokens[id])) {
      names.push_back(spec.tokens[id]);
    }
  }
  const bool skip_end = EndOnlyEndsAPart(names);
  for (uint32_t id = 0; id < spec.tokens.size(); ++id) {
    const bool named = rules.kinds[id] == TokenKind::kControl && IsEndName(spec.tokens[id]) &&
                       !(skip_end && spec.tokens[id] == "<|end|>");
    if (named || rules.eos == id || spec.eot == id) rules.end_tokens.push_back(TokenId{id});
  }
}

Status DecideAround(const VocabularySpec& spec, VocabularyRules& rules) {
  if (spec.model == "bert") {
    const std::optional<uint32_t> open = spec.cls ? spec.cls : spec.bos;
    if (spec.add_bos.value_or(true) && open) rules.before.push_back(*open);
    if (spec.sep) rules.after.push_back(*spec.sep);
    return OkStatus();
  }
  const bool usual =
      spec.model == "llama" || spec.model == "gemma4" || Holds(kPreWithBos, spec.pre);
  if (spec.add_bos.value_or(false) && !rules.bos) {
    return InvalidArgument("add_bos", "a BOS token is asked for and none is named");
  }
  if (spec.add_eos.value_or(false) && !rules.eos) {
    return InvalidArgument("add_eos", "an EOS token is asked for and none is named");
  }
  if (spec.add_bos.value_or(usual) && rules.bos) rules.before.push_back(*rules.bos);
  if (spec.add_eos.value_or(false)) rules.after.push_back(*rules.eos);
  return OkStatus();
}

}  // namespace

bool IsEndName(std::string_view name) { return Holds(kEndNames, name); }
uint32_t BosNameRank(std::string_view name) { return Rank(kBosNames, name); }
uint32_t EosNameRank(std::string_view name) { return Rank(kEosNames, name); }

bool EndOnlyEndsAPart(std::span<const std::string_view> end_names) {
  const auto has = [&](std::string_view name) {
    return std::find(end_names.begin(), end_names.end(), name) != end_names.end();
  };
  const bool calls = has("<|call|>") || has("<|calls|>");
  return calls && (has("<|return|>") || has("<|flush|>"));
}

base::Result<VocabularyRules> DecideVocabulary(const VocabularySpec& spec) {
  RETURN_IF_ERROR(CheckShapes(spec));
  RETURN_IF_ERROR(CheckIds(spec));
  VocabularyRules rules;
  rules.bos = spec.bos;
  rules.eos = spec.eos;
  rules.unknown = spec.unk;
  if (spec.model == "llama") {
    // Ids that SentencePiece gives when nothing is said.
    if (!rules.unknown) rules.unknown = 0;
    if (!rules.bos && spec.tokens.size() > 1) rules.bos = 1;
    if (!rules.eos && spec.tokens.size() > 2) rules.eos = 2;
    rules.add_space_prefix = spec.add_space_prefix.value_or(true);
  }
  DecideKinds(spec, rules);
  DecideEnds(spec, rules);
  RETURN_IF_ERROR(DecideAround(spec, rules));
  return rules;
}

}  // namespace plumb::text
