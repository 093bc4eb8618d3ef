// api/responses_places.cc
// See responses_places.h.
#include "api/responses_places.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "api/json_fields.h"

namespace plumb::api {

namespace {

// A field's path, and what is said; of other parts and of this API.
struct Words {
  std::string field;
  std::string message;
};

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"response_format", "text.format"},
    {"reasoning_effort", "reasoning.effort"},
    {"tool_choice.function.name", "tool_choice.name"},
    {"logprobs", "top_logprobs"},
};

// `list[N]rest` of a path into N and the rest; nothing: it is another, or N has no place.
std::optional<size_t> TakeIndex(std::string_view& path, std::string_view list, size_t count) {
  if (!path.starts_with(list) || path.substr(list.size(), 1) != "[") return std::nullopt;
  const char* begin = path.data() + list.size() + 1;
  size_t index = 0;
  const auto [end, error] = std::from_chars(begin, path.data() + path.size(), index);
  if (error != std::errc() || index >= count) return std::nullopt;
  path.remove_prefix(static_cast<size_t>(end - path.data()) + 1);
  return index;
}

constexpr std::string_view kEarlier = "previous_response_id";

// A member of what stands there; of an earlier request's there is no place in this one.
std::string Inside(const std::string& place, std::string_view member) {
  return place == kEarlier ? place : place + std::string(member);
}

// What is wrong with a message, told of the items that it was made of.
Words OfMessage(std::string_view rest, const ResponsesPlaces::Message& place,
                const std::string& message) {
  if (rest == ".role") {
    return {place.path,
            "an output of a call follows the call that it answers, with its call_id; this one "
            "follows none"};
  }
  if (rest == ".tool_call_id")
    return {Inside(place.path, ".call_id"),
            "this names no call right before it, or one that has its output"};
  if (rest == ".tool_calls") {
    return {place.calls.empty() ? place.path : place.calls.front(),
            "each call has a call_id of its own, and its output right behind it"};
  }
  std::string_view member = rest;
  if (const auto call = TakeIndex(member, ".tool_calls", place.calls.size())) {
    constexpr std::string_view kInner = ".function";  // here its members are those of the item
    if (member.starts_with(kInner)) member.remove_prefix(kInner.size());
    return {Inside(place.calls[*call], member), message};
  }
  return {place.path, message};
}

void Replace(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

Words Translated(const base::Status& status, const ResponsesPlaces& places) {
  std::string_view rest = status.field();
  if (const auto i = TakeIndex(rest, "messages", places.messages.size()))
    return OfMessage(rest, places.messages[*i], status.message());
  if (const auto i = TakeIndex(rest, "tools", places.tools.size())) {
    const size_t member = rest.rfind('.');
    return {places.tools[*i] + std::string(rest.substr(member == rest.npos ? rest.size() : member)),
            status.message()};
  }
  Words words{status.field(), status.message()};
  if (words.field == "messages") words.field = "input";
  for (const auto& [theirs, ours] : kNames) {
    if (words.field == theirs) words.field = ours;
    if (theirs != "logprobs") Replace(words.message, theirs, ours);
  }
  return words;
}

}  // namespace

void AppendPlaces(const std::vector<MessageSource>& sources, size_t earlier, bool text_input,
                  std::vector<ResponsesPlaces::Message>& out) {
  const auto path = [&](size_t item) {
    if (item < earlier) return std::string(kEarlier);
    return text_input ? std::string("input") : IndexPath("input", item - earlier);
  };
  for (const MessageSource& source : sources) {
    ResponsesPlaces::Message place{.path = path(source.item), .calls = {}};
    for (const size_t call : source.calls) place.calls.push_back(path(call));
    out.push_back(std::move(place));
  }
}

base::Status InResponsesWords(const base::Status& status, const ResponsesPlaces& places) {
  if (status.field().empty()) return status;
  Words words = Translated(status, places);
  return base::Status(status.code(), std::move(words.message))
      .WithField(std::move(words.field))
      .WithReason(status.reason())
      .WithRetryAfterMs(status.retry_after_ms());
}

}  // namespace plumb::api
