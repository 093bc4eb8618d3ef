// text/json_scanner.h
// Where one JSON value ends, in a text that comes byte by byte. Strings and nesting are followed;
// what stands between is not judged, so a value that ends is not yet JSON, but JSON that is whole
// ends where this says. Read next: text/json_call_reader.h.
#pragma once

#include <cstdint>
#include <string>

namespace plumb::text {

// A value type. Thread: one at a time. Bounded by kDepthMax.
class JsonScanner {
 public:
  enum class Place : uint8_t {
    kInside,  // the byte belongs to the value, which goes on
    kLast,    // it is the value's last
    kPast,    // the value (a number or word) ended before it
    kBad,     // it cannot stand here
  };

  // The first byte is the value's first. Nothing may be pushed after the end.
  Place Push(char c);

  static constexpr size_t kDepthMax = 256;

 private:
  enum class State : uint8_t { kBegin, kScalar, kNested, kString, kEscape };
  Place Open(char c);
  Place Close(char c);

  State state_ = State::kBegin;
  std::string closers_;  // of what is open, innermost last
};

}  // namespace plumb::text
