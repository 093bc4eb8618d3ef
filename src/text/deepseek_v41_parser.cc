// text/deepseek_v41_parser.cc: a machine over the text that has come, behind
// text/deepseek_v41_parser.h. Each step takes what is certain whatever follows, so pieces do not
// matter.
#include "text/deepseek_v41_parser.h"

#include <algorithm>
#include <span>
#include <utility>

#include "text/ordered_json.h"

namespace plumb::text {
namespace {

using Tag = DeepseekV41Parser::Tag;
using Kind = AnswerDelta::Kind;

struct Marker {
  std::string_view text;
  Tag tag;
};

// With the space, as the model was taught; without it as DeepSeek-V4's, which it may fall back to.
constexpr Marker kMarkers[] = {
    {"</think>", Tag::kThinkEnd},
    {"<｜DSML｜ calls>", Tag::kCallsBegin},
    {"<｜DSML｜calls>", Tag::kCallsBegin},
    {"<｜DSML｜ tool_calls>", Tag::kCallsBegin},
    {"<｜DSML｜tool_calls>", Tag::kCallsBegin},
    {"</｜DSML｜ calls>", Tag::kCallsEnd},
    {"</｜DSML｜calls>", Tag::kCallsEnd},
    {"</｜DSML｜ tool_calls>", Tag::kCallsEnd},
    {"</｜DSML｜tool_calls>", Tag::kCallsEnd},
    {"<｜DSML｜ invoke name=\"", Tag::kInvokeBegin},
    {"<｜DSML｜invoke name=\"", Tag::kInvokeBegin},
    {"</｜DSML｜ invoke>", Tag::kInvokeEnd},
    {"</｜DSML｜invoke>", Tag::kInvokeEnd},
    {"<｜DSML｜ parameter name=\"", Tag::kParameterBegin},
    {"<｜DSML｜parameter name=\"", Tag::kParameterBegin},
    {"</｜DSML｜ parameter>", Tag::kParameterEnd},
    {"</｜DSML｜parameter>", Tag::kParameterEnd},
};
constexpr std::string_view kSpaces = " \t\r\n";
constexpr std::string_view kMarkupSign = "｜";  // in every tag but </think>, at its beginning

// How `text`, which is not empty, begins.
struct Match {
  enum class How : uint8_t { kNone, kPartly, kWhole };
  How how = How::kNone;
  const Marker* marker = nullptr;  // kWhole
};
Match MatchAt(std::string_view text, std::span<const Tag> tags) {
  Match match;
  if (text.front() != '<') return match;
  for (const Marker& marker : kMarkers) {
    if (std::ranges::find(tags, marker.tag) == tags.end()) continue;
    if (text.starts_with(marker.text)) return {Match::How::kWhole, &marker};
    if (marker.text.starts_with(text)) match.how = Match::How::kPartly;
  }
  return match;
}

}  // namespace

DeepseekV41Parser::DeepseekV41Parser(const DeepseekV41Answer& how)
    : how_(how),
      state_(how.start == AnswerStart::kReasoning ? State::kReasoning
             : how.start == AnswerStart::kCalls   ? State::kCalls
                                                  : State::kContent),
      trim_(/*within=*/how.continues) {}

void DeepseekV41Parser::Push(std::string_view text, Deltas& out) {
  held_ += text;
  while (Step(out)) {
  }
}

bool DeepseekV41Parser::Step(Deltas& out) {
  if (held_.empty()) return false;
  switch (state_) {
    case State::kReasoning:
    case State::kContent:
      return StepText(out);
    case State::kCalls:
    case State::kInvoke:
      return StepMarkup(out);
    case State::kString:
    case State::kRaw:
    case State::kUntyped:
      return StepValue(out);
    case State::kDone:
      held_.clear();
      return false;
  }
  return false;
}

bool DeepseekV41Parser::StepText(Deltas& out) {
  constexpr Tag kTags[] = {Tag::kThinkEnd, Tag::kCallsBegin};
  const std::span<const Tag> tags = std::span(kTags).first(how_.calls ? 2 : 1);
  Match match;
  size_t place = held_.find('<');
  for (; place != held_.npos; place = held_.find('<', place + 1)) {
    match = MatchAt(std::string_view(held_).substr(place), tags);
    if (match.how != Match::How::kNone) break;
  }
  place = std::min(place, held_.size());
  EmitText(std::string_view(held_).substr(0, place), out);
  held_.erase(0, place);
  if (match.how != Match::How::kWhole) return false;
  held_.erase(0, match.marker->text.size());
  if (match.marker->tag == Tag::kCallsBegin) {
    trim_.Drop();
    state_ = State::kCalls;
  } else if (state_ == State::kReasoning) {
    trim_.Restart();
    state_ = State::kContent;
  }  // else one too many, which is swallowed
  return true;
}

// Newlines at the end wait: they are left out where reasoning ends or calls begin.
void DeepseekV41Parser::EmitText(std::string_view text, Deltas& out) {
  const bool reasoning = state_ == State::kReasoning;
  const std::string piece = trim_.Take(text, /*keep=*/!reasoning && !how_.calls);
  if (!piece.empty()) AppendDelta(out, reasoning ? Kind::kReasoning : Kind::kContent, piece);
}

// Tags, and white space that is dropped. Text that is neither is content.
bool DeepseekV41Parser::StepMarkup(Deltas& out) {
  constexpr Tag kBetweenCalls[] = {Tag::kInvokeBegin, Tag::kCallsEnd};
  constexpr Tag kInCall[] = {Tag::kParameterBegin, Tag::kInvokeEnd, Tag::kInvokeBegin,
                             Tag::kCallsEnd};
  const bool in_call = state_ == State::kInvoke;
  if (!stray_) held_.erase(0, held_.find_first_not_of(kSpaces));
  if (held_.empty()) return false;
  const std::span<const Tag> tags =
      in_call ? std::span<const Tag>(kInCall) : std::span<const Tag>(kBetweenCalls);
  const Match match = MatchAt(held_, tags);
  if (match.how == Match::How::kPartly) return false;
  if (match.how == Match::How::kNone) {
    const size_t end = std::min(held_.find('<', 1), held_.size());
    AppendDelta(out, Kind::kContent, held_.substr(0, end));
    held_.erase(0, end);
    stray_ = true;
    return true;
  }
  stray_ = false;
  const size_t size = match.marker->text.size();
  switch (match.marker->tag) {
    case Tag::kParameterBegin:
      return BeginParameter(size, out);
    case Tag::kInvokeBegin:
      if (!in_call) return BeginCall(size, out);
      EndCall(out);  // the one before was left open
      return true;
    case Tag::kCallsEnd:
      if (in_call) EndCall(out);
      state_ = State::kDone;
      return true;
    default:
      held_.erase(0, size);
      EndCall(out);
      return true;
  }
}

bool DeepseekV41Parser::TakeQuoted(size_t prefix, std::string& text) {
  constexpr std::string_view kEnd = "\">";
  const size_t end = held_.find(kEnd, std::max(prefix, scanned_));
  if (end == held_.npos) {
    scanned_ = held_.size() - 1;  // its last byte may be the first of kEnd
    return false;
  }
  text = held_.substr(prefix, end - prefix);
  held_.erase(0, end + kEnd.size());
  scanned_ = 0;
  return true;
}

bool DeepseekV41Parser::BeginCall(size_t prefix, Deltas& out) {
  std::string name;
  if (!TakeQuoted(prefix, name)) return false;
  AppendDelta(out, Kind::kCallBegin, name);
  state_ = State::kInvoke;
  first_ = true;
  return true;
}

bool DeepseekV41Parser::BeginParameter(size_t prefix, Deltas& out) {
  constexpr std::string_view kString = "\" string=\"true";
  constexpr std::string_view kRaw = "\" string=\"false";
  std::string name;
  if (!TakeQuoted(prefix, name)) return false;
  state_ = State::kUntyped;
  if (name.ends_with(kString)) state_ = State::kString;
  if (name.ends_with(kRaw)) state_ = State::kRaw;
  if (state_ == State::kString) name.resize(name.size() - kString.size());
  if (state_ == State::kRaw) name.resize(name.size() - kRaw.size());
  std::string json = std::exchange(first_, false) ? "{" : ", ";
  AppendPythonString(json, name);
  json += state_ == State::kString ? ": \"" : ": ";
  AppendDelta(out, Kind::kArguments, json);
  return true;
}

// A value ends with its own tag; or, left open, with the tag of what comes after it, and the
// newline before that.
bool DeepseekV41Parser::StepValue(Deltas& out) {
  constexpr Tag kEnds[] = {Tag::kParameterEnd, Tag::kParameterBegin, Tag::kInvokeEnd,
                           Tag::kCallsEnd};
  const std::string_view held = held_;
  Match match;
  size_t place = 0, newline = 0;
  for (; place < held.size(); ++place) {
    newline = held[place] == '\n' ? 1 : 0;
    const std::string_view rest = held.substr(place + newline);
    if (rest.empty()) match.how = Match::How::kPartly;
    // With a newline before it, a value's own end is the end of a value with a newline.
    const auto tags = std::span<const Tag>(kEnds).subspan(newline);
    if (!rest.empty()) match = MatchAt(rest, tags);
    if (match.how != Match::How::kNone) break;
  }
  EmitValue(held.substr(0, place), out);
  held_.erase(0, place);
  if (match.how != Match::How::kWhole) return false;
  const bool own = match.marker->tag == Tag::kParameterEnd;
  held_.erase(0, own ? match.marker->text.size() : newline);
  EndValue(/*whole=*/true, out);
  return true;
}

void DeepseekV41Parser::EmitValue(std::string_view text, Deltas& out) {
  if (text.empty()) return;
  if (state_ == State::kUntyped) {
    untyped_ += text;
    return;
  }
  std::string json;
  if (state_ == State::kString) {
    AppendPythonCharacters(json, text);
  } else {
    json = text;
  }
  AppendDelta(out, Kind::kArguments, json);
}

void DeepseekV41Parser::EndValue(bool whole, Deltas& out) {
  std::string json;
  if (state_ == State::kUntyped) {
    const bool is_json = whole && OrderedJson::Parse(untyped_).ok();
    if (is_json) {
      json = std::move(untyped_);
    } else {
      json += '"';
      AppendPythonCharacters(json, untyped_);
      if (whole) json += '"';
    }
    untyped_.clear();
  } else if (state_ == State::kString && whole) {
    json = "\"";
  }
  if (!json.empty()) AppendDelta(out, Kind::kArguments, json);
  state_ = State::kInvoke;
}

void DeepseekV41Parser::EndCall(Deltas& out) {
  AppendDelta(out, Kind::kArguments, first_ ? "{}" : "}");
  state_ = how_.one_call ? State::kDone : State::kCalls;
}

// A tag that the answer's end has cut is no text. Of "<" and "</" alone nobody knows what they were
// to become: they are text where there is text.
void DeepseekV41Parser::Finish(bool stopped, Deltas& out) {
  std::string rest = std::exchange(held_, "");
  if (rest.find(kMarkupSign) != rest.npos) {
    rest.clear();
    trim_.Drop();
  }
  switch (state_) {
    case State::kReasoning:
      EmitText(rest, out);
      break;
    case State::kContent:
      if (how_.must_call && !stopped) break;
      EmitText(rest, out);
      if (std::string end = trim_.End(); !end.empty()) AppendDelta(out, Kind::kContent, end);
      break;
    case State::kCalls:
    case State::kInvoke:
      break;  // the beginning of a tag
    case State::kString:
    case State::kRaw:
    case State::kUntyped:
      EmitValue(rest, out);
      EndValue(stopped, out);
      break;
    case State::kDone:
      break;
  }
  if (state_ == State::kInvoke && stopped) EndCall(out);
  state_ = State::kDone;
}

}  // namespace plumb::text
