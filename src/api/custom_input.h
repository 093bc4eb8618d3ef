// api/custom_input.h
// The input of a custom tool's call, out of the arguments {"input": "..."} that the model is asked
// for, while they arrive in pieces: the text of the string, unescaped. What comes out, joined, is a
// function of the arguments and not of their pieces. Arguments of any other form are the input
// themselves. Read next: api/responses_writer.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plumb::api {

// One per call. Thread: one at a time.
class CustomInput {
 public:
  // More of the arguments; appends what is certain to be of the input. What follows the string is
  // let go.
  void Push(std::string_view arguments, std::string& out);
  // The end: what was held back, unless it is half of an escape.
  void Finish(std::string& out);

 private:
  enum class Place : uint8_t { kBrace, kName, kColon, kQuote, kText, kAfter, kOther };

  // One character before the string.
  void PushHead(char c, std::string& out);
  void PushText(char c, std::string& out);
  // A whole escape stands in escape_.
  void TakeEscape(std::string& out);
  void TakeUnit(uint32_t unit, std::string& out);
  // The second half of a pair did not come.
  void DropHalf(std::string& out);

  Place place_ = Place::kBrace;
  std::string head_;      // what came before the string; kOther: none of it
  size_t name_size_ = 0;  // bytes of "input", quotes and all, that have come
  std::string escape_;    // from the backslash on
  uint32_t high_ = 0;     // the first half of a surrogate pair
};

}  // namespace plumb::api
