// api/embedding_dialect.cc
// See embedding_dialect.h.
#include "api/embedding_dialect.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "api/embedding_writer.h"

namespace plumb::api {

base::Result<ReadBody> EmbeddingDialect::Read(std::string_view body, const BodyOrigin&) const {
  ASSIGN_OR_RETURN(EmbeddingRequest request, ParseEmbeddingRequest(body, limits_, options_));
  ReadBody read;
  read.writer = [encoding = request.encoding](AnswerHead head, std::vector<ReadPrompt> prompts) {
    return std::make_unique<EmbeddingWriter>(std::move(head), encoding,
                                             static_cast<uint32_t>(prompts.size()));
  };
  read.request = std::move(request);
  return read;
}

std::string EmbeddingDialect::TooLongMessage(uint64_t prompt_tokens, uint64_t context_max) const {
  return fmt::format(
      "an input has {} tokens and this model's context holds {}; cut it into shorter ones",
      prompt_tokens, context_max);
}

}  // namespace plumb::api
