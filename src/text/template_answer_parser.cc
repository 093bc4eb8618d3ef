// text/template_answer_parser.cc: a machine over the text that has come, behind
// text/template_answer_parser.h. Each step takes what is certain whatever follows, so pieces do not
// matter; each byte is looked at a bounded number of times.
#include "text/template_answer_parser.h"

#include <algorithm>
#include <array>
#include <utility>

namespace plumb::text {
namespace {

using Kind = AnswerDelta::Kind;

constexpr std::string_view kSpaces = " \t\r\n";
constexpr size_t kNameBytesMax = 64;

enum class How : uint8_t { kNone, kPartly, kWhole };

How BeginsWith(std::string_view text, std::string_view mark) {
  if (text.starts_with(mark)) return How::kWhole;
  return mark.starts_with(text) ? How::kPartly : How::kNone;
}

// Where `mark` begins in `text`, or may begin at its end.
struct Found {
  size_t place;
  How how = How::kNone;
};
Found Find(std::string_view text, std::string_view mark) {
  for (size_t at = text.find(mark.front()); at != text.npos; at = text.find(mark.front(), at + 1)) {
    const How how = BeginsWith(text.substr(at), mark);
    if (how != How::kNone) return {at, how};
  }
  return {text.size()};
}

size_t Spaces(std::string_view text) {
  return std::min(text.find_first_not_of(kSpaces), text.size());
}

// How many characters of a name, or of an id, `text` begins with.
size_t NameSize(std::string_view text) {
  const auto in_name = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
  };
  return static_cast<size_t>(std::ranges::find_if_not(text, in_name) - text.begin());
}

}  // namespace

TemplateAnswerParser::TemplateAnswerParser(TemplateAnswer how)
    : how_(std::move(how)),
      state_(how_.start == AnswerStart::kReasoning      ? State::kReasoning
             : how_.may_think || Is(CallSyntax::kLlama) ? State::kLead
                                                        : State::kContent),
      trim_(/*within=*/state_ != State::kReasoning) {}

void TemplateAnswerParser::Push(std::string_view text, Deltas& out) {
  held_ += text;
  while (Step(out)) {
  }
}

bool TemplateAnswerParser::Step(Deltas& out) {
  if (held_.empty()) return false;
  switch (state_) {
    case State::kLead:
      return StepLead();
    case State::kReasoning:
    case State::kContent:
      return StepText(out);
    case State::kName:
      return StepName(out);
    case State::kCall:
      return StepCall(out);
    case State::kBetween:
      return StepBetween(out);
    case State::kSkip:
      return StepSkip();
    case State::kDone:
      held_.clear();
      return false;
  }
  return false;
}

bool TemplateAnswerParser::StepLead() {
  const size_t spaces = Spaces(held_);
  const std::string_view rest = std::string_view(held_).substr(spaces);
  if (rest.empty()) return false;
  const How thinks = how_.may_think ? BeginsWith(rest, kReasoningBegin) : How::kNone;
  if (thinks == How::kPartly) return false;
  if (thinks == How::kWhole) {
    held_.erase(0, spaces + kReasoningBegin.size());
    state_ = State::kReasoning;
    trim_.Restart();
  } else if (Is(CallSyntax::kLlama) && rest.front() == '{') {
    BeginReader(spaces);
  } else {
    state_ = State::kContent;
  }
  return true;
}

bool TemplateAnswerParser::StepText(Deltas& out) {
  const bool reasoning = state_ == State::kReasoning;
  std::string_view mark = reasoning ? kReasoningEnd : std::string_view();
  if (!reasoning && how_.calls) mark = CallMark(*how_.calls);
  const Found found = mark.empty() ? Found{held_.size()} : Find(held_, mark);
  EmitText(std::string_view(held_).substr(0, found.place), out);
  held_.erase(0, found.place);
  if (found.how != How::kWhole) return false;
  if (reasoning) {
    held_.erase(0, mark.size());
    trim_.Restart();
    state_ = Is(CallSyntax::kLlama) ? State::kLead : State::kContent;
    return true;
  }
  if (Is(CallSyntax::kMistral) || Is(CallSyntax::kMistralNamed)) {
    tried_ = mark;
    held_.erase(0, mark.size());
    state_ = State::kName;
    return true;
  }
  tag_open_ = Is(CallSyntax::kHermes);
  BeginReader(mark.size());
  return true;
}

// Newlines at the end wait: they are left out where reasoning ends or calls begin.
void TemplateAnswerParser::EmitText(std::string_view text, Deltas& out) {
  const bool reasoning = state_ == State::kReasoning;
  const std::string piece = trim_.Take(text, /*keep=*/!reasoning && !how_.calls);
  if (!piece.empty()) AppendDelta(out, reasoning ? Kind::kReasoning : Kind::kContent, piece);
}

// The first `bytes` of held_ were the mark of a call.
void TemplateAnswerParser::BeginReader(size_t bytes, std::optional<std::string> name) {
  tried_ += held_.substr(0, bytes);
  held_.erase(0, bytes);
  if (name) {
    reader_.emplace(how_.names, *std::move(name));
  } else {
    reader_.emplace(how_.names);
  }
  state_ = State::kCall;
}

// A list, an object, or name[ARGS]{...}; between name and arguments [CALL_ID] and an id may stand.
bool TemplateAnswerParser::StepName(Deltas& out) {
  const size_t spaces = Spaces(held_);
  std::string_view rest = std::string_view(held_).substr(spaces);
  if (rest.empty()) return false;
  if (rest.front() == '[') {
    list_ = true;
    BeginReader(spaces + 1);
    return true;
  }
  if (rest.front() == '{') {
    BeginReader(spaces);
    return true;
  }
  const size_t end = NameSize(rest);
  const std::string name(rest.substr(0, end));
  rest.remove_prefix(end);
  if (end > kNameBytesMax || (end == 0 && !rest.empty())) {
    NoCall(out);
    return true;
  }
  if (rest.empty()) return false;
  const How id = BeginsWith(rest, kMistralId);
  if (id == How::kWhole) {
    rest.remove_prefix(kMistralId.size());
    const size_t size = NameSize(rest);
    rest.remove_prefix(size);
    if (size > kNameBytesMax) {
      NoCall(out);
      return true;
    }
    if (rest.empty()) return false;
  }
  const How marked = BeginsWith(rest, kMistralArguments);
  if (marked == How::kPartly || id == How::kPartly) return false;
  if (marked == How::kWhole) rest.remove_prefix(kMistralArguments.size());
  if (marked == How::kNone && !rest.starts_with('{')) {
    NoCall(out);
    return true;
  }
  BeginReader(held_.size() - rest.size(), name);
  return true;
}

void TemplateAnswerParser::NoCall(Deltas& out) {
  state_ = State::kContent;
  const std::string text = std::exchange(tried_, "");
  EmitText(text, out);
  reader_.reset();
  list_ = false;
}

bool TemplateAnswerParser::StepCall(Deltas& out) {
  const bool before = reader_->begun();
  Deltas parts;
  const size_t taken = reader_->Read(held_, parts);
  if (!reader_->begun()) tried_ += held_.substr(0, taken);
  held_.erase(0, taken);
  if (!before && reader_->begun()) {
    tried_.clear();
    trim_.Drop();
  }
  for (const AnswerDelta& part : parts) AppendDelta(out, part.kind, part.text);
  switch (reader_->state()) {
    case JsonCallReader::State::kReading:
      return false;
    case JsonCallReader::State::kWhole:
      EndCall();
      return true;
    case JsonCallReader::State::kBad:
      if (!reader_->begun()) {
        NoCall(out);
      } else {
        reader_->Finish(/*stopped=*/true, out);
        state_ = Is(CallSyntax::kHermes) && !how_.one_call ? State::kSkip : State::kDone;
      }
      return true;
  }
  return false;
}

void TemplateAnswerParser::EndCall() {
  reader_.reset();
  state_ = how_.one_call ? State::kDone : State::kBetween;
  trim_.Restart();
}

bool TemplateAnswerParser::StepBetween(Deltas&) {
  held_.erase(0, Spaces(held_));
  if (held_.empty()) return false;
  if (list_) {
    const bool more = held_.front() == ',';
    state_ = State::kDone;
    if (more) BeginReader(1);
    return true;
  }
  if (Is(CallSyntax::kLlama)) {
    if (held_.front() == ';') {
      tried_ += held_.substr(0, 1);
      held_.erase(0, 1);
      return true;
    }
    if (held_.front() == '{') {
      BeginReader(0);
      return true;
    }
    state_ = State::kContent;
    return true;
  }
  if (tag_open_) {
    const How end = BeginsWith(held_, kHermesEnd);
    if (end == How::kPartly) return false;
    tag_open_ = false;
    if (end == How::kWhole) held_.erase(0, kHermesEnd.size());
    return true;
  }
  state_ = State::kContent;
  return true;
}

bool TemplateAnswerParser::StepSkip() {
  const Found end = Find(held_, kHermesEnd);
  const Found begin = Find(held_, kHermesBegin);
  const size_t place = std::min(end.place, begin.place);
  held_.erase(0, place);
  const bool found = (end.how == How::kWhole && end.place == place) ||
                     (begin.how == How::kWhole && begin.place == place);
  if (found) EndCall();
  return found;
}

// A call that the answer's end has cut before its name was whole is no text, where it is certain
// that it was to become one.
void TemplateAnswerParser::Finish(bool stopped, Deltas& out) {
  const std::string rest = std::exchange(held_, "");
  const bool nothing_but_calls = how_.must_call && !stopped;
  switch (state_) {
    case State::kReasoning:
      EmitText(rest, out);
      break;
    case State::kLead:
    case State::kContent:
      state_ = State::kContent;
      if (!nothing_but_calls) EmitText(rest, out);
      break;
    case State::kName:
      tried_ += rest;
      if (stopped) NoCall(out);
      break;
    case State::kCall:
      if (reader_->begun()) {
        reader_->Finish(stopped, out);
      } else if (stopped || (Is(CallSyntax::kLlama) && !nothing_but_calls)) {
        NoCall(out);
      }
      break;
    case State::kBetween:  // the beginning of </tool_call>
    case State::kSkip:
    case State::kDone:
      break;
  }
  if (state_ == State::kContent && !nothing_but_calls) {
    if (const std::string end = trim_.End(); !end.empty()) AppendDelta(out, Kind::kContent, end);
  }
  state_ = State::kDone;
}

}  // namespace plumb::text
