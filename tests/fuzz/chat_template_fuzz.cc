// tests/fuzz/chat_template_fuzz.cc
// Any bytes as a chat template: it compiles or is refused, renders or fails, within the limits that
// text/chat_template.h states.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using plumb::text::ChatMessage;
  using plumb::text::ChatTemplate;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto compiled = ChatTemplate::Compile(source, {"<s>", "</s>", "29 Nov 2026"});
  if (!compiled.ok()) {
    CHECK(compiled.status().code() == plumb::base::Code::kInvalidArgument)
        << compiled.status().ToString();
    return 0;
  }
  const ChatMessage messages[] = {
      {"system", "Be brief.", ""}, {"user", "안녕 <b>\n{{ x }}", "kim"}, {"assistant", "", ""}};
  const auto text = (*compiled)->Render(messages, true);
  if (text.ok()) CHECK(text->size() <= ChatTemplate::kOutputBytesMax) << text->size();
  return 0;
}
