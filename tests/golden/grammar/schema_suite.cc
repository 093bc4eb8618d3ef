// tests/golden/grammar/schema_suite.cc
// Runs groups in the format of the JSON-Schema-Test-Suite (a schema, instances valid and not)
// through the grammar compiler, token by token: each group must be refused by the name of a
// keyword, or take every valid instance and no invalid one. Prints a table, one line a file.
//   schema_suite --suite FOLDER [--tokenizer TOKENIZER_JSON] [--csv FILE] [--least-enforced N]
//   [--list]
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "base/check.h"
#include "json_forms.h"
#include "text/grammar_compiler.h"
#include "text/grammar_testing.h"

namespace plumb::golden {
namespace {

using nlohmann::ordered_json;

constexpr size_t kOrdersMax = 720;
constexpr size_t kInvalidOrdersMax = 120;

struct Options {
  std::filesystem::path suite, tokenizer, csv;
  int least_enforced = 0;
  bool list = false;
};

struct Counts {
  int groups = 0, enforced = 0, refused = 0, wrong = 0;
  int valid = 0, invalid = 0, unwritable = 0;  // instances of enforced groups

  void Add(const Counts& other) {
    groups += other.groups, enforced += other.enforced, refused += other.refused;
    wrong += other.wrong, valid += other.valid, invalid += other.invalid;
    unwritable += other.unwritable;
  }
};

class Suite {
 public:
  Suite(const text::Tokenizer& tokenizer, bool list)
      : tokenizer_(tokenizer), compiler_(tokenizer), list_(list) {}

  Counts RunGroup(const std::string& file, const ordered_json& group) {
    const std::string name = fmt::format("{}: {}", file, group["description"].get<std::string>());
    Counts counts{.groups = 1};
    const auto grammar = compiler_.Compile(
        {.kind = text::GrammarKind::kJsonSchema, .source = group["schema"].dump()});
    if (!grammar.ok()) {
      const bool named = NamesWhy(grammar.status(), group["schema"]);
      if (list_ || !named)
        std::cout << (named ? "refused  " : "UNNAMED  ") << name << ": "
                  << grammar.status().message() << "\n";
      (named ? counts.refused : counts.wrong) = 1;
      return counts;
    }
    bool right = true;
    for (const ordered_json& test : group["tests"]) right &= RunTest(name, **grammar, test, counts);
    (right ? counts.enforced : counts.wrong) = 1;
    return counts;
  }

 private:
  // A keyword of the schema, or that it allows nothing.
  static bool NamesWhy(const base::Status& status, const ordered_json& schema) {
    if (status.code() != base::Code::kInvalidArgument) return false;
    if (status.message().find("allows nothing") != std::string::npos) return true;
    const size_t begin = status.message().find('"');
    if (begin == std::string::npos) return false;
    const size_t end = status.message().find('"', begin + 1);
    const std::string keyword = status.message().substr(begin, end - begin + 1) + ":";
    return schema.dump().find(keyword) != std::string::npos;
  }

  bool RunTest(const std::string& group, const text::Grammar& grammar, const ordered_json& test,
               Counts& counts) {
    const ordered_json& data = test["data"];
    const std::string name = fmt::format("{} / {}", group, test["description"].get<std::string>());
    if (!test["valid"].get<bool>()) {
      ++counts.invalid;
      for (const Spacing spacing : {Spacing::kCompact, Spacing::kSpaced})
        for (const Numbers numbers : {Numbers::kWhole, Numbers::kWritten})
          for (const std::string& text : Forms(data, spacing, numbers, kInvalidOrdersMax))
            if (Takes(grammar, text)) return Wrong("takes the invalid", name, text);
      return true;
    }
    if (!Writable(data)) {
      ++counts.unwritable;
      return true;
    }
    ++counts.valid;
    for (const Spacing spacing : {Spacing::kCompact, Spacing::kSpaced}) {
      const std::vector<std::string> texts = Forms(data, spacing, Numbers::kWhole, kOrdersMax);
      const auto taken = [&](const std::string& text) { return Takes(grammar, text); };
      if (std::none_of(texts.begin(), texts.end(), taken))
        return Wrong("does not take the valid", name, texts[0]);
    }
    return true;
  }

  static bool Wrong(std::string_view what, const std::string& name, const std::string& text) {
    std::cout << "WRONG    " << what << " " << text << " in " << name << "\n";
    return false;
  }

  // Byte by byte where the tokenizer has all bytes, and as the tokenizer cuts the text.
  bool Takes(const text::Grammar& grammar, const std::string& text) {
    const auto tokens = tokenizer_.Encode(text, text::ControlTokens::kAsText, false);
    CHECK(tokens.ok()) << tokens.status().ToString();
    const bool whole = text::testing::TakesWhole(grammar, tokenizer_, *tokens);
    // A control character that the vocabulary lacks is dropped by Encode.
    size_t bytes = 0;
    for (const base::TokenId token : *tokens) bytes += tokenizer_.TokenBytes(token).size();
    return whole && bytes == text.size();
  }

  const text::Tokenizer& tokenizer_;
  text::GrammarCompiler compiler_;
  const bool list_;
};

// Without a file, the small vocabulary of the unit tests.
std::unique_ptr<text::Tokenizer> MakeTokenizer(const std::filesystem::path& file) {
  if (file.empty()) return text::testing::MakeGrammarTokenizer();
  std::ifstream in(file);
  const std::string json{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return text::Tokenizer::FromJson(json).value();
}

std::string Line(const std::string& name, const Counts& counts) {
  return fmt::format("{},{},{},{},{},{},{},{}\n", name, counts.groups, counts.enforced,
                     counts.refused, counts.wrong, counts.valid, counts.invalid, counts.unwritable);
}

int Run(const Options& options) {
  const auto tokenizer = MakeTokenizer(options.tokenizer);
  Suite suite(*tokenizer, options.list);
  std::map<std::string, Counts> files;
  for (const auto& entry : std::filesystem::directory_iterator(options.suite)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    const std::string name = entry.path().stem();
    for (const ordered_json& group : ordered_json::parse(in))
      files[name].Add(suite.RunGroup(name, group));
  }
  std::string table = "file,groups,enforced,refused,wrong,valid,invalid,unwritable\n";
  Counts all;
  for (const auto& [name, counts] : files) {
    table += Line(name, counts);
    all.Add(counts);
  }
  table += Line("all", all);
  std::cout << table;
  if (!options.csv.empty()) std::ofstream(options.csv) << table;
  return all.wrong == 0 && all.groups > 0 && all.enforced >= options.least_enforced ? 0 : 1;
}

}  // namespace
}  // namespace plumb::golden

int main(int argc, char** argv) {
  plumb::golden::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (name == "--suite")
      options.suite = value();
    else if (name == "--tokenizer")
      options.tokenizer = value();
    else if (name == "--csv")
      options.csv = value();
    else if (name == "--least-enforced")
      options.least_enforced = std::stoi(value());
    else if (name == "--list")
      options.list = true;
    else
      return 2;
  }
  return plumb::golden::Run(options);
}
