// tests/clients/agents/agent_server.cc
// The real service on a loopback port over a generator that replays SESSION.json in DeepSeek-V4.1's
// syntax: routes, parsers and writers are those of `plumb serve`. Prints its address, and ends when
// its standard input does. A session: {"turns": [{"think", "text", "call": {"name", "arguments"}}],
// "asides": {WORDS: TEXT}}. A prompt that has WORDS is answered with TEXT (a title, say), any other
// with the first turn whose text it does not have yet.
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/testing/scripted_server.h"
#include "base/disk.h"

namespace plumb::agents {
namespace {

using api::testing::FakeAnswer;
using api::testing::ScriptedModel;
using api::testing::ScriptedServer;
using api::testing::ScriptedServerOptions;
using nlohmann::json;

constexpr uint32_t kContextMax = 1 << 20;  // a token is a byte, and an agent's tools are 100 kB
constexpr uint64_t kSessionBytesMax = 1 << 20;
constexpr uint32_t kChunkTokens = 3;  // cuts every tag and many characters

std::string CallText(const json& call) {
  std::string text = "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"";
  text += call.at("name").get<std::string>() + "\">\n";
  for (const auto& [name, value] : call.at("arguments").items()) {
    const bool is_text = value.is_string();
    text += "<｜DSML｜ parameter name=\"" + name + "\" string=\"" + (is_text ? "true" : "false");
    text += "\">" + (is_text ? value.get<std::string>() : value.dump());
    text += "</｜DSML｜ parameter>\n";
  }
  return text + "</｜DSML｜ invoke>\n</｜DSML｜ calls>";
}

// What a model writes in the session's place.
class Session {
 public:
  // Borrows the tokenizer; `session` is as the head of this file says, else the process ends.
  Session(json session, const text::Tokenizer& tokenizer)
      : session_(std::move(session)), tokenizer_(tokenizer) {}

  FakeAnswer Answer(const engine::Request& request) const {
    std::string prompt;
    for (const base::TokenId token : request.prompt)
      if (base::Index(token) < 256) prompt += static_cast<char>(base::Index(token));
    // Where thoughts are off, the prompt ends behind "</think>".
    const bool thinks = tokenizer_.TokenName(request.prompt.back()) == "<think>";
    return {api::testing::ByteTokens(Text(prompt, thinks)), kChunkTokens, {}};
  }

 private:
  std::string Text(const std::string& prompt, bool thinks) const {
    for (const auto& [words, answer] : session_.at("asides").items())
      if (prompt.find(words) != prompt.npos)
        return (thinks ? "</think>" : "") + answer.get<std::string>();
    for (const json& turn : session_.at("turns")) {
      const std::string text = turn.at("text");
      if (prompt.find(text) != prompt.npos) continue;
      const std::string thoughts = thinks ? turn.value("think", "") + "\n</think>\n\n" : "";
      return thoughts + text + (turn.contains("call") ? CallText(turn["call"]) : "");
    }
    return std::string(thinks ? "</think>" : "") + "The session is over.";
  }

  const json session_;
  const text::Tokenizer& tokenizer_;
};

int Main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: agent_server SESSION.json\n";
    return 2;
  }
  const auto file = base::ReadFile(argv[1], kSessionBytesMax);
  if (!file.ok()) {
    std::cerr << file.status().message() << "\n";
    return 1;
  }
  ScriptedModel model = api::testing::DeepseekModel();
  const Session session(json::parse(*file), *model.tokenizer);
  ScriptedServerOptions options;
  options.model_names = {"scripted"};
  options.context_max = kContextMax;
  options.http.port = 0;
  const ScriptedServer server(
      std::move(model),
      [&session](const engine::Request& request, uint32_t) { return session.Answer(request); },
      std::move(options));
  std::cout << "http://127.0.0.1:" << server.port() << "\n" << std::flush;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  return 0;
}

}  // namespace
}  // namespace plumb::agents

int main(int argc, char** argv) { return plumb::agents::Main(argc, argv); }
