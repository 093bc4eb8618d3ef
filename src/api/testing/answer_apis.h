// api/testing/answer_apis.h
// Tests only. The APIs that give an answer, side by side: how each asks for a recorded one, and
// what of its answer must be the same whether it came whole or as a stream.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "api/testing/messages_stream.h"
#include "api/testing/recorded_answer.h"
#include "api/testing/service_fixture.h"
#include "base/check.h"

namespace plumb::api::testing {

// One API: what it is asked, and what its answers come to.
struct AnswerApi {
  std::string_view name;
  json (*body)(const RecordedAnswer& answer);
  json (*of_whole)(const json& answer);
  json (*of_stream)(std::string_view body);
};

inline void PrintTo(const AnswerApi& api, std::ostream* out) { *out << api.name; }

inline json WeatherSchema() {
  return {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}};
}
inline json NoteSchema() {
  return {{"type", "object"}, {"properties", {{"input", {{"type", "string"}}}}}};
}

inline json ChatBodyOf(const RecordedAnswer& answer) {
  json body = {{"model", "fake"},
               {"max_tokens", answer.bytes_max},
               {"messages", {{{"role", "user"}, {"content", "go"}}}}};
  if (!answer.stop.empty()) body["stop"] = answer.stop;
  if (!answer.tools) return body;
  const json weather = {{"name", "get_weather"}, {"parameters", WeatherSchema()}};
  body["tools"] = {{{"type", "function"}, {"function", weather}},
                   {{"type", "custom"}, {"custom", {{"name", "note"}}}}};
  return body;
}

inline json ChatOfWhole(const json& answer) {
  const json& choice = answer["choices"][0];
  const json& message = choice["message"];
  return {{"content", message["content"].is_null() ? json("") : message["content"]},
          {"reasoning", message.value("reasoning_content", "")},
          {"calls", message.value("tool_calls", json::array())},
          {"end", choice["finish_reason"]}};
}

inline json ChatOfStream(std::string_view body) {
  const Streamed stream = PutTogether(body, 1);
  CHECK(stream.done) << body;
  const StreamedChoice& choice = stream.choices[0];
  return {{"content", choice.content},
          {"reasoning", choice.reasoning},
          {"calls", choice.tool_calls},
          {"end", choice.finish_reason}};
}

inline json CompletionBodyOf(const RecordedAnswer& answer) {
  json body = {{"model", "fake"}, {"max_tokens", answer.bytes_max}, {"prompt", "go"}};
  if (!answer.stop.empty()) body["stop"] = answer.stop;
  return body;
}

inline json CompletionOfWhole(const json& answer) {
  const json& choice = answer["choices"][0];
  return {{"text", choice["text"]}, {"end", choice["finish_reason"]}};
}

inline json CompletionOfStream(std::string_view body) {
  std::string text;
  json end;
  for (const std::string& data : StreamData(body)) {
    if (data == "[DONE]") continue;
    const json choice = json::parse(data)["choices"][0];
    CHECK(end.is_null()) << "a chunk after the end: " << data;
    text += choice["text"].get<std::string>();
    end = choice["finish_reason"];
  }
  return {{"text", text}, {"end", end}};
}

inline json ResponsesBodyOf(const RecordedAnswer& answer) {
  json body = {{"model", "fake"},
               {"max_output_tokens", answer.bytes_max},
               {"store", false},
               {"input", "go"}};
  if (!answer.stop.empty()) body["stop"] = answer.stop;
  if (answer.tools) {
    body["tools"] = {
        {{"type", "function"}, {"name", "get_weather"}, {"parameters", WeatherSchema()}},
        {{"type", "custom"}, {"name", "note"}}};
  }
  return body;
}

inline json AsItIs(const json& answer) { return answer; }

// The last event's response; the deltas of each item must add up to what stands in it.
inline json ResponseOfStream(std::string_view body) {
  std::vector<std::string> texts;
  json response;
  for (const std::string& data : StreamData(body)) {
    const json event = json::parse(data);
    const std::string type = event["type"];
    if (type.ends_with(".delta")) {
      texts.resize(std::max<size_t>(texts.size(), event["output_index"].get<size_t>() + 1));
      texts[event["output_index"]] += event["delta"].get<std::string>();
    } else if (type == "response.completed" || type == "response.incomplete") {
      response = event["response"];
    }
  }
  CHECK(!response.is_null()) << body;
  for (size_t i = 0; i < response["output"].size(); ++i) {
    const json& item = response["output"][i];
    std::string text;
    for (const json& part : item.value("content", json::array()))
      text += part["text"].get<std::string>();
    text += item.value("arguments", "") + item.value("input", "");
    CHECK(text == (i < texts.size() ? texts[i] : "")) << body;
  }
  return response;
}

inline json MessagesBodyOf(const RecordedAnswer& answer) {
  json body = {{"model", "fake"},
               {"max_tokens", answer.bytes_max},
               {"thinking", {{"type", "adaptive"}}},
               {"messages", {{{"role", "user"}, {"content", "go"}}}}};
  if (!answer.stop.empty()) body["stop_sequences"] = {answer.stop};
  if (answer.tools) {
    body["tools"] = {{{"name", "get_weather"}, {"input_schema", WeatherSchema()}},
                     {{"name", "note"}, {"input_schema", NoteSchema()}}};
  }
  return body;
}

constexpr AnswerApi kAnswerApis[] = {
    {"chat", ChatBodyOf, ChatOfWhole, ChatOfStream},
    {"completions", CompletionBodyOf, CompletionOfWhole, CompletionOfStream},
    {"responses", ResponsesBodyOf, AsItIs, ResponseOfStream},
    {"messages", MessagesBodyOf, AsItIs, MessageOfStream},
};

}  // namespace plumb::api::testing
