// text/chat_template.cc: the messages as values to the Rust library, its text back. What keeps a
// template in bounds is there (rust/src/template.rs).
#include "text/chat_template.h"

#include <fmt/format.h>

#include <utility>

#include "text/rust.h"
#include "text/template_values.h"

namespace plumb::text {
namespace {

struct HandleFree {
  void operator()(plumb_template* handle) const { plumb_template_free(handle); }
};
using Handle = std::unique_ptr<plumb_template, HandleFree>;

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
  const plumb_template_variables given = {.bos_token = View(variables.bos_token),
                                          .eos_token = View(variables.eos_token),
                                          .date = View(variables.date)};
  plumb_template* raw = nullptr;
  RustBuffer error;
  const int32_t code = plumb_template_compile(View(source), given, &raw, error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "chat_template");
  auto state = std::make_unique<State>();
  state->source = source;
  state->handle.reset(raw);
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(state)));
}

base::Result<std::string> ChatTemplate::Render(const TemplateContext& context) const {
  TemplateValues given;
  RETURN_IF_ERROR(given.Write(context));
  const std::span<const plumb_value> values = given.values();
  RustBuffer out, error;
  const int32_t code = plumb_template_render_values(
      state_->handle.get(), values.data(), values.size(), kOutputBytesMax, out.out(), error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "messages");
  return std::string(out.text());
}

std::string_view ChatTemplate::source() const { return state_->source; }

}  // namespace plumb::text
