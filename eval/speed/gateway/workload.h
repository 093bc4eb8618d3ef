// eval/speed/gateway/workload.h
// What is asked of the gateway: chat requests as bytes for the socket. Texts are made of lines of
// real files in an order that never comes twice, so that words repeat as they do in texts and texts
// do not.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"

namespace plumb::speed {

enum class RequestKind : uint8_t {
  kShort,   // one message of some 100 bytes
  kTurns,   // 40 messages, 200 kB of text, of which all but the newest two were in the one before
  kCold,    // as many bytes, all of them new
  kStream,  // as kShort, and the answer is streamed
};
std::optional<RequestKind> RequestKindFromName(std::string_view name);

constexpr uint32_t kMessages = 40;
constexpr uint32_t kMessageBytes = 5000;  // of text, before JSON escapes it

// The requests of one client, who talks on and on. Thread: one at a time.
class Workload {
 public:
  // `lines` are borrowed, and not empty. Equal seeds make equal requests.
  Workload(RequestKind kind, const std::vector<std::string>& lines, uint64_t seed);

  // The next request, whole. Of kTurns, the first one is all new.
  std::string Next();

 private:
  std::string Text(size_t bytes);
  std::string Message(std::string_view role, size_t bytes);
  std::string Body();

  const RequestKind kind_;
  const std::vector<std::string>& lines_;
  base::Rng random_;
  std::string system_;             // the first message
  std::deque<std::string> turns_;  // the others, each as JSON; the last is the user's
};

// The lines of files that are not blank. kNotFound and its kin: a file; kInvalidArgument: none has
// a line.
base::Result<std::vector<std::string>> ReadLines(const std::vector<std::string>& paths);

}  // namespace plumb::speed
