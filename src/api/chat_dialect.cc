// api/chat_dialect.cc
// See chat_dialect.h.
#include "api/chat_dialect.h"

#include <utility>

#include "api/chat_writer.h"

namespace plumb::api {

base::Result<ReadBody> ChatDialect::Read(std::string_view body, const BodyOrigin&) const {
  ASSIGN_OR_RETURN(ChatRequest request, ParseChatRequest(body, limits_));
  ReadBody read;
  const ChatShape shape{.samples = request.samples,
                        .usage_in_chunks = request.include_usage,
                        .custom_tools = std::move(request.custom_tools)};
  read.writer = [this, shape](AnswerHead head, std::vector<ReadPrompt>) {
    return std::make_unique<ChatWriter>(std::move(head), shape, tokenizer_);
  };
  read.request = std::move(request);
  return read;
}

}  // namespace plumb::api
