// api/chat_request_test.cc
// Every field of a chat request: what is taken, to which bound, and by which name it is refused.
#include "api/chat_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <span>
#include <string>
#include <vector>

namespace plumb::api {
namespace {

constexpr uint32_t kVocabulary = 1000;

// A minimal request with more members.
std::string Body(const std::string& members) {
  std::string body = R"({"model":"m","messages":[{"role":"user","content":"hi"}])";
  if (!members.empty()) body += "," + members;
  return body + "}";
}

base::Result<ChatRequest> Parse(const std::string& members) {
  return ParseChatRequest(Body(members), {.vocabulary_size = kVocabulary});
}

TEST(ChatRequest, DefaultsAreOpenAIs) {
  auto request = Parse("");
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  EXPECT_EQ(request->model, "m");
  ASSERT_EQ(request->input.messages.size(), 1u);
  EXPECT_EQ(request->input.messages[0].role, "user");
  EXPECT_EQ(request->input.messages[0].content, "hi");
  EXPECT_EQ(request->sampling.temperature, 1.0f);
  EXPECT_EQ(request->sampling.top_p, 1.0f);
  EXPECT_EQ(request->sampling.top_k, 0u);
  EXPECT_EQ(request->samples, 1u);
  EXPECT_FALSE(request->stream);
  EXPECT_FALSE(request->seed_given);
  EXPECT_FALSE(request->tokens_max.has_value());
}

TEST(ChatRequest, EveryHonouredFieldArrives) {
  auto request = Parse(R"("temperature":0.5,"top_p":0.25,"top_k":40,"min_p":0.125,
      "presence_penalty":-1.5,"frequency_penalty":1.5,"repetition_penalty":1.25,
      "logit_bias":{"7":-100,"0":2.5},"seed":42,"stop":["a","b"],"stop_token_ids":[3,999],
      "max_tokens":17,"n":3,"stream":true,"stream_options":{"include_usage":true},
      "logprobs":true,"top_logprobs":5,"ignore_eos":true,"deadline_ms":1500,
      "user":"u","metadata":{"k":"v"})");
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  const engine::SamplingParams& sampling = request->sampling;
  EXPECT_EQ(sampling.temperature, 0.5f);
  EXPECT_EQ(sampling.top_p, 0.25f);
  EXPECT_EQ(sampling.top_k, 40u);
  EXPECT_EQ(sampling.min_p, 0.125f);
  EXPECT_EQ(sampling.presence_penalty, -1.5f);
  EXPECT_EQ(sampling.frequency_penalty, 1.5f);
  EXPECT_EQ(sampling.repetition_penalty, 1.25f);
  ASSERT_EQ(sampling.logit_bias.size(), 2u);
  EXPECT_EQ(sampling.logit_bias[0].token, base::TokenId{7});
  EXPECT_EQ(sampling.logit_bias[0].bias, -100.0f);
  EXPECT_EQ(sampling.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(sampling.stop_tokens.back(), base::TokenId{999});
  EXPECT_EQ(sampling.seed, 42u);
  EXPECT_TRUE(request->seed_given);
  EXPECT_TRUE(sampling.ignore_end);
  EXPECT_TRUE(sampling.logprobs);
  EXPECT_EQ(sampling.top_logprobs, 5u);
  EXPECT_EQ(request->tokens_max, 17u);
  EXPECT_EQ(request->samples, 3u);
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
  EXPECT_EQ(request->deadline_ms, 1500u);
}

struct NumericField {
  const char* name;
  const char* least;  // accepted
  const char* most;   // accepted
  const char* below;  // refused, the nearest that is
  const char* above;
  bool integer;
};

const NumericField kNumericFields[] = {
    {"temperature", "0", "2", "-0.001", "2.001", false},
    {"top_p", "0", "1.0", "-1e-9", "1.0000001", false},
    {"min_p", "0", "1", "-0.1", "1.1", false},
    {"presence_penalty", "-2", "2", "-2.1", "2.1", false},
    {"frequency_penalty", "-2.0", "2e0", "-2.1", "2.1", false},
    {"repetition_penalty", "0.01", "2", "0", "2.1", false},
    {"top_k", "0", "2147483647", "-1", "2147483648", true},
    {"max_tokens", "1", "2147483647", "0", "2147483648", true},
    {"max_completion_tokens", "1", "2147483647", "0", "2147483648", true},
    {"n", "1", "16", "0", "17", true},
    {"seed", "-9223372036854775808", "9223372036854775807", "-9223372036854775809",
     "9223372036854775808", true},
    {"deadline_ms", "1", "600000", "0", "600001", true},
};

TEST(ChatRequest, NumbersAreTakenToTheirBoundsAndNoFurther) {
  for (const NumericField& field : kNumericFields) {
    const std::string name = std::string("\"") + field.name + "\":";
    for (const char* good : {field.least, field.most, "null"}) {
      EXPECT_TRUE(Parse(name + good).ok()) << field.name << " " << good;
    }
    std::vector<std::string> hostile = {
        field.below, field.above, "18446744073709551616",
        "1e400",     "-1e18",     "1e18",
        "NaN",       "Infinity",  "-Infinity",
        "\"1\"",     "true",      "false",
        "[]",        "{}",        "[1]",
        "\"NaN\"",   "0x1",       "99999999999999999999999999999999999999"};
    if (field.integer) {
      hostile.insert(hostile.end(), {"1.0", "1e0", "0.5", "1E3"});
    } else {
      hostile.insert(hostile.end(), {"2147483648", "9223372036854775808"});
    }
    for (const std::string& bad : hostile) {
      auto request = Parse(name + bad);
      ASSERT_FALSE(request.ok()) << field.name << " " << bad;
      EXPECT_EQ(request.status().code(), base::Code::kInvalidArgument) << field.name << " " << bad;
      EXPECT_EQ(request.status().field(), field.name) << bad << ": " << request.status().message();
    }
  }
}

TEST(ChatRequest, NegativeSeedsKeepTheirBits) {
  auto request = Parse(R"("seed":-1)");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->sampling.seed, UINT64_MAX);
}

TEST(ChatRequest, TopPOfZeroStaysPositive) {
  for (const char* tiny : {"0", "-0.0", "1e-300"}) {
    auto request = Parse(std::string("\"top_p\":") + tiny);
    ASSERT_TRUE(request.ok()) << tiny;
    EXPECT_EQ(request->sampling.top_p, FLT_MIN) << tiny;
  }
}

struct Refused {
  const char* members;
  const char* field;
};

void ExpectRefused(std::span<const Refused> cases) {
  for (const Refused& test : cases) {
    auto request = Parse(test.members);
    ASSERT_FALSE(request.ok()) << test.members;
    EXPECT_EQ(request.status().code(), base::Code::kInvalidArgument) << test.members;
    EXPECT_EQ(request.status().field(), test.field) << request.status().message();
    EXPECT_FALSE(request.status().message().empty()) << test.members;
  }
}

TEST(ChatRequest, RefusesWithTheFieldsName) {
  const Refused cases[] = {
      // Wrong types.
      {R"("stream":1)", "stream"},
      {R"("stream":"true")", "stream"},
      {R"("logprobs":5)", "logprobs"},
      {R"("ignore_eos":0)", "ignore_eos"},
      {R"("stop":5)", "stop"},
      {R"("stop":[5])", "stop[0]"},
      {R"("stop":["a",""])", "stop[1]"},
      {R"("stop":["a",null])", "stop[1]"},
      {R"("stop":"")", "stop"},
      {R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])",
       "stop"},
      {R"("stop_token_ids":[-1])", "stop_token_ids[0]"},
      {R"("stop_token_ids":[1000])", "stop_token_ids[0]"},
      {R"("stop_token_ids":["1"])", "stop_token_ids[0]"},
      {R"("stop_token_ids":[null])", "stop_token_ids[0]"},
      {R"("stop_token_ids":7)", "stop_token_ids"},
      {R"("logit_bias":[])", "logit_bias"},
      {R"("logit_bias":{"x":1})", "logit_bias.x"},
      {R"("logit_bias":{"-1":1})", "logit_bias.-1"},
      {R"("logit_bias":{"+1":1})", "logit_bias.+1"},
      {R"("logit_bias":{"01":1})", "logit_bias.01"},
      {R"("logit_bias":{"1 ":1})", "logit_bias.1 "},
      {R"("logit_bias":{"":1})", "logit_bias."},
      {R"("logit_bias":{"1000":1})", "logit_bias.1000"},
      {R"("logit_bias":{"4294967297":1})", "logit_bias.4294967297"},
      {R"("logit_bias":{"1":101})", "logit_bias.1"},
      {R"("logit_bias":{"1":null})", "logit_bias.1"},
      {R"("logit_bias":{"1":"1"})", "logit_bias.1"},
      {R"("top_logprobs":-1,"logprobs":true)", "top_logprobs"},
      {R"("top_logprobs":21,"logprobs":true)", "top_logprobs"},
      {R"("metadata":{"k":1})", "metadata.k"},
      {R"("metadata":"x")", "metadata"},
      {R"("user":7)", "user"},
      {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"("stream":true,"stream_options":{"other":true})", "stream_options.other"},
      // Together.
      {R"("top_logprobs":2)", "top_logprobs"},
      {R"("top_logprobs":2,"logprobs":false)", "top_logprobs"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("max_tokens":5,"max_completion_tokens":6)", "max_tokens"},
  };
  ExpectRefused(cases);
}

TEST(ChatRequest, RefusesWhatItCannotHonourOrDoesNotKnow) {
  const Refused cases[] = {
      // What cannot be honoured.
      {R"("tools":[{"type":"function"}])", "tools"},
      {R"("functions":[{}])", "functions"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":{"type":"function"})", "tool_choice"},
      {R"("response_format":{"type":"xml"})", "response_format.type"},
      {R"("response_format":{"type":"json_schema","json_schema":{}})",
       "response_format.json_schema.schema"},
      {R"("response_format":"text")", "response_format"},
      {R"("modalities":["text","audio"])", "modalities"},
      {R"("audio":{})", "audio"},
      {R"("store":true)", "store"},
      {R"("verbosity":"high")", "verbosity"},
      {R"("verbosity":1)", "verbosity"},
      {R"("function_call":{"name":"f"})", "function_call"},
      {R"("thinking":{"type":"enabled"})", "thinking"},
      {R"("thinking":{"type":"disabled","budget_tokens":9})", "thinking"},
      {R"("reasoning_effort":"high")", "reasoning_effort"},
      {R"("web_search_options":{})", "web_search_options"},
      // Unknown names.
      {R"("min_tokens":5)", "min_tokens"},
      {R"("chat_template":"x")", "chat_template"},
      {R"("Temperature":1)", "Temperature"},
      {R"("guided_json":{})", "guided_json"},
  };
  ExpectRefused(cases);
}

TEST(ChatRequest, TakesWhatAsksForNothing) {
  for (const char* members : {
           R"("tools":[],"tool_choice":"none","functions":null,"parallel_tool_calls":true)",
           R"("response_format":{"type":"text"},"modalities":["text"],"store":false)",
           R"("audio":null,"reasoning_effort":null,"service_tier":"auto","prompt_cache_key":"k")",
           R"("max_tokens":5,"max_completion_tokens":5)",
           R"("reasoning_effort":"none","thinking":{"type":"disabled"})",
           R"("stop":null,"logit_bias":null,"stop_token_ids":null,"stream_options":null)",
           R"("stop":"x","top_logprobs":0,"prediction":{"type":"content","content":"x"})",
       }) {
    auto request = Parse(members);
    EXPECT_TRUE(request.ok()) << members << ": " << request.status().ToString();
  }
}

// Clients that send every field of OpenAI's reference as it is when left out. Of each field that is
// refused otherwise: the default of the reference, or null where that has none.
TEST(ChatRequest, TakesOpenAIsDefaultOfEveryRefusedField) {
  for (const char* member : {R"("functions":[])",
                             R"("function_call":"none")",
                             R"("function_call":"auto")",
                             R"("modalities":["text"])",
                             R"("store":false)",
                             R"("audio":null)",
                             R"("verbosity":"medium")",
                             R"("web_search_options":null)",
                             R"("tools":[])",
                             R"("tool_choice":"none")",
                             R"("tool_choice":"auto")",
                             R"("parallel_tool_calls":true)",
                             R"("service_tier":"auto")",
                             R"("service_tier":"default")",
                             R"("n":1)",
                             R"("frequency_penalty":0)",
                             R"("presence_penalty":0)",
                             R"("logit_bias":null)",
                             R"("logprobs":false)",
                             R"("temperature":1)",
                             R"("top_p":1)",
                             R"("stop":null)",
                             R"("stream":false)",
                             R"("stream_options":null)",
                             R"("reasoning_effort":"none")"}) {
    auto request = Parse(member);
    EXPECT_TRUE(request.ok()) << member << ": " << request.status().ToString();
  }
}

TEST(ChatRequest, ContentIsAStringOrTextParts) {
  auto request = ParseChatRequest(
      R"({"model":"m","messages":[{"role":"developer","content":"be brief"},
          {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],
           "name":"n"},
          {"role":"assistant","content":"c","refusal":null,"tool_calls":[],"annotations":[]},
          {"role":"user","content":""}]})",
      {});
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  ASSERT_EQ(request->input.messages.size(), 4u);
  EXPECT_EQ(request->input.messages[0].role, "system");
  EXPECT_EQ(request->input.messages[1].content, "ab");
  EXPECT_EQ(request->input.messages[1].name, "n");
  EXPECT_EQ(request->input.messages[3].content, "");
}

TEST(ChatRequest, RefusesMessagesWithTheirPath) {
  const Refused cases[] = {
      {R"("messages":[])", "messages"},
      {R"("messages":null)", "messages"},
      {R"("messages":"hi")", "messages"},
      {R"("messages":["hi"])", "messages[0]"},
      {R"("messages":[{"content":"x"}])", "messages[0].role"},
      {R"("messages":[{"role":"robot","content":"x"}])", "messages[0].role"},
      {R"("messages":[{"role":"tool","content":"x"}])", "messages[0].role"},
      {R"("messages":[{"role":1,"content":"x"}])", "messages[0].role"},
      {R"("messages":[{"role":"user"}])", "messages[0].content"},
      {R"("messages":[{"role":"user","content":null}])", "messages[0].content"},
      {R"("messages":[{"role":"user","content":5}])", "messages[0].content"},
      {R"("messages":[{"role":"user","content":["x"]}])", "messages[0].content[0]"},
      {R"("messages":[{"role":"user","content":[{"text":"x"}]}])", "messages[0].content[0].type"},
      {R"("messages":[{"role":"user","content":[{"type":"text"}]}])",
       "messages[0].content[0].text"},
      {R"("messages":[{"role":"user","content":[{"type":"text","text":"x"},
          {"type":"image_url","image_url":{"url":"http://x"}}]}])",
       "messages[0].content[1].image_url.url"},
      {R"("messages":[{"role":"user","content":"x"},
          {"role":"assistant","content":"x","tool_calls":[{}]}])",
       "messages[1].tool_calls"},
      {R"("messages":[{"role":"user","content":"x","name":7}])", "messages[0].name"},
      {R"("messages":[{"role":"user","content":"x","role":"user"}])", "messages[0].role"},
  };
  for (const Refused& test : cases) {
    auto request = ParseChatRequest(std::string(R"({"model":"m",)") + test.members + "}", {});
    ASSERT_FALSE(request.ok()) << test.members;
    EXPECT_EQ(request.status().field(), test.field) << request.status().message();
  }
}

// Read before it is refused, so that a client learns of a broken image from any model.
TEST(ChatRequest, ChecksAnImageAndNamesWhatIsAtFault) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("image_url":{"url":"data:image/png;base64,iVBORw0KGgo="})", ""},
      {R"("image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"})", ""},
      {R"("image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":null})", ""},
      {R"("image_url":{"url":"data:image/png;base64,iVBORw0KGgo="},"id":1)", ".id"},
      {R"("image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"most"})",
       ".image_url.detail"},
      {R"("image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","size":1})", ".image_url.size"},
      {R"("image_url":{"url":"data:image/png;base64,iVBORw0KGg"})", ".image_url.url"},
      {R"("image_url":{"url":"data:image/jpeg;base64,iVBORw0KGgo="})", ".image_url.url"},
      {R"("image_url":{"url":"data:image/svg+xml;base64,PHN2Zy8+"})", ".image_url.url"},
      {R"("image_url":{"url":"data:image/png,iVBORw0KGgo="})", ".image_url.url"},
      {R"("image_url":{"url":"https://example.com/a.png"})", ".image_url.url"},
      {R"("image_url":{"url":"http://169.254.169.254/latest"})", ".image_url.url"},
      {R"("image_url":{"url":"file:///etc/passwd"})", ".image_url.url"},
      {R"("image_url":{"url":7})", ".image_url.url"},
      {R"("image_url":{})", ".image_url.url"},
      {R"("image_url":"data:image/png;base64,iVBORw0KGgo=")", ".image_url"},
      {R"("text":"x")", ".text"},
  };
  for (const auto& [members, field] : cases) {
    const std::string body = std::string(R"({"model":"m","messages":[{"role":"user","content":[)") +
                             R"({"type":"image_url",)" + members + "}]}]}";
    const auto request = ParseChatRequest(body, {});
    ASSERT_FALSE(request.ok()) << members;
    EXPECT_EQ(request.status().field(), std::string("messages[0].content[0]") + field) << members;
  }
}

TEST(ChatRequest, RefusesAMissingModelOrMessages) {
  EXPECT_EQ(
      ParseChatRequest(R"({"messages":[{"role":"user","content":"x"}]})", {}).status().field(),
      "model");
  EXPECT_EQ(ParseChatRequest(R"({"model":"m"})", {}).status().field(), "messages");
  EXPECT_EQ(ParseChatRequest(R"({"model":null,"messages":[{"role":"user","content":"x"}]})", {})
                .status()
                .field(),
            "model");
}

TEST(ChatRequest, BoundsTheNumberOfMessages) {
  const RequestLimits limits{.messages_max = 2};
  const std::string message = R"({"role":"user","content":"x"})";
  const std::string two = message + "," + message;
  EXPECT_TRUE(ParseChatRequest(R"({"model":"m","messages":[)" + two + "]}", limits).ok());
  EXPECT_EQ(ParseChatRequest(R"({"model":"m","messages":[)" + two + "," + message + "]}", limits)
                .status()
                .field(),
            "messages");
}

TEST(ChatRequest, WhoGoesFirstAndWhoGuessesAreWordsFromAList) {
  using engine::Priority;
  using engine::Speculation;
  EXPECT_EQ(Parse("")->priority, std::nullopt);
  EXPECT_EQ(Parse(R"("priority":"batch")")->priority, Priority::kBatch);
  EXPECT_EQ(Parse(R"("priority":"interactive")")->priority, Priority::kInteractive);
  EXPECT_EQ(Parse(R"("priority":null,"service_tier":"flex")")->priority, Priority::kBatch);
  EXPECT_EQ(Parse(R"("service_tier":"priority")")->priority, Priority::kInteractive);
  EXPECT_EQ(Parse(R"("service_tier":"auto")")->priority, Priority::kDefault);
  EXPECT_EQ(Parse(R"("service_tier":"flex","priority":"default")")->priority, Priority::kDefault)
      << "priority is the finer word";
  EXPECT_EQ(Parse("")->speculation, Speculation::kServer);
  EXPECT_EQ(Parse(R"("speculation":null)")->speculation, Speculation::kServer);
  EXPECT_EQ(Parse(R"("speculation":"off")")->speculation, Speculation::kOff);
  EXPECT_EQ(Parse(R"("speculation":"ngram")")->speculation, Speculation::kNgram);
  EXPECT_EQ(Parse(R"("speculation":"draft")")->speculation, Speculation::kDraft);
  EXPECT_EQ(Parse(R"("speculation":"auto")")->speculation, Speculation::kAuto);
  for (const char* field : {"priority", "service_tier", "speculation"}) {
    for (const char* value : {"\"fast\"", "\"\"", "1", "[]", "\"Batch\""}) {
      EXPECT_EQ(Parse(fmt::format("\"{}\":{}", field, value)).status().field(), field) << value;
    }
  }
}

}  // namespace
}  // namespace plumb::api
