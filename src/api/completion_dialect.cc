// api/completion_dialect.cc
// See completion_dialect.h.
#include "api/completion_dialect.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "api/completion_writer.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

// What the answer repeats: a text as the caller gave it, ids as they are spelled.
std::vector<EchoedPrompt> Echoed(const std::vector<RawPrompt>& given,
                                 std::vector<ReadPrompt> prompts,
                                 const text::Tokenizer& tokenizer) {
  std::vector<EchoedPrompt> echoed;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const bool ids = !given[i].tokens.empty();
    std::string text = ids ? SpellTokens(prompts[i].tokens, tokenizer) : given[i].text;
    echoed.push_back({std::move(text), std::move(prompts[i].tokens)});
  }
  return echoed;
}

}  // namespace

Status CompletionDialect::ApplySuffix(CompletionRequest& request) const {
  if (request.suffix.empty()) return base::OkStatus();
  if (!fim_) {
    return InvalidArgument("suffix",
                           "suffix is not supported: this model has no tokens for filling in the "
                           "middle of a text; leave it out");
  }
  std::vector<base::TokenId>& stops = request.sampling.stop_tokens;
  if (stops.size() + fim_->ends().size() > engine::kStopTokensMax) {
    return InvalidArgument("stop_token_ids",
                           fmt::format("with suffix at most {} stop tokens are taken",
                                       engine::kStopTokensMax - fim_->ends().size()));
  }
  stops.insert(stops.end(), fim_->ends().begin(), fim_->ends().end());
  for (RawPrompt& prompt : request.prompts) {
    auto tokens = fim_->Encode(prompt.text, request.suffix);
    if (!tokens.ok()) return std::move(tokens).status().WithField("prompt");
    prompt.tokens = *std::move(tokens);
  }
  return base::OkStatus();
}

Result<ReadBody> CompletionDialect::Read(std::string_view body, const BodyOrigin&) const {
  ASSIGN_OR_RETURN(CompletionRequest request, ParseCompletionRequest(body, limits_));
  RETURN_IF_ERROR(ApplySuffix(request));
  const CompletionShape shape{.choices = request.choices,
                              .samples = request.samples,
                              .logprobs = request.logprobs,
                              .usage_in_chunks = request.include_usage,
                              .echo = request.echo,
                              .empty = request.empty};
  ReadBody read;
  read.writer = [this, shape, given = shape.echo ? request.prompts : std::vector<RawPrompt>()](
                    AnswerHead head, std::vector<ReadPrompt> prompts) {
    std::vector<EchoedPrompt> echoed(prompts.size());
    if (shape.echo) echoed = Echoed(given, std::move(prompts), tokenizer_);
    return std::make_unique<CompletionWriter>(std::move(head), shape, std::move(echoed),
                                              tokenizer_);
  };
  read.request = std::move(request);
  return read;
}

}  // namespace plumb::api
