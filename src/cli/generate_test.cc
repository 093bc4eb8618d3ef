// cli/generate_test.cc
// Whole runs over a generator that answers out of order: what a run writes, and that a run killed
// at any byte of its output goes on without losing, repeating or mixing answers.
#include "cli/generate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/testing/byte_vocabulary.h"
#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "cli/generate_output.h"

namespace plumb::cli {
namespace {
namespace fs = std::filesystem;

// Answers with what it was asked, a few requests at a time, last come first served.
class BackwardsGenerator final : public engine::Generator {
 public:
  base::Status Submit(engine::Request request, engine::EventSink& sink) override {
    if (refuse_with.ok()) {
      waiting_.push_back({std::move(request), &sink});
      ++submitted;
      if (waiting_.size() == group_size || submitted == expected) AnswerWaiting();
      return base::OkStatus();
    }
    return refuse_with;
  }
  void Cancel(engine::RequestId) override { AnswerWaiting(engine::FinishReason::kCancelled); }

  size_t group_size = 3;
  size_t expected = 0;  // requests in all
  size_t submitted = 0;
  size_t refuse_after = SIZE_MAX;
  base::Status refuse_with;

 private:
  struct Waiting {
    engine::Request request;
    engine::EventSink* sink;
  };
  void AnswerWaiting(engine::FinishReason reason = engine::FinishReason::kStop) {
    if (submitted >= refuse_after) refuse_with = base::Internal("the engine is gone");
    std::vector<Waiting> waiting = std::exchange(waiting_, {});
    std::ranges::reverse(waiting);
    for (Waiting& one : waiting) {
      engine::TokenEvent event{.request = one.request.id};
      event.text = "seed " + std::to_string(one.request.sampling.seed);
      if (one.request.sampling.logprobs) {
        event.logprobs.push_back({base::TokenId{65}, -0.5f, {{base::TokenId{66}, -1.5f}}});
      }
      event.finish =
          engine::Finish{.reason = reason,
                         .status = {},
                         .stop = std::nullopt,
                         .prompt_tokens = static_cast<uint32_t>(one.request.prompt.size()),
                         .completion_tokens = 2};
      one.sink->OnEvent(std::move(event));
    }
  }
  std::vector<Waiting> waiting_;
};

constexpr const char* kInput =
    "{\"id\": \"a\", \"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"seed\": 5}\n"
    "\n"
    "{\"prompt\": \"raw text\"}\n"
    "{\"prompt\": 7}\n"
    "{\"id\": 12, \"prompt\": \"logs\", \"logprobs\": true, \"top_logprobs\": 1}\n"
    "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"temperature\": 9}\n"
    "{\"prompt\": \"last, without a line end\"}";
constexpr size_t kGoodLines = 4;
constexpr size_t kLines = 6;

class GenerateTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = scratch_.path();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    WriteInput(kInput);
  }

  void WriteInput(std::string_view content) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_ + "/in", content).ok());
  }
  void WriteOutput(std::string_view content) {
    fs::remove(folder_ + "/out");
    ASSERT_TRUE(base::WriteFileAtomic(folder_ + "/out", content).ok());
  }
  std::string Output() const { return base::ReadFile(folder_ + "/out", 1u << 20).value_or(""); }

  base::Result<GenerateTotals> Run(size_t expected) {
    generator_ = {};
    generator_.expected = expected;
    const GenerateJob job{folder_ + "/in", folder_ + "/out", {.seed = run_seed_},
                          strict_,         "model 1",        3};
    return RunJob(job);
  }
  base::Result<GenerateTotals> RunJob(const GenerateJob& job) {
    return Generate(job, {generator_, {*template_, *tokenizer_, 1000}, clock_, NoProgress()});
  }
  static std::vector<std::string> LinesOf(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
      const size_t end = text.find('\n') + 1;
      lines.emplace_back(text.substr(0, end));
      text.remove_prefix(end);
    }
    return lines;
  }

  base::ScratchFolder scratch_;
  std::string folder_;
  std::unique_ptr<text::Tokenizer> tokenizer_ = api::testing::MakeByteTokenizer();
  std::unique_ptr<text::ChatTemplate> template_ = api::testing::MakeTemplate();
  base::ManualClock clock_;
  BackwardsGenerator generator_;
  uint64_t run_seed_ = 0;
  bool strict_ = false;
};

TEST_F(GenerateTest, AnswersEveryLineInTheOrderOfTheInput) {
  const auto totals = Run(kGoodLines);
  ASSERT_TRUE(totals.ok()) << totals.status().ToString();
  EXPECT_EQ(totals->lines, kLines);
  EXPECT_EQ(totals->errors, 2u);
  EXPECT_EQ(totals->tokens, 2 * kGoodLines);
  const std::vector<std::string> lines = LinesOf(Output());
  ASSERT_EQ(lines.size(), kLines);
  std::vector<nlohmann::json> answers;
  for (const std::string& line : lines) answers.push_back(nlohmann::json::parse(line));
  EXPECT_EQ(answers[0]["index"], 0);
  EXPECT_EQ(answers[0]["id"], "a");
  EXPECT_EQ(answers[0]["text"], "seed 5");
  EXPECT_EQ(answers[0]["finish_reason"], "stop");
  EXPECT_EQ(answers[0]["seed"], 5);
  EXPECT_EQ(answers[0]["usage"]["completion_tokens"], 2);
  EXPECT_FALSE(answers[0].contains("logprobs"));
  EXPECT_EQ(answers[1]["index"], 2) << "a blank line counts, and gets no answer";
  EXPECT_EQ(answers[2]["error"]["param"], "prompt");
  EXPECT_TRUE(answers[2]["error"]["message"].get<std::string>().starts_with("line 4: "));
  EXPECT_EQ(answers[3]["id"], 12);
  EXPECT_EQ(answers[3]["logprobs"][0]["token"], "A");
  EXPECT_EQ(answers[3]["logprobs"][0]["top"][0]["token_id"], 66);
  EXPECT_EQ(answers[4]["error"]["param"], "temperature");
  EXPECT_EQ(answers[5]["index"], 6);
}

TEST_F(GenerateTest, KilledAtAnyByteGoesOnWithoutLosingOrRepeating) {
  ASSERT_TRUE(Run(kGoodLines).ok());
  const std::string whole = Output();
  // As a killed run would have left it: not in order.
  std::vector<std::string> lines = LinesOf(whole);
  std::swap(lines[0], lines[4]);
  std::swap(lines[2], lines[5]);
  std::string unsorted;
  for (const std::string& line : lines) unsorted += line;
  for (size_t size = 0; size <= unsorted.size(); ++size) {
    const std::string left = unsorted.substr(0, size);
    WriteOutput(left);
    const auto complete = static_cast<size_t>(std::ranges::count(left, '\n'));
    size_t good_left = kGoodLines;
    for (size_t i = 0; i < complete; ++i) good_left -= lines[i].find("\"error\"") == lines[i].npos;
    const auto totals = Run(good_left);
    ASSERT_TRUE(totals.ok()) << size << ": " << totals.status().ToString();
    ASSERT_EQ(Output(), whole) << size;
    ASSERT_EQ(totals->answered_before, complete) << size;
    ASSERT_EQ(generator_.submitted, good_left) << size << ": no request twice";
  }
}

TEST_F(GenerateTest, ASecondRunChangesNothing) {
  ASSERT_TRUE(Run(kGoodLines).ok());
  const std::string whole = Output();
  const auto totals = Run(0);
  ASSERT_TRUE(totals.ok());
  EXPECT_EQ(totals->answered_before, kLines);
  EXPECT_EQ(Output(), whole);
}

TEST_F(GenerateTest, LinesAddedToTheInputAreAnsweredNextTime) {
  ASSERT_TRUE(Run(kGoodLines).ok());
  const std::string before = Output();
  WriteInput(std::string(kInput) + "\n{\"prompt\": \"one more\"}\n");
  ASSERT_TRUE(Run(1).ok());
  EXPECT_TRUE(Output().starts_with(before));
  EXPECT_EQ(LinesOf(Output()).size(), kLines + 1);
}

TEST_F(GenerateTest, SeedsFollowRunSeedAndPlaceAndAreTheSameEveryTime) {
  ASSERT_TRUE(Run(kGoodLines).ok());
  const std::string first = Output();
  WriteOutput("");
  ASSERT_TRUE(Run(kGoodLines).ok());
  EXPECT_EQ(Output(), first);
  WriteOutput("");
  run_seed_ = 1;
  ASSERT_TRUE(Run(kGoodLines).ok());
  EXPECT_NE(nlohmann::json::parse(LinesOf(Output())[1])["seed"],
            nlohmann::json::parse(LinesOf(first)[1])["seed"]);
}

TEST_F(GenerateTest, RefusesAnswersToAnotherInputModelOrSetting) {
  ASSERT_TRUE(Run(kGoodLines).ok());
  const std::string whole = Output();
  const GenerateJob other_model{folder_ + "/in", folder_ + "/out", {}, false, "model 2", 3};
  EXPECT_EQ(RunJob(other_model).status().code(), base::Code::kInvalidArgument);
  WriteInput("{\"prompt\": \"something else\"}\n");
  EXPECT_EQ(Run(1).status().code(), base::Code::kInvalidArgument);
  WriteInput("");
  EXPECT_EQ(Run(0).status().code(), base::Code::kInvalidArgument) << "more answers than lines";
  EXPECT_EQ(Output(), whole) << "and leaves them alone";
}

TEST_F(GenerateTest, RefusesAnOutputOfSomethingElse) {
  for (const char* content : {"important notes\n", "{}\n", "{\"index\": 0}\n",
                              "{\"index\": -1, \"key\": \"0123456789abcdef\"}\n",
                              "{\"index\": 0, \"key\": \"short\"}\n"}) {
    WriteOutput(content);
    const auto totals = Run(kGoodLines);
    EXPECT_EQ(totals.status().field(), "--output") << content;
    EXPECT_EQ(Output(), content);
  }
}

TEST_F(GenerateTest, RefusesAnswersGivenTwice) {
  ASSERT_TRUE(Run(kGoodLines).ok());
  WriteOutput(Output() + LinesOf(Output())[0]);
  const auto totals = Run(kGoodLines);
  EXPECT_NE(totals.status().message().find("a second time"), std::string::npos);
}

TEST_F(GenerateTest, OneRunAtATime) {
  const auto other = GenerateOutput::Open(folder_ + "/out");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(Run(kGoodLines).status().code(), base::Code::kOverloaded);
}

TEST_F(GenerateTest, StrictEndsAtTheFirstBadLineBeforeComputing) {
  strict_ = true;
  const auto totals = Run(kGoodLines);
  EXPECT_EQ(totals.status().field(), "--input");
  EXPECT_NE(totals.status().message().find("line 4 of"), std::string::npos);
  EXPECT_EQ(generator_.submitted, 0u);
}

TEST_F(GenerateTest, KeepsWhatIsDoneWhenTheEngineFails) {
  generator_ = {};
  generator_.group_size = 1;
  generator_.refuse_after = 2;
  const GenerateJob job{folder_ + "/in", folder_ + "/out", {}, false, "model 1", 3};
  EXPECT_EQ(RunJob(job).status().code(), base::Code::kInternal);
  EXPECT_EQ(LinesOf(Output()).size(), 3u);  // two answers, one error
  EXPECT_TRUE(Run(2).ok());
  EXPECT_EQ(LinesOf(Output()).size(), kLines);
}

TEST_F(GenerateTest, LeftoversOfAKilledSortDoNoHarm) {
  ASSERT_TRUE(base::WriteFileAtomic(folder_ + "/out.sorted", "half a li").ok());
  ASSERT_TRUE(Run(kGoodLines).ok());
  EXPECT_EQ(LinesOf(Output()).size(), kLines);
  EXPECT_FALSE(fs::exists(folder_ + "/out.sorted"));
}

TEST(ParseLine, NamesWhatIsWrong) {
  const struct {
    const char* line;
    const char* field;
  } kCases[] = {
      {"not json", ""},
      {"[1]", ""},
      {"{}", "messages"},
      {R"({"prompt": "x", "messages": [{"role": "user", "content": "y"}]})", "messages"},
      {R"({"messages": []})", "messages"},
      {R"({"prompt": "x", "n": 2})", "n"},
      {R"({"prompt": "x", "stream": true})", "stream"},
      {R"({"prompt": "x", "deadline_ms": 5})", "deadline_ms"},
      {R"({"prompt": "x", "id": [1]})", "id"},
      {R"({"prompt": "x", "temperatur": 1})", "temperatur"},
      {R"({"prompt": "x", "seed": 1e30})", "seed"},
      {R"({"prompt": "x", "max_tokens": 0})", "max_tokens"},
  };
  for (const auto& test : kCases) {
    const auto line = ParseLine(test.line, 0, {});
    EXPECT_EQ(line.status().code(), base::Code::kInvalidArgument) << test.line;
    EXPECT_EQ(line.status().field(), test.field) << test.line;
  }
}

TEST(ParseLine, TellsTheIdOfARefusedLine) {
  std::string id;
  EXPECT_FALSE(ParseLine(R"({"id": "q7", "prompt": "x", "temperature": 9})", 0, {}, &id).ok());
  EXPECT_EQ(id, "\"q7\"");
}

TEST(BuildRequest, KeepsPromptAndAnswerWithinTheContext) {
  const auto tokenizer = api::testing::MakeByteTokenizer();
  const auto chat_template = api::testing::MakeTemplate();
  const LineModel model{*chat_template, *tokenizer, 20};
  const auto build = [&](const char* text, uint32_t standard) {
    const auto line = ParseLine(text, 0, {});
    return BuildRequest(line.value(), {.seed = 0, .tokens_max = standard}, model);
  };
  const auto size = static_cast<uint32_t>(build(R"({"prompt": "0123456789"})", 0)->prompt.size());
  EXPECT_EQ(build(R"({"prompt": "0123456789"})", 0)->sampling.tokens_max, 20 - size);
  EXPECT_EQ(build(R"({"prompt": "0123456789"})", 3)->sampling.tokens_max, 3u);
  EXPECT_EQ(build(R"({"prompt": "0123456789", "max_tokens": 2})", 3)->sampling.tokens_max, 2u);
  EXPECT_EQ(build(R"({"prompt": "0123456789"})", 300)->sampling.tokens_max, 20 - size);
  EXPECT_EQ(build(R"({"prompt": "0123456789", "max_tokens": 11})", 0).status().reason(),
            "context_length_exceeded");
  EXPECT_EQ(build(R"({"prompt": "01234567890123456789"})", 0).status().reason(),
            "context_length_exceeded");
}

TEST(LineKey, DependsOnLineAndSettingsAndWhereOneEnds) {
  EXPECT_EQ(LineKey("a", "b"), LineKey("a", "b"));
  EXPECT_EQ(LineKey("a", "b").size(), 16u);
  EXPECT_NE(LineKey("a", "b"), LineKey("a", "c"));
  EXPECT_NE(LineKey("ab", "c"), LineKey("a", "bc"));
}

}  // namespace
}  // namespace plumb::cli
