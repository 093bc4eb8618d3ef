// tests/browser/scripted_server.cc
// The real service behind the real HTTP server on a loopback port, with a scripted generator in
// place of a model: what a browser has to survive can be asked for by name (kScripts). Prints its
// address, and ends when its standard input does, so that no test leaves one behind.
#include "api/testing/scripted_server.h"

#include <iostream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/scratch_folder.h"

namespace plumb::browser {
namespace {

using api::testing::FakeAnswer;

constexpr uint32_t kContextMax = 8192;

constexpr std::string_view kMarkdown =
    "### Reversing a string\n\n"
    "Swap the **outer** characters and move *inwards*; `length` bytes are enough:\n\n"
    "```c\n"
    "void reverse(char *text, size_t length) {\n"
    "  for (size_t i = 0, j = length; i + 1 < j; ++i) {\n"
    "    char kept = text[i]; text[i] = text[--j]; text[j] = kept;  "
    "/* a line that is longer than the column */\n"
    "  }\n"
    "}\n"
    "```\n\n"
    "1. It takes no memory.\n"
    "2. It takes linear time:\n"
    "   - one pass,\n"
    "   - half as many swaps.\n\n"
    "<img src=x onerror=\"document.title='hacked'\"> <script>document.title='hacked'</script>";

constexpr std::string_view kWeatherCall =
    "The user asks for the weather. I call get_weather.\n</think>\n\nI look it up.\n\n"
    "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"get_weather\">\n"
    "<｜DSML｜ parameter name=\"city\" string=\"true\">Paris</｜DSML｜ parameter>\n"
    "<｜DSML｜ parameter name=\"days\" string=\"false\">2</｜DSML｜ parameter>\n"
    "</｜DSML｜ invoke>\n</｜DSML｜ calls>";

constexpr std::string_view kWeatherAnswer =
    "The result says sunny.\n</think>\n\nIt is sunny in Paris, for **two** days.";

enum class End { kStop, kNever, kError };

// A script is chosen by what ends last in the prompt; of two words that end there, by the later
// row.
struct Script {
  std::string_view word;
  std::string_view answer;
  End end = End::kStop;
};
constexpr Script kScripts[] = {
    {"markdown", kMarkdown},
    {"forever", "One, two, three", End::kNever},
    {"think forever", "Hmm, let me see", End::kNever},
    {"break", "This will not", End::kError},
    {"weather", kWeatherCall},
    {"sunny", kWeatherAnswer},
    {"안녕", "안녕하세요! **plumb**입니다. 무엇을 도와드릴까요? 😀"},
    {"hello", "Hello! How can I help?"},
};

FakeAnswer Play(const engine::Request& request, uint32_t) {
  std::string prompt;
  for (const base::TokenId token : request.prompt)
    if (base::Index(token) < 256) prompt += static_cast<char>(base::Index(token));
  const Script* chosen = &kScripts[std::size(kScripts) - 1];
  size_t last = 0;
  for (const Script& script : kScripts) {
    const size_t at = prompt.rfind(script.word);
    if (at == prompt.npos || at + script.word.size() < last) continue;
    chosen = &script;
    last = at + script.word.size();
  }
  FakeAnswer answer{api::testing::ByteTokens(chosen->answer, chosen->end == End::kStop), 1, {}};
  if (chosen->end == End::kError)
    answer.failure = base::Status(base::Code::kInternal, "scripted to fail");
  return answer;
}

struct Flags {
  std::vector<std::string> keys;
  bool deepseek = false;
};

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--deepseek") {
      flags.deepseek = true;
    } else if (flag == "--key" && i + 1 < argc) {
      flags.keys.push_back(argv[++i]);
    } else {
      std::cerr << "usage: scripted_server [--deepseek] [--key KEY]\n";
      return 2;
    }
  }
  const base::ScratchFolder scratch;  // of files and batches
  const api::testing::ScriptedServer server(
      flags.deepseek ? api::testing::DeepseekModel() : api::testing::ByteModel(), Play,
      {.api_keys = flags.keys,
       .model_names = {"scripted", "scripted-alias"},
       .context_max = kContextMax,
       .data_folder = scratch.File("data"),
       .data_limits = {},
       .service = {},
       .http = {.port = 0}});
  std::cout << "http://127.0.0.1:" << server.port() << "/" << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  return 0;
}

}  // namespace
}  // namespace plumb::browser

int main(int argc, char** argv) { return plumb::browser::Main(argc, argv); }
