// tests/golden/v41/chat/golden_input.h
// The entries of chat_goldens.json and chat_goldens_more.json as conversations, and what each
// should become.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/chat_input.h"

namespace plumb::golden {

using Json = nlohmann::ordered_json;

struct ChatGolden {
  std::string name;
  text::ChatInput input;
  std::optional<std::string> prompt;  // nothing: it is to be refused
  // [begin, end) of the special tokens in the prompt, in code points; empty: not recorded.
  std::vector<std::pair<size_t, size_t>> specials;
};

// Every entry of both files, but those that ask for what this program does not offer (MANIFEST.md
// lists them). `folder` holds the files.
std::vector<ChatGolden> ReadChatGoldens(const std::string& folder);

// The prompts of the trained checkpoint's goldens (`path`: its goldens.json), with their ids.
struct TrainedGolden {
  std::string name;
  text::ChatInput input;
  std::string prompt;
  std::vector<uint32_t> ids;
};
std::vector<TrainedGolden> ReadTrainedGoldens(const std::string& path);

}  // namespace plumb::golden
