// api/custom_input_test.cc
// The input of a custom tool out of its arguments: forms that models write, under every cut.
#include "api/custom_input.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/random.h"

namespace plumb::api {
namespace {

std::string Read(const std::vector<std::string_view>& pieces) {
  CustomInput input;
  std::string out;
  for (const std::string_view piece : pieces) input.Push(piece, out);
  input.Finish(out);
  return out;
}

struct Case {
  const char* arguments;
  const char* input;
};

constexpr Case kCases[] = {
    {R"({"input": "ls"})", "ls"},
    {R"( { "input" : "ls" } )", "ls"},
    {R"({"input":""})", ""},
    {R"({"input": "a\nb\t\"c\" \\ \/ \b\f\r"})", "a\nb\t\"c\" \\ / \b\f\r"},
    {R"({"input": "\u00e9\ud55c\ud83d\ude00"})", "\xC3\xA9\xED\x95\x9C\xF0\x9F\x98\x80"},
    {R"({"input": "한 😀"})", "한 😀"},
    {"{\"input\": \"two\nlines\"}", "two\nlines"},
    // Half of a pair.
    {R"({"input": "\ud83dx"})", "\xEF\xBF\xBDx"},
    {R"({"input": "\ud83d\n"})", "\xEF\xBF\xBD\n"},
    {R"({"input": "\ude00"})", "\xEF\xBF\xBD"},
    {R"({"input": "\ud83d\u0041"})",
     "\xEF\xBF\xBD"
     "A"},
    {R"({"input": "\ud83d"})", "\xEF\xBF\xBD"},
    // Escapes that are none.
    {R"({"input": "\d+ \u12x"})", "\\d+ \\u12x"},
    {R"({"input": "\u12"})", "\\u12"},
    // What follows the text is let go; what is cut off stays as far as it came.
    {R"({"input": "a", "more": 1})", "a"},
    {R"({"input": "a)", "a"},
    {R"({"input": "a\u00)", "a"},
    // No arguments.
    {"{}", ""},
    {" { } ", ""},
    {"", ""},
    // Another form is the input itself.
    {R"({"patch": "x"})", R"({"patch": "x"})"},
    {R"({"input": 5})", R"({"input": 5})"},
    {R"({"in put": "x"})", R"({"in put": "x"})"},
    {"*** Begin Patch\n", "*** Begin Patch\n"},
    {R"({"inp)", R"({"inp)"},
    {R"("input")", R"("input")"},
};

TEST(CustomInput, ReadsEveryForm) {
  for (const Case& test : kCases) EXPECT_EQ(Read({test.arguments}), test.input) << test.arguments;
}

TEST(CustomInput, IsTheSameUnderEveryCut) {
  for (const Case& test : kCases) {
    const std::string_view all = test.arguments;
    std::vector<std::string_view> bytes;
    for (size_t i = 0; i < all.size(); ++i) bytes.push_back(all.substr(i, 1));
    EXPECT_EQ(Read(bytes), test.input) << test.arguments;
    for (size_t i = 0; i <= all.size(); ++i) {
      for (size_t j = i; j <= all.size(); ++j) {
        EXPECT_EQ(Read({all.substr(0, i), all.substr(i, j - i), all.substr(j)}), test.input)
            << test.arguments << " cut at " << i << " and " << j;
      }
    }
  }
}

TEST(CustomInput, UndoesWhatAJsonWriterWrote) {
  base::Rng rng(7);
  constexpr std::string_view kPieces[] = {"a", "\"", "\\", "\n",  "\x01",
                                          "é", "한", "😀", "u12", "/"};
  for (int i = 0; i < 1000; ++i) {
    std::string text;
    for (uint64_t n = rng.Below(20); n > 0; --n) text += kPieces[rng.Below(std::size(kPieces))];
    const nlohmann::json arguments = {{"input", text}};
    EXPECT_EQ(Read({arguments.dump(-1, ' ', /*ensure_ascii=*/rng.Below(2) == 0)}), text);
  }
}

}  // namespace
}  // namespace plumb::api
