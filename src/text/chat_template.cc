// text/chat_template.cc: the messages as JSON to the Rust library, its text back. What keeps a
// template in bounds is there (rust/src/template.rs).
#include "text/chat_template.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "text/ordered_json.h"
#include "text/rust.h"
#include "text/template_json.h"

namespace plumb::text {
namespace {

using nlohmann::ordered_json;

struct HandleFree {
  void operator()(plumb_template* handle) const { plumb_template_free(handle); }
};
using Handle = std::unique_ptr<plumb_template, HandleFree>;

// As JSON; texts as they are, since the library checks that they are UTF-8 (nlohmann's dump decodes
// them once more, at a tenth of the speed). Recursion is bounded by what is put in.
void Append(std::string& out, const ordered_json& json) {
  std::string_view separator;
  switch (json.type()) {
    case ordered_json::value_t::string:
      return AppendPythonString(out, json.get_ref<const std::string&>());
    case ordered_json::value_t::array:
      out += '[';
      for (const ordered_json& item : json) {
        out += std::exchange(separator, ",");
        Append(out, item);
      }
      out += ']';
      return;
    case ordered_json::value_t::object:
      out += '{';
      for (const auto& [name, member] : json.items()) {
        out += std::exchange(separator, ",");
        AppendPythonString(out, name);
        out += ':';
        Append(out, member);
      }
      out += '}';
      return;
    default:
      out += json.dump();
  }
}

std::string Dump(const ordered_json& json) {
  std::string out;
  Append(out, json);
  return out;
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
  const std::string given = Dump(json);
  plumb_template* raw = nullptr;
  RustBuffer error;
  const int32_t code = plumb_template_compile(View(source), View(given), &raw, error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "chat_template");
  auto state = std::make_unique<State>();
  state->source = source;
  state->handle.reset(raw);
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(state)));
}

base::Result<std::string> ChatTemplate::Render(const TemplateContext& context) const {
  ASSIGN_OR_RETURN(const ordered_json json, TemplateJson(context));
  const std::string given = Dump(json);
  RustBuffer out, error;
  const int32_t code = plumb_template_render(state_->handle.get(), View(given), kOutputBytesMax,
                                             out.out(), error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "messages");
  return std::string(out.text());
}

std::string_view ChatTemplate::source() const { return state_->source; }

}  // namespace plumb::text
