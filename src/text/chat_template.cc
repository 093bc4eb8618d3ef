// text/chat_template.cc: the messages as JSON to the Rust library, its text back. What keeps a
// template in bounds is there (rust/src/template.rs).
#include "text/chat_template.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "text/rust.h"

namespace plumb::text {
namespace {

using nlohmann::ordered_json;

struct HandleFree {
  void operator()(plumb_template* handle) const { plumb_template_free(handle); }
};
using Handle = std::unique_ptr<plumb_template, HandleFree>;

base::Result<std::string> Dump(const ordered_json& json, std::string_view field) {
  try {
    return json.dump();
  } catch (const ordered_json::exception&) {
    return base::InvalidArgument(std::string(field),
                                 fmt::format("{} hold a text that is not valid UTF-8", field));
  }
}

}  // namespace

struct ChatTemplate::State {
  std::string source;
  Handle handle;
};

ChatTemplate::ChatTemplate(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChatTemplate::~ChatTemplate() = default;

base::Result<std::unique_ptr<ChatTemplate>> ChatTemplate::Compile(std::string_view source,
                                                                  TemplateVariables variables) {
  if (source.size() > kSourceBytesMax) {
    return base::InvalidArgument(
        "chat_template", fmt::format("the chat template has {} bytes, more than {}", source.size(),
                                     kSourceBytesMax));
  }
  ordered_json json = {{"bos_token", variables.bos_token},
                       {"eos_token", variables.eos_token},
                       {"date", variables.date}};
  ASSIGN_OR_RETURN(const std::string given, Dump(json, "variables"));
  plumb_template* raw = nullptr;
  RustBuffer error;
  const int32_t code = plumb_template_compile(View(source), View(given), &raw, error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "chat_template");
  auto state = std::make_unique<State>();
  state->source = source;
  state->handle.reset(raw);
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(state)));
}

base::Result<std::string> ChatTemplate::Render(std::span<const ChatMessage> messages,
                                               bool add_generation_prompt) const {
  ordered_json list = ordered_json::array();
  for (const ChatMessage& message : messages) {
    ordered_json item = {{"role", message.role}, {"content", message.content}};
    if (!message.name.empty()) item["name"] = message.name;
    list.push_back(std::move(item));
  }
  // tools and documents are defined and none, as transformers leaves them when not given.
  const ordered_json context = {{"messages", std::move(list)},
                                {"add_generation_prompt", add_generation_prompt},
                                {"tools", nullptr},
                                {"documents", nullptr}};
  ASSIGN_OR_RETURN(const std::string given, Dump(context, "messages"));
  RustBuffer out, error;
  const int32_t code = plumb_template_render(state_->handle.get(), View(given), kOutputBytesMax,
                                             out.out(), error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "messages");
  return std::string(out.text());
}

std::string_view ChatTemplate::source() const { return state_->source; }

}  // namespace plumb::text
