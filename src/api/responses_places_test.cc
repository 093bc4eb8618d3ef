// api/responses_places_test.cc
// What errors about messages and tools become in the words of the Responses API; the whole way of
// such an error is in tests/wire/responses_error_places.talk.
#include "api/responses_places.h"

#include <gtest/gtest.h>

namespace plumb::api {
namespace {

using base::InvalidArgument;
using base::Status;

// Instructions, an earlier answer with a call, and an input of a message with two calls.
ResponsesPlaces Places() {
  ResponsesPlaces places;
  places.messages.push_back({.path = "instructions", .calls = {}});
  AppendPlaces({{.item = 0}, {.item = 1, .calls = {1}}, {.item = 2}, {.item = 3, .calls = {4, 6}}},
               /*earlier=*/2, /*text_input=*/false, places.messages);
  places.tools = {"tools[1]", "tools[3].tools[0]"};
  return places;
}

TEST(ResponsesPlaces, NameItemsAndTools) {
  const std::pair<const char*, const char*> cases[] = {
      {"messages", "input"},
      {"messages[0].content", "instructions"},
      {"messages[1].content", "previous_response_id"},
      {"messages[2].tool_calls", "previous_response_id"},
      {"messages[2].tool_calls[0].function.name", "previous_response_id"},
      {"messages[3].role", "input[0]"},
      {"messages[3].tool_call_id", "input[0].call_id"},
      {"messages[4].tool_calls", "input[2]"},
      {"messages[4].tool_calls[1].function.name", "input[4].name"},
      {"messages[4].tool_calls[1].arguments", "input[4].arguments"},
      {"messages[4].tool_calls[2].arguments", "input[1]"},
      {"tools[1].function.parameters", "tools[3].tools[0].parameters"},
      {"tools[0]", "tools[1]"},
      {"tool_choice.function.name", "tool_choice.name"},
      {"response_format", "text.format"},
      {"reasoning_effort", "reasoning.effort"},
      {"logprobs", "top_logprobs"},
      {"stop", "stop"},
      {"messages[5].role", "messages[5].role"},  // there is no such message
      {"messages[18446744073709551616].role", "messages[18446744073709551616].role"},
      {"messages[x]", "messages[x]"},
      {"tools[2].function.name", "tools[2].function.name"},
  };
  const ResponsesPlaces places = Places();
  for (const auto& [theirs, ours] : cases)
    EXPECT_EQ(InResponsesWords(InvalidArgument(theirs, "why"), places).field(), ours) << theirs;
}

TEST(ResponsesPlaces, ATextIsTheInputItself) {
  ResponsesPlaces places;
  AppendPlaces({{.item = 0}}, /*earlier=*/0, /*text_input=*/true, places.messages);
  EXPECT_EQ(InResponsesWords(InvalidArgument("messages[0].content", "why"), places).field(),
            "input");
}

TEST(ResponsesPlaces, KeepWhatElseAnErrorSays) {
  const Status error = Status(base::Code::kOverloaded, "reasoning_effort and response_format")
                           .WithField("messages")
                           .WithReason("why")
                           .WithRetryAfterMs(7);
  const Status ours = InResponsesWords(error, Places());
  EXPECT_EQ(ours.code(), base::Code::kOverloaded);
  EXPECT_EQ(ours.message(), "reasoning.effort and text.format");
  EXPECT_EQ(ours.reason(), "why");
  EXPECT_EQ(ours.retry_after_ms(), 7u);
  const Status inner(base::Code::kInternal, "messages[0] at 0x7f");
  EXPECT_EQ(InResponsesWords(inner, Places()).message(), inner.message());
}

}  // namespace
}  // namespace plumb::api
