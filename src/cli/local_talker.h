// cli/local_talker.h
// A Talker over the engine of this process. The request goes through the chat API's own parser, so
// that it means what it would mean to a server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/local_engine.h"
#include "cli/talker.h"

namespace plumb::cli {

// A resource type; destroying it ends a running answer.
class LocalTalker final : public Talker, private engine::EventSink {
 public:
  // kUnsupported: the model has no chat template. The engine is borrowed.
  static base::Result<std::unique_ptr<LocalTalker>> Create(LocalEngine& local);
  ~LocalTalker() override;

  const std::string& model() const override { return local_.id(); }
  text::ChatAbilities abilities() const override { return local_.chat_format().abilities(); }
  base::Status Start(const std::string& body, AnswerSink& sink) override;
  void Cancel() override;

 private:
  explicit LocalTalker(LocalEngine& local) : local_(local) {}
  void OnEvent(engine::TokenEvent event) override;

  LocalEngine& local_;
  AnswerSink* sink_ = nullptr;                  // of the running answer
  std::unique_ptr<text::AnswerParser> parser_;  // likewise
  std::vector<std::string> prompt_stops_;
  uint32_t calls_ = 0;  // begun in it
  int64_t seed_ = 0;
  uint64_t last_id_ = 0;
};

}  // namespace plumb::cli
