// api/batch_input_test.cc
// Which lines a batch may have, and what is said of those that it may not.
#include "api/batch_input.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_folder.h"

namespace plumb::api {
namespace {

constexpr std::string_view kEndpoint = "/v1/chat/completions";

std::shared_ptr<const base::MappedFile> MapOf(const base::ScratchFolder& scratch,
                                              std::string_view text) {
  EXPECT_TRUE(base::WriteFileAtomic(scratch.File("in"), text).ok());
  return *base::MappedFile::Open(scratch.File("in"));
}

std::string CodeOfSplit(std::string_view text, BatchInputLimits limits = {}) {
  const base::ScratchFolder scratch;
  const auto split = BatchInput::Split(MapOf(scratch, text), limits);
  const auto* error = std::get_if<BatchError>(&split);
  return error == nullptr ? "" : error->code;
}

std::string Line(const std::string& id) {
  return "{\"custom_id\":\"" + id +
         "\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{}}";
}

std::vector<BatchError> Check(const std::string& text) {
  const base::ScratchFolder scratch;
  auto split = BatchInput::Split(MapOf(scratch, text), {});
  auto& input = std::get<std::unique_ptr<BatchInput>>(split);
  BatchCheck check(*input, std::string(kEndpoint), {});
  while (!check.GoOn(1)) {
  }
  return check.TakeErrors();
}

TEST(BatchInput, SplitsLines) {
  const base::ScratchFolder scratch;
  auto split = BatchInput::Split(MapOf(scratch, "a\r\n\n  \nbc\n\nlast"), {});
  const auto& input = std::get<std::unique_ptr<BatchInput>>(split);
  ASSERT_EQ(input->size(), 3u);
  EXPECT_EQ(input->Line(1), "bc");
  EXPECT_EQ(input->NumberOf(1), 4u);
  EXPECT_EQ(input->Line(2), "last");
}

TEST(BatchInput, HasFromOneToAsManyLinesAsItMay) {
  EXPECT_EQ(CodeOfSplit("\n \r\n"), "empty_file");
  EXPECT_EQ(CodeOfSplit("a\nb", {.lines_max = 2}), "");
  EXPECT_EQ(CodeOfSplit("a\nb\nc", {.lines_max = 2}), "too_many_tasks");
}

TEST(ReadBatchLine, KeepsTheBodyAsItWasWritten) {
  const auto read =
      ReadBatchLine(R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions",)"
                    R"("body":{"seed":18446744073709551615,"t":0.10,"s":"\u00e9\"\n","n":null}})",
                    kEndpoint, {});
  const auto* line = std::get_if<BatchLine>(&read);
  ASSERT_NE(line, nullptr) << std::get<BatchError>(read).message;
  EXPECT_EQ(line->custom_id, "a");
  EXPECT_EQ(line->body, "{\"seed\":18446744073709551615,\"t\":0.10,\"s\":\"é\\\"\\n\",\"n\":null}");
}

TEST(ReadBatchLine, NamesWhatIsWrong) {
  struct Case {
    std::string line;
    std::string code;
    std::string param;
  };
  const std::string rest = R"("method":"POST","url":"/v1/chat/completions","body":{}})";
  const Case cases[] = {
      {"{", "invalid_json_line", ""},
      {"[]", "invalid_json_line", ""},
      {"\xff", "invalid_json_line", ""},
      {"{" + rest, "missing_required_parameter", "custom_id"},
      {"{\"custom_id\":null," + rest, "missing_required_parameter", "custom_id"},
      {"{\"custom_id\":7," + rest, "invalid_type", "custom_id"},
      {"{\"custom_id\":\"\"," + rest, "invalid_value", "custom_id"},
      {"{\"custom_id\":\"" + std::string(kCustomIdBytesMax + 1, 'a') + "\"," + rest, "invalid_type",
       "custom_id"},
      {"{\"custom_id\":\"a\",\"extra\":1," + rest, "unknown_parameter", "extra"},
      {"{\"custom_id\":\"a\",\"custom_id\":\"b\"," + rest, "invalid_json_line", "custom_id"},
      {R"({"custom_id":"a","method":"GET","url":"/v1/chat/completions","body":{}})",
       "invalid_method", "method"},
      {R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{}})", "mismatched_url",
       "url"},
      {R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions"})",
       "missing_required_parameter", "body"},
      {R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":"{}"})",
       "invalid_type", "body"},
      {R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"stream":true}})",
       "invalid_value", "body.stream"},
  };
  for (const Case& one : cases) {
    const auto read = ReadBatchLine(one.line, kEndpoint, {});
    const auto* error = std::get_if<BatchError>(&read);
    ASSERT_NE(error, nullptr) << one.line;
    EXPECT_EQ(error->code, one.code) << one.line;
    EXPECT_EQ(error->param, one.param) << one.line;
    EXPECT_FALSE(error->message.empty()) << one.line;
  }
  const auto long_line = ReadBatchLine(Line("a"), kEndpoint, {.line_bytes_max = 10});
  EXPECT_EQ(std::get<BatchError>(long_line).code, "invalid_json_line");
}

TEST(BatchCheck, FindsEveryErrorWithItsLine) {
  EXPECT_TRUE(Check(Line("a") + "\n\n" + Line("b")).empty());
  const auto errors = Check(Line("a") + "\n\n{}\n" + Line("a") + "\n" + Line("b"));
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].line, 3u);
  EXPECT_EQ(errors[0].code, "missing_required_parameter");
  EXPECT_EQ(errors[1].line, 4u);
  EXPECT_EQ(errors[1].code, "duplicate_custom_id");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "{}\n";
  EXPECT_EQ(Check(many).size(), 100u) << "as many as are told";
}

}  // namespace
}  // namespace plumb::api
