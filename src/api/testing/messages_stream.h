// api/testing/messages_stream.h
// Tests only. A stream of Anthropic's events put together again as its SDKs do, with every rule of
// their order checked.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "net/sse.h"

namespace plumb::api::testing {

// What a call's JSON says; of one that was cut off the members that are whole, perhaps none.
inline nlohmann::json InputOfPieces(const std::string& arguments) {
  using nlohmann::json;
  json input = json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  for (size_t end = arguments.size(); !input.is_object() && end > 0;) {
    end = arguments.rfind(',', end - 1);
    if (end == std::string::npos) return json::object();
    input = json::parse(arguments.substr(0, end) + "}", nullptr, /*allow_exceptions=*/false);
  }
  return input.is_object() ? input : json::object();
}

// The message of a stream that ended as it should.
inline nlohmann::json MessageOfStream(std::string_view body) {
  using nlohmann::json;
  net::SseParser parser(1 << 20);
  std::vector<net::SseEvent> events;
  CHECK(parser.Feed(body, events).ok());
  json message;
  bool is_open = false;
  size_t open = 0;  // block
  std::string arguments;
  bool stopped = false;
  for (const net::SseEvent& event : events) {
    const json data = json::parse(event.data);
    const std::string type = data["type"];
    CHECK(type == event.event && !stopped) << event.event << " " << event.data;
    CHECK((type == "message_start") == message.is_null()) << event.data;
    if (type == "message_start") {
      message = data["message"];
    } else if (type == "content_block_start") {
      CHECK(!is_open && data["index"] == message["content"].size()) << event.data;
      is_open = true;
      open = data["index"].get<size_t>();
      arguments.clear();
      message["content"].push_back(data["content_block"]);
    } else if (type == "content_block_delta") {
      CHECK(is_open && data["index"] == open) << event.data;
      json& block = message["content"][open];
      const json& delta = data["delta"];
      if (delta["type"] == "input_json_delta") {
        arguments += delta["partial_json"].get<std::string>();
        continue;
      }
      const std::string kind = delta["type"].get<std::string>();
      const std::string member = kind.substr(0, kind.find('_'));
      block[member] = block[member].get<std::string>() + delta[member].get<std::string>();
    } else if (type == "content_block_stop") {
      CHECK(is_open && data["index"] == open) << event.data;
      json& block = message["content"][open];
      if (block["type"] == "tool_use") block["input"] = InputOfPieces(arguments);
      is_open = false;
    } else if (type == "message_delta") {
      CHECK(!is_open) << event.data;
      message.update(data["delta"]);
      message["usage"].update(data["usage"]);
      if (data.contains("context_management"))
        message["context_management"] = data["context_management"];
    } else if (type == "message_stop") {
      stopped = true;
    } else {
      CHECK(type == "ping") << event.data;
    }
  }
  CHECK(stopped) << "the stream was cut off";
  return message;
}

}  // namespace plumb::api::testing
