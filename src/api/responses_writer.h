// api/responses_writer.h
// An answer in the shape of the Responses API: items (reasoning, message, calls) that follow each
// other as the model wrote them, whole or as the events that tell their growth. The one idea: the
// whole answer is made by the same steps as the stream, with nobody listening to the events, so the
// two cannot differ. What is to be kept goes to the store at the end. Read next:
// api/responses_item.h, api/responses_store.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer_writer.h"
#include "api/custom_input.h"
#include "api/responses_item.h"
#include "api/responses_store.h"
#include "api/responses_tools.h"
#include "base/hash.h"
#include "text/tokenizer.h"

namespace plumb::api {

// What the answer is about besides what was generated. A value type.
struct ResponsesPlan {
  std::string echo;  // ResponsesRequest::echo
  ResponsesTools tools;
  ItemList input;        // the conversation that is answered
  base::Hash256 caller;  // BodyOrigin::isolation
  bool store = false;
  bool background = false;  // ReadBody::detached; the answer is only for the store
  bool encrypted_reasoning = false;
  engine::RequestId request{};
  std::optional<IdempotentCopy> idempotent_copy = std::nullopt;  // KeptResponse
};

class ResponsesWriter final : public AnswerWriter {
 public:
  // Borrows the tokenizer and the store.
  ResponsesWriter(AnswerHead head, ResponsesPlan plan, const text::Tokenizer& tokenizer,
                  ResponsesStore& store);

  std::string Accepted() override;
  void Begin(std::string_view system_fingerprint) override;
  void StartStream(std::string& out) override;
  void Part(uint32_t sample, const text::AnswerDelta& part,
            std::span<const engine::TokenLogprob> logprobs, std::string& out) override;
  void EndSample(uint32_t sample, const SampleEnd& end, std::string& out) override;
  void EndStream(const AnswerUsage& usage, std::string& out) override;
  void Fail(const ApiError& error, std::string& out) override;
  std::string Whole(std::span<const SampleAnswer> samples, const AnswerUsage& usage) override;

 private:
  // Appends an event, where somebody listens; `write` adds its members.
  template <typename Write>
  void Event(std::string_view type, std::string& out, Write write);
  // "item_id", "output_index": of the newest item.
  void WritePlace(JsonWriter& json) const;

  bool IsOpen(ItemKind kind) const { return open_ && items_.back().kind == kind; }
  void Open(ResponsesItem item, std::string& out);
  void OpenMessage(std::string& out);
  void OpenCall(const std::string& told, std::string& out);
  // More of the open item's text.
  void Append(std::string_view text, std::string& out);
  void AppendArguments(std::string_view arguments, std::string& out);
  void Close(ItemStatus status, std::string& out);
  // The events that an item's text has come to its end.
  void TellTextDone(std::string& out);

  ItemForm FormOf(size_t item) const;
  std::string ResponseJson(std::string_view status, const AnswerUsage* usage,
                           const ApiError* error) const;
  void WriteUsage(JsonWriter& json, const AnswerUsage& usage) const;
  std::string_view final_status() const { return cut_ ? "incomplete" : "completed"; }
  // `json` is the answer as it was given.
  void Keep(std::string json);

  const AnswerHead head_;
  const ResponsesPlan plan_;
  const text::Tokenizer& tokenizer_;
  ResponsesStore& store_;
  const std::string id_;  // "resp_..."
  std::string fingerprint_;
  bool streaming_ = false;
  uint64_t sequence_ = 0;

  std::vector<ResponsesItem> items_;           // of the answer
  std::vector<std::string> logprobs_;          // of each item, a JSON array
  bool open_ = false;                          // the newest item grows
  CustomInput custom_;                         // of the newest item
  std::vector<engine::TokenLogprob> pending_;  // for the next text of a message
  bool cut_ = false;                           // by its length
};

}  // namespace plumb::api
