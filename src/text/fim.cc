// text/fim.cc
// The table of families, then the prompt.
#include "text/fim.h"

#include <algorithm>

namespace plumb::text {

using base::Result;

struct FimFormat::Family {
  std::string_view prefix;
  std::string_view suffix;
  std::string_view middle;    // empty: the answer follows the last text at once
  bool suffix_first = false;  // the tokens' texts in that order
};

// Sources: the model cards and tokenizer files of the families named.
const FimFormat::Family FimFormat::kFamilies[] = {
    // Qwen2.5-Coder, CodeGemma.
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    // StarCoder, StarCoder2, Granite code models.
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    // SantaCoder.
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
    // DeepSeek-Coder, DeepSeek-V3: the text before, the hole, the text after.
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
    // Codestral: the text after comes first.
    {"[PREFIX]", "[SUFFIX]", "", true},
};

namespace {

// What begins another file or pads, in the families above; not all have them.
constexpr std::string_view kOtherEnds[] = {"<|fim_pad|>",        "<|repo_name|>", "<|file_sep|>",
                                           "<|file_separator|>", "<fim_pad>",     "<file_sep>"};

// A whole token of that name, which no text is read as by accident.
std::optional<TokenId> FindToken(const Tokenizer& tokenizer, std::string_view name) {
  const auto tokens = tokenizer.Encode(name, ControlTokens::kParse, /*add_special=*/false);
  if (!tokens.ok() || tokens->size() != 1 || tokenizer.TokenName(tokens->front()) != name)
    return std::nullopt;
  return tokens->front();
}

}  // namespace

std::optional<FimFormat> FimFormat::Find(const Tokenizer& tokenizer) {
  for (const Family& family : kFamilies) {
    const auto prefix = FindToken(tokenizer, family.prefix);
    const auto suffix = FindToken(tokenizer, family.suffix);
    const auto middle = family.middle.empty() ? std::nullopt : FindToken(tokenizer, family.middle);
    if (!prefix || !suffix || (!middle && !family.middle.empty())) continue;
    FimFormat format(tokenizer);
    format.prefix_ = *prefix;
    format.suffix_ = *suffix;
    format.middle_ = middle;
    format.suffix_first_ = family.suffix_first;
    format.ends_ = {*prefix, *suffix};
    if (middle) format.ends_.push_back(*middle);
    for (const std::string_view name : kOtherEnds) {
      const auto end = FindToken(tokenizer, name);
      if (end && format.ends_.size() < kEndsMax) format.ends_.push_back(*end);
    }
    std::sort(format.ends_.begin(), format.ends_.end());
    return format;
  }
  return std::nullopt;
}

Result<std::vector<TokenId>> FimFormat::Encode(std::string_view prefix,
                                               std::string_view suffix) const {
  // What stands before a text, and not what stands after it.
  ASSIGN_OR_RETURN(std::vector<TokenId> out,
                   tokenizer_->Encode("", ControlTokens::kParse, /*add_special=*/true));
  const auto bos = tokenizer_->bos();
  out.resize(bos && !out.empty() && out.front() == *bos ? 1 : 0);
  const auto add = [&](TokenId token, std::string_view text) -> base::Status {
    out.push_back(token);
    ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                     tokenizer_->Encode(text, ControlTokens::kAsText, /*add_special=*/false));
    out.insert(out.end(), tokens.begin(), tokens.end());
    return base::OkStatus();
  };
  if (suffix_first_) RETURN_IF_ERROR(add(suffix_, suffix));
  RETURN_IF_ERROR(add(prefix_, prefix));
  if (!suffix_first_) RETURN_IF_ERROR(add(suffix_, suffix));
  if (middle_) out.push_back(*middle_);
  return out;
}

}  // namespace plumb::text
