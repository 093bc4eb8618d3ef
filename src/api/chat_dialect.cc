// api/chat_dialect.cc
// See chat_dialect.h.
#include "api/chat_dialect.h"

#include "api/chat_writer.h"

namespace plumb::api {

base::Result<ReadBody> ChatDialect::Read(std::string_view body, const BodyOrigin&) const {
  ASSIGN_OR_RETURN(ChatRequest request, ParseChatRequest(body, limits_));
  ReadBody read;
  read.writer = [this, samples = request.samples, usage = request.include_usage](
                    AnswerHead head, std::vector<ReadPrompt>) {
    return std::make_unique<ChatWriter>(std::move(head), samples, usage, tokenizer_);
  };
  read.request = std::move(request);
  return read;
}

}  // namespace plumb::api
