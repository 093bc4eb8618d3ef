// text/prompt_segments.cc
// Stretches between special tokens; behind text/prompt_segments.h.
#include "text/prompt_segments.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumb::text {

using base::InvalidArgument;

PromptWriter& PromptWriter::Append(PromptSegment::Kind kind, std::string_view text) {
  if (text.empty()) return *this;
  size_ += text.size();
  if (segments_.empty() || segments_.back().kind != kind) segments_.push_back({kind, ""});
  segments_.back().text += text;
  return *this;
}

SpecialTokens::SpecialTokens(const Tokenizer& tokenizer, std::span<const std::string_view> names)
    : names_(names.begin(), names.end()) {
  for (uint32_t id = 0; id < tokenizer.size(); ++id) {
    const auto found = std::ranges::find(names_, tokenizer.TokenName(TokenId{id}));
    if (found != names_.end()) ids_.emplace(*found, TokenId{id});
  }
  for (const auto& [name, id] : ids_) sorted_.push_back(id);
  std::ranges::sort(sorted_);
}

SpecialTokens::Found SpecialTokens::Find(std::string_view text) const {
  for (size_t place = 0; place < text.size(); ++place) {
    const std::string_view rest = text.substr(place);
    Found found{place, ""};
    for (const std::string_view name : names_) {
      if (rest.starts_with(name) && name.size() > found.name.size()) found.name = name;
    }
    if (!found.name.empty()) return found;
  }
  return {};
}

base::Result<std::vector<TokenId>> SpecialTokens::Encode(const Tokenizer& tokenizer,
                                                         std::span<const PromptSegment> segments,
                                                         const TokenScope& scope) const {
  std::vector<TokenId> tokens;
  std::string stretch;
  const auto flush = [&]() -> base::Status {
    if (stretch.empty()) return base::OkStatus();
    auto encoded = EncodeIn(scope, tokenizer, stretch, ControlTokens::kNone);
    if (!encoded.ok() && encoded.status().code() == base::Code::kInvalidArgument)
      return InvalidArgument("messages", encoded.status().message());
    if (!encoded.ok()) return encoded.status();
    for (const TokenId id : *encoded) {
      // A vocabulary whose merges spell a special token could not be told from one.
      if (std::ranges::binary_search(sorted_, id)) {
        return base::Unsupported(
            fmt::format("this tokenizer makes {} of plain text", tokenizer.TokenName(id)));
      }
    }
    tokens.insert(tokens.end(), encoded->begin(), encoded->end());
    stretch.clear();
    return base::OkStatus();
  };
  for (const PromptSegment& segment : segments) {
    std::string_view rest = segment.text;
    while (segment.kind == PromptSegment::Kind::kTemplate) {
      const Found found = Find(rest);
      if (found.place == rest.npos) break;
      const auto id = ids_.find(found.name);
      if (id == ids_.end()) {
        return base::Unsupported(fmt::format("this tokenizer has no {}", found.name));
      }
      stretch += rest.substr(0, found.place);
      RETURN_IF_ERROR(flush());
      tokens.push_back(id->second);
      rest.remove_prefix(found.place + found.name.size());
    }
    stretch += rest;
  }
  RETURN_IF_ERROR(flush());
  return tokens;
}

base::Status CheckPromptSize(uint64_t bytes, const Tokenizer& tokenizer, uint32_t tokens_max) {
  const uint64_t tokens_min = bytes / tokenizer.token_bytes_max();
  if (tokens_min <= tokens_max) return base::OkStatus();
  return InvalidArgument(
             "messages",
             fmt::format("this model's maximum context length is {} tokens, but the messages have "
                         "at least {}; shorten them",
                         tokens_max, tokens_min))
      .WithReason("context_length_exceeded");
}

}  // namespace plumb::text
