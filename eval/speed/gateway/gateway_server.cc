// eval/speed/gateway/gateway_server.cc
// Everything of `plumb serve` but the model: the real HTTP server, dialects, template, tokenizer
// and writers, over a generator that answers every prompt at once with the same sentence. So what
// it takes is what the gateway takes. Prints its address, and ends when its standard input does.
#include <iostream>
#include <limits>
#include <string_view>

#include "api/testing/scripted_server.h"
#include "cli/model_text.h"
#include "model/load.h"

namespace plumb::speed {
namespace {

using api::testing::FakeAnswer;

constexpr uint32_t kContextMax = 1u << 18;
constexpr uint32_t kConnectionsMax = 16384;
constexpr std::string_view kAnswer = "The sky is blue because air scatters short waves more.";

struct Flags {
  std::string model;    // a file or folder: its tokenizer and chat template are used
  bool silent = false;  // an answer falls silent after its first token, until its client leaves
};

base::Result<api::testing::ScriptedModel> LoadModel(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, model::OpenModelFile(path));
  ASSIGN_OR_RETURN(cli::ModelText text, cli::LoadModelText(*file));
  if (!text.can_chat) return base::InvalidArgument("--model", "this model does not chat");
  return api::testing::ScriptedModel{std::move(text.tokenizer), std::move(text.chat_format)};
}

base::Result<FakeAnswer> MakeAnswer(const text::Tokenizer& tokenizer, bool silent) {
  FakeAnswer answer{.tokens = {}, .chunk_tokens = 0, .failure = {}};
  ASSIGN_OR_RETURN(answer.tokens,
                   tokenizer.Encode(kAnswer, text::ControlTokens::kAsText, /*add_special=*/false));
  if (silent) {
    answer.tokens.resize(1);
  } else {
    answer.tokens.push_back(tokenizer.end_tokens().front());
  }
  return answer;
}

base::Status Serve(const Flags& flags) {
  ASSIGN_OR_RETURN(api::testing::ScriptedModel model, LoadModel(flags.model));
  ASSIGN_OR_RETURN(const FakeAnswer answer, MakeAnswer(*model.tokenizer, flags.silent));
  api::testing::ScriptedServerOptions options{.api_keys = {},
                                              .model_names = {"scripted"},
                                              .context_max = kContextMax,
                                              .service = {},
                                              .http = {.port = 0}};
  options.http.limits.connections_max = kConnectionsMax;
  options.service.generations.live_max = kConnectionsMax;
  options.service.generations.queue_max = kConnectionsMax;
  const api::testing::ScriptedServer server(
      std::move(model), [&answer](const engine::Request&, uint32_t) { return answer; },
      std::move(options));
  std::cout << "http://127.0.0.1:" << server.port() << "/" << std::endl;
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  return base::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--silent") {
      flags.silent = true;
    } else if (flag == "--model" && i + 1 < argc) {
      flags.model = argv[++i];
    } else {
      flags.model.clear();
      break;
    }
  }
  if (flags.model.empty()) {
    std::cerr << "usage: gateway_server --model FILE [--silent]\n";
    return 2;
  }
  const base::Status status = Serve(flags);
  if (!status.ok()) std::cerr << "gateway_server: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace plumb::speed

int main(int argc, char** argv) { return plumb::speed::Main(argc, argv); }
