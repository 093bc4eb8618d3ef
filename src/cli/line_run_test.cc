// cli/line_run_test.cc
// Whole runs over a generator that answers out of order: what a run writes, and that a run killed
// at any byte of its output goes on without losing, repeating or mixing answers.
#include "cli/line_run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/testing/byte_vocabulary.h"
#include "api/testing/deepseek_vocabulary.h"
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
      samples_most = std::max(samples_most, request.samples);
      priorities.insert(request.priority);
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
  engine::FinishReason reason = engine::FinishReason::kStop;  // of every answer
  base::Status failure = base::Unsupported("it went wrong");  // with kError
  std::optional<std::string> stop;                            // of every answer
  std::string text;                                           // of every answer; empty: its seed
  uint32_t samples_most = 0;                                  // of a request
  std::set<engine::Priority> priorities;

 private:
  struct Waiting {
    engine::Request request;
    engine::EventSink* sink;
  };
  void AnswerWaiting(std::optional<engine::FinishReason> instead = std::nullopt) {
    if (submitted >= refuse_after) refuse_with = base::Internal("the engine is gone");
    std::vector<Waiting> waiting = std::exchange(waiting_, {});
    std::ranges::reverse(waiting);
    for (Waiting& one : waiting) {
      for (uint32_t i = one.request.samples; i-- > 0;)
        one.sink->OnEvent(Answer(one.request, i, instead.value_or(reason)));
    }
  }
  // Two tokens; the third sample is the likeliest, then the second.
  engine::TokenEvent Answer(const engine::Request& request, uint32_t sample,
                            engine::FinishReason why) const {
    engine::TokenEvent event{};
    event.request = request.id;
    event.sample_index = sample;
    event.text = "seed " + std::to_string(request.sampling.seed);
    if (sample > 0) event.text += " sample " + std::to_string(sample);
    if (!text.empty()) event.text = text;
    event.tokens = {base::TokenId{65 + sample}, api::testing::kEndToken};
    if (request.sampling.logprobs) {
      const float logprob = sample == 2 ? -0.25f : sample == 1 ? -0.5f : -1.0f;
      event.logprobs.push_back({event.tokens[0], logprob, {}});
      if (request.sampling.top_logprobs > 0) {
        event.logprobs[0].top = {{base::TokenId{66}, -1.5f}};
      }
      event.logprobs.push_back({event.tokens[1], logprob, {}});
    }
    if (request.prompt_logprobs && sample == 0) {
      for (size_t i = 1; i < request.prompt.size(); ++i) {
        event.prompt_logprobs.push_back({request.prompt[i], -2.0f, {}});
      }
    }
    engine::Finish finish{};
    finish.reason = why;
    finish.stop = stop;
    if (why == engine::FinishReason::kError) finish.status = failure;
    finish.prompt_tokens = static_cast<uint32_t>(request.prompt.size());
    finish.completion_tokens = 2;
    event.finish = finish;
    return event;
  }
  std::vector<Waiting> waiting_;
};

constexpr std::string_view kCallingAnswer =
    "It is small.\n</think>One moment.\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"add\">\n"
    "<｜DSML｜ parameter name=\"a\" string=\"false\">1</｜DSML｜ parameter>\n"
    "</｜DSML｜ invoke>\n</｜DSML｜ calls>";
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

  base::Result<LineTotals> Run(size_t expected) {
    generator_ = {};
    generator_.expected = expected;
    generator_.group_size = group_size_;
    const LineJob job{folder_ + "/in", folder_ + "/out", {.seed = run_seed_},
                      strict_,         "model 1",        3};
    return RunJob(job);
  }
  base::Result<LineTotals> RunJob(const LineJob& job) {
    return AnswerLines(job, {generator_, {*format_, *tokenizer_, 1000}, clock_, NoProgress(), {}});
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
  std::unique_ptr<text::ChatFormat> format_ = api::testing::MakeChatFormat(*tokenizer_);
  base::ManualClock clock_;
  BackwardsGenerator generator_;
  size_t group_size_ = 3;
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
  const LineJob other_model{folder_ + "/in", folder_ + "/out", {}, false, "model 2", 3};
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
  const LineJob job{folder_ + "/in", folder_ + "/out", {}, false, "model 1", 3};
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

TEST_F(GenerateTest, ALineMayAskForSeveralAnswersOrTheLikeliestOfSeveral) {
  group_size_ = 1;
  WriteInput(R"({"prompt": "a", "n": 2, "seed": 5}
{"prompt": "b", "best_of": 3, "seed": 6}
{"prompt": "c", "n": 2, "best_of": 3, "logprobs": true, "seed": 7}
)");
  ASSERT_TRUE(Run(3).ok());
  std::vector<nlohmann::json> answers;
  for (const std::string& line : LinesOf(Output())) answers.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(answers.size(), 3u);
  ASSERT_EQ(answers[0]["choices"].size(), 2u);
  EXPECT_EQ(answers[0]["choices"][0]["text"], "seed 5");
  EXPECT_EQ(answers[0]["choices"][1]["text"], "seed 5 sample 1");
  EXPECT_EQ(answers[0]["choices"][1]["index"], 1);
  EXPECT_FALSE(answers[0].contains("text"));
  EXPECT_FALSE(answers[0]["choices"][0].contains("logprobs"));
  EXPECT_EQ(answers[0]["usage"]["completion_tokens"], 4);
  EXPECT_EQ(answers[1]["text"], "seed 6 sample 2");
  EXPECT_FALSE(answers[1].contains("logprobs")) << "computed for the choice, not asked for";
  EXPECT_EQ(answers[1]["usage"]["completion_tokens"], 6) << "all that was computed counts";
  EXPECT_EQ(answers[2]["choices"][0]["text"], "seed 7 sample 2");
  EXPECT_EQ(answers[2]["choices"][1]["text"], "seed 7 sample 1");
  EXPECT_EQ(answers[2]["choices"][1]["logprobs"][0]["logprob"], -0.5);
}

TEST_F(GenerateTest, EchoAndPromptLogprobsShowThePrompt) {
  WriteInput(R"({"prompt": "ab", "echo": true, "logprobs": true, "seed": 5}
{"prompt": [97, 98], "echo": true, "seed": 5}
{"messages": [{"role": "user", "content": "x"}], "prompt_logprobs": true, "seed": 5}
)");
  ASSERT_TRUE(Run(3).ok());
  std::vector<nlohmann::json> answers;
  for (const std::string& line : LinesOf(Output())) answers.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0]["text"], "abseed 5");
  EXPECT_EQ(answers[0]["prompt_logprobs"].size(), answers[0]["usage"]["prompt_tokens"]);
  EXPECT_TRUE(answers[0]["prompt_logprobs"][0].is_null());
  EXPECT_EQ(answers[0]["prompt_logprobs"][1]["logprob"], -2.0);
  EXPECT_EQ(answers[1]["text"], "abseed 5");
  EXPECT_FALSE(answers[1].contains("prompt_logprobs"));
  EXPECT_EQ(answers[2]["prompt_logprobs"].size(), answers[2]["usage"]["prompt_tokens"]);
  EXPECT_EQ(answers[2]["text"], "seed 5");
}

TEST_F(GenerateTest, AnswersToMessagesAreTakenApartAsInTheChatApi) {
  const auto tokenizer = api::testing::MakeDeepseekTokenizer();
  const auto format = api::testing::MakeDeepseekFormat(*tokenizer);
  WriteInput(R"({"messages": [{"role": "user", "content": "x"}], "parallel_tool_calls": false,)"
             R"( "tools": [{"type": "function", "function": {"name": "add"}}]})"
             "\n{\"prompt\": \"raw\"}\n");
  const auto answers = [&](const BackwardsGenerator& with, LineKind kind) {
    generator_ = with;
    generator_.text = kCallingAnswer;
    generator_.expected = 2;
    WriteOutput("");
    LineJob job{folder_ + "/in", folder_ + "/out", {}, false, "model 1", 3};
    job.defaults.abilities = format->abilities();
    job.defaults.kind = kind;
    const auto totals =
        AnswerLines(job, {generator_, {*format, *tokenizer, 9999}, clock_, NoProgress(), {}});
    EXPECT_TRUE(totals.ok()) << totals.status().ToString();
    std::vector<nlohmann::json> lines;
    for (const auto& line : LinesOf(Output())) lines.push_back(nlohmann::json::parse(line));
    return lines;
  };
  const auto whole = answers({}, LineKind::kGenerate);
  EXPECT_EQ(whole[0]["text"], "One moment.");
  EXPECT_EQ(whole[0]["reasoning_content"], "It is small.");
  EXPECT_EQ(whole[0]["finish_reason"], "tool_calls");
  ASSERT_EQ(whole[0]["tool_calls"].size(), 1u);
  EXPECT_EQ(whole[0]["tool_calls"][0]["id"], "call_0_0_0");
  EXPECT_EQ(whole[0]["tool_calls"][0]["function"]["name"], "add");
  EXPECT_EQ(whole[0]["tool_calls"][0]["function"]["arguments"], R"({"a": 1})");
  EXPECT_EQ(whole[1]["text"], kCallingAnswer) << "a prompt of one's own is answered as it comes";
  EXPECT_FALSE(whole[1].contains("reasoning_content"));
  BackwardsGenerator cut;
  cut.reason = engine::FinishReason::kLength;
  EXPECT_EQ(answers(cut, LineKind::kGenerate)[0]["finish_reason"], "length");
  BackwardsGenerator stopped;
  stopped.stop = "mine";
  EXPECT_EQ(answers(stopped, LineKind::kGenerate)[0]["finish_reason"], "stop");
  stopped.stop = "</｜DSML｜ invoke>";  // the prompt's own
  EXPECT_EQ(answers(stopped, LineKind::kGenerate)[0]["finish_reason"], "tool_calls");
  EXPECT_EQ(answers({}, LineKind::kRollout)[0]["samples"][0]["text"], kCallingAnswer);
}

TEST_F(GenerateTest, OfflineWorkGivesWayUnlessItSaysOtherwise) {
  WriteInput("{\"prompt\": \"a\"}\n");
  ASSERT_TRUE(Run(1).ok());
  EXPECT_EQ(generator_.priorities, std::set{engine::Priority::kBatch});
  WriteOutput("");
  WriteInput("{\"prompt\": \"a\", \"priority\": \"interactive\"}\n");
  ASSERT_TRUE(Run(1).ok());
  EXPECT_EQ(generator_.priorities, std::set{engine::Priority::kInteractive});
}

TEST_F(GenerateTest, ARolloutTellsIdsLogprobsSeedsAndWeightsOfEverySample) {
  WriteInput(R"({"id": 1, "prompt": [97, 98], "top_logprobs": 1, "logprobs": true}
{"prompt": "x", "n": 1}
{"prompt": "x", "best_of": 2}
)");
  LineJob job{folder_ + "/in", folder_ + "/out", {}, false, "model 1", 40};
  job.defaults.kind = LineKind::kRollout;
  job.defaults.samples = 20;
  generator_.expected = 3;
  const LineParts parts{generator_,
                        {*format_, *tokenizer_, 1000},
                        clock_,
                        NoProgress(),
                        {"c0ffee", "plumb.1-f16kv", "fp_1"}};
  const auto totals = AnswerLines(job, parts);
  ASSERT_TRUE(totals.ok()) << totals.status().ToString();
  EXPECT_EQ(totals->tokens, 2u * (20 + 1));
  EXPECT_EQ(generator_.samples_most, engine::kSamplesMax);
  std::vector<nlohmann::json> answers;
  for (const std::string& line : LinesOf(Output())) answers.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(answers.size(), 3u);
  const nlohmann::json& first = answers[0];
  EXPECT_EQ(first["prompt_token_ids"], (nlohmann::json{97, 98}));
  EXPECT_EQ(first["weights"]["content_sha256"], "c0ffee");
  EXPECT_EQ(first["weights"]["numerics_id"], "plumb.1-f16kv");
  EXPECT_EQ(first["weights"]["system_fingerprint"], "fp_1");
  ASSERT_EQ(first["samples"].size(), 20u);
  const nlohmann::json& late = first["samples"][18];  // the third of the second request
  EXPECT_EQ(late["sample"], 18);
  EXPECT_EQ(late["seed_index"], 2);
  EXPECT_NE(late["seed"], first["samples"][0]["seed"]);
  EXPECT_EQ(late["text"], "seed " + std::to_string(late["seed"].get<uint64_t>()) + " sample 2");
  EXPECT_EQ(late["token_ids"], (nlohmann::json{67, 257}));
  EXPECT_EQ(late["logprobs"], (nlohmann::json{-0.25, -0.25}));
  EXPECT_EQ(late["top_logprobs"][0][0]["token_id"], 66);
  EXPECT_EQ(late["finish_reason"], "stop");
  EXPECT_EQ(answers[1]["samples"].size(), 1u);
  EXPECT_FALSE(answers[1]["samples"][0].contains("top_logprobs"));
  EXPECT_EQ(answers[2]["error"]["param"], "best_of");
}

TEST_F(GenerateTest, AnAnswerThatFailedFailsItsLineAlone) {
  WriteInput("{\"prompt\": \"a\", \"n\": 2}\n{\"prompt\": \"b\"}\n");
  generator_.reason = engine::FinishReason::kError;
  generator_.expected = 2;
  const LineJob job{folder_ + "/in", folder_ + "/out", {}, false, "model 1", 3};
  const auto totals = RunJob(job);
  ASSERT_TRUE(totals.ok()) << totals.status().ToString();
  EXPECT_EQ(totals->errors, 2u);
  const auto line = nlohmann::json::parse(LinesOf(Output())[0]);
  EXPECT_EQ(line["error"]["message"], "line 1: it went wrong");
}

// Another run may have the answer, so none is written in its place.
TEST_F(GenerateTest, AnErrorOfOursEndsTheRunAndTheNextOneGoesOn) {
  for (const base::Code code : {base::Code::kInternal, base::Code::kUnavailable,
                                base::Code::kOverloaded, base::Code::kCorrupt}) {
    WriteOutput("");
    generator_ = {};
    generator_.reason = engine::FinishReason::kError;
    generator_.failure = base::Status(code, "the engine stands still");
    generator_.group_size = 1;
    const LineJob job{folder_ + "/in", folder_ + "/out", {.seed = run_seed_}, false, "model 1", 3};
    const base::Status status = RunJob(job).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(status.message().find("line 1 of"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("the engine stands still"), std::string::npos);
    EXPECT_EQ(LinesOf(Output()).size(), 0u);
    const auto totals = Run(kGoodLines);
    ASSERT_TRUE(totals.ok()) << totals.status().ToString();
    EXPECT_EQ(LinesOf(Output()).size(), kLines);
    EXPECT_EQ(totals->errors, kLines - kGoodLines);
  }
}

}  // namespace
}  // namespace plumb::cli
