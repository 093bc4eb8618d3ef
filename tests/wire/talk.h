// tests/wire/talk.h
// A .talk file: one behaviour of the API as a transcript that people read first and the runner
// checks. The format is with ReadTalk. Read next: wire_runner.cc.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::wire {

// One line with its continuation lines, which keep their line breaks.
struct TalkLine {
  int number = 0;
  std::string word;
  std::string rest;
};

// Lines, each beginning with a word; a line that begins with two spaces continues the one before:
//
//   # comment
//   key K ...                  the server takes these keys alone (before the first request)
//   model deepseek             it has DeepSeek-V4.1's chat format (likewise; before `key`)
//   model fim                  it has tokens for filling in the middle (likewise)
//   context N                  so many tokens are a prompt and its answer (likewise; 2048)
//   model SYNTAX               it calls tools by a template: hermes, llama, mistral, mistral-named,
//                              or thinking, which is hermes and reasons (likewise)
//   cors ORIGIN ...            pages of these origins may call (likewise)
//   data [BYTES]               it keeps files and batches, in a folder that it begins with empty;
//                              files have 4096 bytes at most, all together so many (likewise)
//   limit NAME N               of every key, as a file of --limits names them (likewise)
//   hosts NAME ...             it has no keys, and answers to these hosts besides local ones
//                              (likewise)
//   restart                    the server ends, and another begins with the same folder; what may
//                              stand before the first request may be said anew
//   say "text"                 what the model answers, a JSON string; one token per byte
//   say INDEX "text"           for that sample alone
//   chunk N                    tokens per event of the generator (1 by default; 0 = all at once)
//   fail CODE "message"        the generator fails after the text (kDeadline, kInternal)
//   hang                       the generator falls silent after the text, until it is cancelled
//   pass SECONDS               the server's clock goes on, which else stands still
//   idle                       until every request has ended
//   settled                    until every batch has ended, also one that nobody may ask for
//   drain                      the server begins to drain
//   request METHOD /path
//   header Name: value         of the request; after `expect`, of the answer ("<any>", "<absent>")
//   host NAME                  what the request says in Host, instead of where it goes
//   body ...                   verbatim
//   form NAME "text"           a part of the body, which is then multipart/form-data
//   form NAME FILENAME "text"  likewise, as a file
//   begin                      the request is sent; the talk goes on once the generator has it
//   came                       something of the body of what `begin` sent has come
//   resume                     the generator goes on where it hangs, to the end: with what it would
//                              answer now
//   ends STATUS                instead of expect: what `begin` sent comes to its end
//   got "text"                 all that has come of the body of what `begin` sent, a JSON string
//   leave                      the client of what `begin` sent closes its connection
//   expect STATUS
//   await {...}                instead of expect: asks until the answer is 200 and its body like
//                              this, for half a minute at most
//   json {...}                 the body; members that are not written may be there as well,
//                              "<any>" matches any value, "<absent>" no member of that name,
//                              "<string>" a text that is not empty, "<integer>" a whole number
//   json= {...}                the body, with these members and no others at any depth
//   jsonl [{...}, ...]         the body's lines, each matched like json; jsonl= like json=
//   let NAME /a/0/b            the value there, in the body or the newest event; from now on
//                              <NAME> in a path, body or expectation stands for it
//   event {...} or [DONE]      the next server-sent event, matched like json; none may be left over
//   event= {...}               likewise, matched like json=
//
// Gives the lines that say something. Never fails: words are judged by the runner.
std::vector<TalkLine> ReadTalk(std::string_view text);

// Whether objects may have members besides those that are written.
enum class Members : uint8_t { kSome, kAll };

// Nothing when `got` is as `expected` asks; else where and how it is not.
std::optional<std::string> Mismatch(const nlohmann::json& expected, const nlohmann::json& got,
                                    Members members, const std::string& path = "");

}  // namespace plumb::wire
