// tests/fuzz/tokenize_request_fuzz.cc
// Arbitrary bytes as the body of /v1/tokenize and of /v1/detokenize: an answer that is JSON, a
// prompt to be counted, or a refusal that names a field.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/json_writer.h"
#include "api/testing/deepseek_vocabulary.h"
#include "api/tokenize_dialect.h"
#include "base/check.h"

namespace {

using plumb::api::Dialect;

void Read(const Dialect& dialect, std::string_view body) {
  const auto read = dialect.Read(body, {});
  if (!read.ok()) {
    CHECK(read.status().code() == plumb::base::Code::kInvalidArgument) << read.status().ToString();
    std::string json;
    plumb::api::AppendJsonString(json, read.status().message());
    CHECK(nlohmann::json::accept(json)) << json;
    return;
  }
  CHECK(read->answer.has_value() != static_cast<bool>(read->count)) << "one of both";
  if (read->answer) CHECK(nlohmann::json::accept(*read->answer)) << *read->answer;
  if (read->count) CHECK(!read->request.input.messages.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto tokenizer = plumb::api::testing::MakeDeepseekTokenizer();
  static const plumb::api::RequestLimits limits{.vocabulary_size = tokenizer->size(),
                                                .abilities = {.tools = true, .reasoning = true}};
  static const plumb::api::TokenizeDialect tokenize(limits, 4096, *tokenizer);
  static const plumb::api::DetokenizeDialect detokenize(limits, *tokenizer);
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  Read(tokenize, body);
  Read(detokenize, body);
  return 0;
}
