// cli/local_talker.cc
// From a request body to events of the engine, behind cli/local_talker.h.
#include "cli/local_talker.h"

#include <fmt/format.h>

#include "api/chat_prompt.h"
#include "api/chat_request.h"
#include "api/chat_writer.h"
#include "base/random.h"

namespace plumb::cli {
namespace {

// Drawn seeds read back from JSON everywhere.
constexpr uint64_t kSeedMask = (uint64_t{1} << 53) - 1;

}  // namespace

base::Result<std::unique_ptr<LocalTalker>> LocalTalker::Create(LocalEngine& local) {
  if (!local.can_chat()) {
    return base::Unsupported("'" + local.id() +
                             "' has no chat template: it completes text ('plumb generate' with "
                             "\"prompt\") and does not chat");
  }
  return std::unique_ptr<LocalTalker>(new LocalTalker(local));
}

LocalTalker::~LocalTalker() { local_.engine().Stop(); }

base::Status LocalTalker::Start(const std::string& body, AnswerSink& sink) {
  api::RequestLimits limits;
  limits.vocabulary_size = local_.tokenizer().size();
  limits.abilities = abilities();
  ASSIGN_OR_RETURN(const api::ChatRequest chat, api::ParseChatRequest(body, limits));
  ASSIGN_OR_RETURN(text::ChatPrompt prompt,
                   local_.chat_format().Encode(chat.input, local_.engine().context_max()));
  parser_ = local_.chat_format().NewParser(prompt);
  prompt_stops_ = prompt.stops;
  calls_ = 0;
  engine::Request request{};
  RETURN_IF_ERROR(api::ApplyPrompt(chat, std::move(prompt), &local_.grammars(), request));
  const uint64_t size = request.prompt.size();
  const uint64_t context = local_.engine().context_max();
  if (size >= context) {
    return base::InvalidArgument("messages", fmt::format("the conversation has {} tokens and the "
                                                         "context {}",
                                                         size, context))
        .WithReason("context_length_exceeded");
  }
  request.id = engine::RequestId{++last_id_};
  request.priority = engine::Priority::kInteractive;
  if (!chat.seed_given) request.sampling.seed = base::EntropySeed() & kSeedMask;
  const auto room = static_cast<uint32_t>(context - size);
  request.sampling.tokens_max = std::min(chat.tokens_max.value_or(room), room);
  seed_ = static_cast<int64_t>(request.sampling.seed);
  sink_ = &sink;
  return local_.engine().Submit(std::move(request), *this);
}

void LocalTalker::Cancel() { local_.engine().Cancel(engine::RequestId{last_id_}); }

void LocalTalker::OnEvent(engine::TokenEvent event) {
  AnswerPiece piece;
  parser_->Push(event.text, piece.deltas);
  const bool by_model = event.finish && api::EndedByModel(*event.finish, prompt_stops_);
  if (event.finish) parser_->Finish(by_model, piece.deltas);
  for (const text::AnswerDelta& delta : piece.deltas)
    calls_ += delta.kind == text::AnswerDelta::Kind::kCallBegin ? 1 : 0;
  if (event.finish) {
    const engine::Finish& finish = *event.finish;
    AnswerEnd end{.status = {},
                  .finish_reason = "cancelled",
                  .prompt_tokens = finish.prompt_tokens,
                  .completion_tokens = finish.completion_tokens,
                  .seed = seed_};
    if (finish.reason == engine::FinishReason::kError) {
      end.status = finish.status;
    } else if (finish.reason != engine::FinishReason::kCancelled) {
      end.finish_reason =
          by_model && calls_ > 0 ? "tool_calls" : api::FinishReasonName(finish.reason);
    }
    piece.end = std::move(end);
  }
  sink_->OnPiece(std::move(piece));
}

}  // namespace plumb::cli
