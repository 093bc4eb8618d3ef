// eval/speed/gateway/workload.cc
// See workload.h. A message is turned into JSON once, when it is new: a load generator that costs
// more than what it measures measures itself.
#include "workload.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/disk.h"

namespace plumb::speed {
namespace {

constexpr uint64_t kFileBytesMax = 16u << 20;
constexpr size_t kShortBytes = 100;
constexpr uint64_t kLinesTogether = 8;  // lines that stand together in a file stay together

std::string Request(std::string_view body) {
  return fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
      "User-Agent: gateway_load\r\nAccept: */*\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}

}  // namespace

std::optional<RequestKind> RequestKindFromName(std::string_view name) {
  if (name == "short") return RequestKind::kShort;
  if (name == "turns") return RequestKind::kTurns;
  if (name == "cold") return RequestKind::kCold;
  if (name == "stream") return RequestKind::kStream;
  return std::nullopt;
}

Workload::Workload(RequestKind kind, const std::vector<std::string>& lines, uint64_t seed)
    : kind_(kind), lines_(lines), random_(seed) {}

std::string Workload::Text(size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    uint64_t line = random_.Below(lines_.size());
    for (uint64_t i = 0; i < kLinesTogether && text.size() < bytes; ++i) {
      text += lines_[line++ % lines_.size()];
      text += '\n';
    }
  }
  text.resize(bytes);
  // Cut inside a character, perhaps.
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0) text.pop_back();
  return text;
}

std::string Workload::Message(std::string_view role, size_t bytes) {
  return nlohmann::json{{"role", role}, {"content", Text(bytes)}}.dump();
}

std::string Workload::Body() {
  std::string body = R"({"model":"scripted","max_tokens":64,)";
  if (kind_ == RequestKind::kStream) body += R"("stream":true,)";
  body += R"("messages":[)";
  std::string_view separator;
  if (!system_.empty()) body += system_, separator = ",";
  for (const std::string& turn : turns_) {
    body.append(separator).append(turn);
    separator = ",";
  }
  return body + "]}";
}

std::string Workload::Next() {
  if (kind_ == RequestKind::kShort || kind_ == RequestKind::kStream) {
    turns_.assign(1, Message("user", kShortBytes));
    return Request(Body());
  }
  if (kind_ == RequestKind::kCold) turns_.clear();
  if (turns_.empty()) {
    system_ = Message("system", kMessageBytes);
    for (uint32_t i = 1; i < kMessages; ++i)
      turns_.push_back(Message(i % 2 == 1 ? "user" : "assistant", kMessageBytes));
    return Request(Body());
  }
  // The answer comes back with the next question; the oldest two make room for them.
  turns_.erase(turns_.begin(), turns_.begin() + 2);
  turns_.push_back(Message("assistant", kMessageBytes));
  turns_.push_back(Message("user", kMessageBytes));
  return Request(Body());
}

base::Result<std::vector<std::string>> ReadLines(const std::vector<std::string>& paths) {
  std::vector<std::string> lines;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kFileBytesMax));
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      if (line.find_first_not_of(" \t\r") != line.npos) lines.push_back(std::move(line));
  }
  if (lines.empty()) return base::InvalidArgument("--text", "the files have no lines");
  return lines;
}

}  // namespace plumb::speed
