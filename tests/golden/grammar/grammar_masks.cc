// tests/golden/grammar/grammar_masks.cc
// What grammars cost over a real vocabulary: compiling, the first mask, every further mask, and
// Accept, over answers that are written along (their tokens as the tokenizer cuts them, then cut
// into smaller tokens at random, which meets more of the grammar). One line a grammar.
// With --hostile: grammars that are made to be slow, and how they end.
//   grammar_masks --tokenizer TOKENIZER_JSON [--rounds N | --hostile]
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "text/grammar_hostile_testing.h"
#include "text/grammar_rust.h"
#include "text/grammar_testing.h"

namespace plumb::golden {
namespace {

constexpr uint32_t kCompileMs = 5000;

struct Case {
  const char* name;
  text::GrammarSpec spec;
  const char* answer;
};

const Case kCases[] = {
    {"json_object",
     {.kind = text::GrammarKind::kJsonObject},
     R"({"title": "A short tale of two harbours", "pages": [1, 22, 333], "open": true})"},
    {"person",
     {.kind = text::GrammarKind::kJsonSchema,
      .source = R"({"type":"object","properties":{"name":{"type":"string"},
        "age":{"type":"integer","minimum":0,"maximum":150},"email":{"type":"string",
        "format":"email"},"tags":{"type":"array","items":{"type":"string"}}},
        "required":["name","age"],"additionalProperties":false})"},
     R"({"name": "Émile Ångström", "age": 41, "email": "emile@example.org", "tags": ["a b"]})"},
    {"order",
     {.kind = text::GrammarKind::kJsonSchema,
      .source =
          R"({"type":"object","properties":{
        "id":{"type":"string","pattern":"^[A-Z]{2}\\d{6}$"},
        "lines":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/line"}},
        "total":{"type":"number","minimum":0},"due":{"type":"string","format":"date"}},
        "required":["id","lines","total"],"additionalProperties":false,
        "$defs":{"line":{"type":"object","properties":{"sku":{"type":"string","maxLength":16},
        "count":{"type":"integer","minimum":1},"price":{"type":"number"},
        "kind":{"enum":["goods","service","other"]}},"required":["sku","count"],
        "additionalProperties":false}}})"},
     R"({"id": "AB123456", "lines": [{"sku": "x-1", "count": 2, "price": 3.5, "kind": "goods"}],)"
     R"( "total": 7.0, "due": "2024-02-29"})"},
    {"tree",
     {.kind = text::GrammarKind::kJsonSchema,
      .source = R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{
        "value":{"type":["string","number","null"]},"left":{"anyOf":[{"type":"null"},
        {"$ref":"#/$defs/node"}]},"right":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}},
        "required":["value"],"additionalProperties":false}}})"},
     R"({"value": "root", "left": {"value": 1.5, "left": null}, "right": {"value": null}})"},
    {"tool_call",
     {.kind = text::GrammarKind::kJsonSchema,
      .source = R"({"anyOf":[{"type":"object","properties":{"name":{"const":"get_weather"},
        "arguments":{"type":"object","properties":{"city":{"type":"string"},
        "unit":{"enum":["celsius","fahrenheit"]}},"required":["city"],
        "additionalProperties":false}},"required":["name","arguments"],
        "additionalProperties":false},{"type":"object","properties":{"name":{"const":"search"},
        "arguments":{"type":"object","properties":{"query":{"type":"string","minLength":1},
        "limit":{"type":"integer","minimum":1,"maximum":50}},"required":["query"],
        "additionalProperties":false}},"required":["name","arguments"],
        "additionalProperties":false}]})"},
     R"({"name": "search", "arguments": {"query": "harbours of the north", "limit": 20}})"},
    {"open_map",
     {.kind = text::GrammarKind::kJsonSchema,
      .source = R"({"type":"object","properties":{"version":{"const":2}},
        "additionalProperties":{"type":"array","items":{"type":"number"},"maxItems":8}})"},
     R"({"version": 2, "first row": [1, 2.5, -3e2], "second": []})"},
    {"phone",
     {.kind = text::GrammarKind::kRegex, .source = R"(\+\d{1,3}( \d{2,4}){2,4})"},
     "+49 30 1234 5678"},
    {"sentences",
     {.kind = text::GrammarKind::kRegex, .source = R"(([A-Z][a-z ,']{3,80}\. ?){1,4})"},
     "The ships came in, one after the other. Nobody had called them. "},
    {"choice",
     {.kind = text::GrammarKind::kChoice, .choices = {"positive", "negative", "neutral", "mixed"}},
     "neutral"},
    {"sums",
     {.kind = text::GrammarKind::kEbnf,
      .source = "root ::= term ([-+*/] term)*\nterm ::= [0-9]+ | \"(\" root \")\""},
     "(12+3)*(4-(5+6))"},
    {"calls",
     {.kind = text::GrammarKind::kLark,
      .source = "start: call (\";\" call)*\ncall: NAME \"(\" [arg (\",\" arg)*] \")\"\n"
                "arg: NAME | NUMBER | call\nNAME: /[a-z][a-z_]*/\nNUMBER: /[0-9]+/"},
     "move(left,10);turn(angle(90),fast)"},
    {"dsml_call",
     {.kind = text::GrammarKind::kCalls,
      .source = R"({"syntax":"dsml","lead":"","parallel":true,"tools":[{"name":"now","schema":null},
        {"name":"search","schema":{"type":"object","properties":{"query":{"type":"string"},
        "filters":{"type":"object","properties":{"tag":{"type":"string"},"any":{}},
        "required":["tag","any"],"additionalProperties":false}},"required":["query","filters"],
        "additionalProperties":false}}]})"},
     "<｜DSML｜ invoke name=\"search\">\n<｜DSML｜ parameter name=\"query\" "
     "string=\"true\">harbours of "
     "the \"north\"</｜DSML｜ parameter>\n<｜DSML｜ parameter name=\"filters\" string=\"false\">"
     R"({"tag": "sea and sky", "any": {"of the north": ["harbours, all of them"]}})"
     "</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"},
};

struct Series {
  std::vector<double> us;

  double At(double share) {
    CHECK(!us.empty());
    std::sort(us.begin(), us.end());
    return us[std::min(us.size() - 1, static_cast<size_t>(share * static_cast<double>(us.size())))];
  }
};

class Bench {
 public:
  Bench(const text::Tokenizer& tokenizer, std::ostream& out) : tokenizer_(tokenizer), out_(out) {
    const base::Instant begin = clock_.Now();
    vocabulary_ = text::GrammarVocabulary::Make(tokenizer).value();
    std::cerr << fmt::format("{} tokens, {:.0f} ms to make their trie\n", tokenizer.size(),
                             (clock_.Now() - begin).seconds() * 1e3);
    out_ << "grammar,tokens,compile_ms,first_us_p50,first_us_max,masks,mask_us_p50,mask_us_p99,"
            "mask_us_max,accept_us_p50,accept_us_p99\n";
  }

  void Run(const Case& c, int rounds) {
    Series first, masks, accepts;
    const base::Instant begin = clock_.Now();
    const auto grammar = vocabulary_->Compile(c.spec, kCompileMs);
    const double compile_ms = (clock_.Now() - begin).seconds() * 1e3;
    CHECK(grammar.ok()) << c.name << ": " << grammar.status().ToString();
    for (int round = 0; round < rounds; ++round)
      Walk(**grammar, Tokens(c.answer, round), first, masks, accepts);
    Print(c.name, compile_ms, first, masks, accepts);
    compiles_.us.push_back(compile_ms * 1e3);
    for (auto [to, from] : {std::pair(&first_, &first), {&masks_, &masks}, {&accepts_, &accepts}})
      to->us.insert(to->us.end(), from->us.begin(), from->us.end());
  }

  void PrintAll() { Print("all", compiles_.At(0.5) * 1e-3, first_, masks_, accepts_); }

 private:
  void Walk(const text::Grammar& grammar, const std::vector<base::TokenId>& tokens, Series& first,
            Series& masks, Series& accepts) {
    std::vector<uint32_t> mask((tokenizer_.size() + 31) / 32);
    base::Instant begin = clock_.Now();
    const auto state = grammar.NewState();
    for (size_t i = 0; i <= tokens.size(); ++i) {
      if (i > 0) begin = clock_.Now();
      CHECK(state->FillMask(mask).ok());
      (i == 0 ? first : masks).us.push_back((clock_.Now() - begin).seconds() * 1e6);
      if (i == tokens.size()) break;
      begin = clock_.Now();
      const base::Status accepted = state->Accept(tokens[i]);
      accepts.us.push_back((clock_.Now() - begin).seconds() * 1e6);
      CHECK(accepted.ok()) << i << ": " << tokenizer_.TokenBytes(tokens[i]);
    }
  }

  // The first round as the tokenizer has it; then each token is split at random.
  std::vector<base::TokenId> Tokens(std::string_view answer, int round) {
    auto whole = tokenizer_.Encode(answer, text::ControlTokens::kAsText, false).value();
    if (round == 0) return whole;
    base::Rng rng(static_cast<uint64_t>(round));
    std::vector<base::TokenId> tokens;
    for (const base::TokenId token : whole) {
      const std::string_view bytes = tokenizer_.TokenBytes(token);
      size_t cut = rng.Below(bytes.size() + 1);
      while (cut < bytes.size() && (static_cast<unsigned char>(bytes[cut]) & 0xC0) == 0x80) ++cut;
      const auto head =
          tokenizer_.Encode(bytes.substr(0, cut), text::ControlTokens::kAsText, false);
      const auto tail = tokenizer_.Encode(bytes.substr(cut), text::ControlTokens::kAsText, false);
      if (!head.ok() || !tail.ok()) {  // not whole characters
        tokens.push_back(token);
        continue;
      }
      tokens.insert(tokens.end(), head->begin(), head->end());
      tokens.insert(tokens.end(), tail->begin(), tail->end());
    }
    return tokens;
  }

  void Print(const std::string& name, double compile_ms, Series& first, Series& masks,
             Series& accepts) {
    out_ << fmt::format("{},{},{:.2f},{:.0f},{:.0f},{},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f}\n", name,
                        tokenizer_.size(), compile_ms, first.At(0.5), first.At(1), masks.us.size(),
                        masks.At(0.5), masks.At(0.99), masks.At(1), accepts.At(0.5),
                        accepts.At(0.99));
  }

  const text::Tokenizer& tokenizer_;
  std::ostream& out_;
  base::SystemClock clock_;
  std::shared_ptr<const text::GrammarVocabulary> vocabulary_;
  Series compiles_, first_, masks_, accepts_;
};

// Processor time is limited, so on a busy machine these times may be longer than the limit.
class HostileBench {
 public:
  explicit HostileBench(const text::Tokenizer& tokenizer)
      : tokenizer_(tokenizer), mask_((tokenizer.size() + 31) / 32) {
    vocabulary_ = text::GrammarVocabulary::Make(tokenizer).value();
    std::cout << "hostile grammar,compile_ms,steps,mask_ms_max,accept_ms_max,end\n";
  }

  void Run(const text::testing::HostileGrammar& hostile) {
    const base::Instant begin = clock_.Now();
    const auto grammar = vocabulary_->Compile(hostile.spec, kCompileMs);
    const double compile_ms = (clock_.Now() - begin).seconds() * 1e3;
    steps_ = 0, mask_ms_max_ = 0, accept_ms_max_ = 0;
    const base::Status end = grammar.ok() ? Follow(**grammar, hostile.start) : grammar.status();
    worst_ms_ = std::max({worst_ms_, mask_ms_max_, accept_ms_max_});
    std::cout << fmt::format("{},{:.2f},{},{:.2f},{:.2f},\"{}\"\n", hostile.name, compile_ms,
                             steps_, mask_ms_max_, accept_ms_max_,
                             end.ok() ? "goes on" : end.message());
  }

  void PrintAll() const { std::cout << fmt::format("all,,,{:.2f},,\n", worst_ms_); }

 private:
  base::Status Follow(const text::Grammar& grammar, std::string_view start) {
    constexpr int kStepsMax = 200;
    const auto state = grammar.NewState();
    const auto tokens = tokenizer_.Encode(start, text::ControlTokens::kAsText, false).value();
    base::Rng rng(1);
    for (; steps_ < kStepsMax && !state->Complete(); ++steps_) {
      const base::Instant begin = clock_.Now();
      const base::Status filled = state->FillMask(mask_);
      mask_ms_max_ = std::max(mask_ms_max_, (clock_.Now() - begin).seconds() * 1e3);
      RETURN_IF_ERROR(filled);
      const size_t at = static_cast<size_t>(steps_);
      RETURN_IF_ERROR(Accept(*state, at < tokens.size() ? tokens[at] : Choose(rng)));
    }
    return base::OkStatus();
  }
  base::Status Accept(text::GrammarState& state, base::TokenId token) {
    const base::Instant begin = clock_.Now();
    base::Status accepted = state.Accept(token);
    accept_ms_max_ = std::max(accept_ms_max_, (clock_.Now() - begin).seconds() * 1e3);
    return accepted;
  }
  // One that is allowed, the next from a random place on; no end token while there is another.
  base::TokenId Choose(base::Rng& rng) const {
    const auto place = static_cast<uint32_t>(rng.Below(tokenizer_.size()));
    for (uint32_t i = 0; i < tokenizer_.size(); ++i) {
      const base::TokenId token{(place + i) % tokenizer_.size()};
      if (text::testing::Allows(mask_, token) && !vocabulary_->IsEnd(token)) return token;
    }
    return tokenizer_.end_tokens()[0];
  }

  const text::Tokenizer& tokenizer_;
  std::vector<uint32_t> mask_;
  base::SystemClock clock_;
  std::shared_ptr<const text::GrammarVocabulary> vocabulary_;
  int steps_ = 0;
  double mask_ms_max_ = 0, accept_ms_max_ = 0, worst_ms_ = 0;
};

std::unique_ptr<text::Tokenizer> MakeTokenizer(const std::string& file) {
  std::ifstream in(file);
  const std::string json{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return text::Tokenizer::FromJson(json).value();
}

}  // namespace
}  // namespace plumb::golden

int main(int argc, char** argv) {
  using namespace plumb::golden;
  std::string json;
  int rounds = 20;
  bool hostile = false;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--hostile") hostile = true;
    if (name == "--tokenizer" && i + 1 < argc) json = argv[++i];
    if (name == "--rounds" && i + 1 < argc) rounds = std::stoi(argv[++i]);
  }
  if (json.empty() || rounds < 1) return 2;
  const auto tokenizer = MakeTokenizer(json);
  if (hostile) {
    HostileBench bench(*tokenizer);
    for (const auto& grammar : plumb::text::testing::HostileGrammars()) bench.Run(grammar);
    bench.PrintAll();
    return 0;
  }
  std::stringstream out;
  Bench bench(*tokenizer, out);
  for (const Case& c : kCases) bench.Run(c, rounds);
  bench.PrintAll();
  std::cout << out.str();
  return 0;
}
