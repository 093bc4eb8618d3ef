// model/families/deepseek_v41_classes_test.cc: the file's list and the tokenizer's, and what about
// each is refused.
#include "model/families/deepseek_v41_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/deepseek_checkpoint.h"
#include "model/families/deepseek_v41_tiny.h"

namespace plumb::model {
namespace {

using base::Code;
using base::Result;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Ids = std::vector<uint32_t>;

TEST(DeepseekClasses, AListOfIdsIsParsedStrictly) {
  EXPECT_THAT(*ParseIdList(" [ 3,1 ,\n2, 4294967295 ] ", 4), ElementsAre(3, 1, 2, 4294967295));
  EXPECT_THAT(*ParseIdList("[]", 4), IsEmpty());
  for (const char* text : {"", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[-1]", "[1.5]", "[+1]",
                           "[4294967296]", "[1] x", "{}", "[[1]]", "[\"1\"]", "[1,2,3,4,5]"}) {
    EXPECT_EQ(ParseIdList(text, 4).status().code(), Code::kCorrupt) << text;
  }
}

class Classes : public testing::Test {
 protected:
  // Of a small checkpoint with this engram_token_map.json, and this tokenizer.
  Result<Ids> Of(const std::optional<std::string>& file,
                 const TokenClassMaker& tokenizer = nullptr) {
    const std::string text = tiny_.config.dump();
    const auto checkpoint = DeepseekCheckpoint::Assemble("tiny", {.config = text}, file, {});
    if (!checkpoint.ok()) return checkpoint.status();
    return DeepseekClasses(**checkpoint, *ReadDeepseekConfig(text, ""), tokenizer);
  }

  const DeepseekTinySpec spec_;
  const DeepseekTiny tiny_ = MakeDeepseekTiny(spec_);
};

TEST_F(Classes, ComeFromTheFileWhenItIsThere) {
  const std::string file = nlohmann::json(tiny_.token_map).dump();
  const auto classes = Of(file, [] { return Result<Ids>(Ids{1, 2, 3}); });
  ASSERT_TRUE(classes.ok()) << classes.status().ToString();
  EXPECT_EQ(*classes, tiny_.token_map);
}

TEST_F(Classes, ComeFromTheTokenizerElseAndLaterIdsAreThePaddings) {
  Ids known(tiny_.token_map.begin(), tiny_.token_map.begin() + 90);
  known[spec_.engram_classes - 1] = spec_.engram_classes - 1;
  const auto classes = Of(std::nullopt, [&] { return Result<Ids>(known); });
  ASSERT_TRUE(classes.ok()) << classes.status().ToString();
  ASSERT_EQ(classes->size(), spec_.vocabulary);
  known.resize(spec_.vocabulary, known[2]);
  EXPECT_EQ(*classes, known);
}

TEST_F(Classes, AreRefusedWhenTheyDoNotFitTheConfig) {
  Ids longer = tiny_.token_map, outside = tiny_.token_map;
  longer.push_back(0);
  outside[5] = spec_.engram_classes;
  struct Case {
    std::string file;
    const char* message;
  };
  for (const Case& bad : {Case{"[1,2]", "has 2 numbers"},
                          {nlohmann::json(longer).dump(), "no list of at most 96"},
                          {nlohmann::json(outside).dump(), "token 5 the class 80"},
                          {"nonsense", "no list"}}) {
    const auto classes = Of(bad.file);
    EXPECT_EQ(classes.status().code(), Code::kCorrupt);
    EXPECT_THAT(classes.status().message(), HasSubstr(bad.message));
    EXPECT_EQ(classes.status().field(), "engram_token_map.json");
  }
}

TEST_F(Classes, ATokenizerOfAnotherModelIsRefused) {
  Ids fewer = tiny_.token_map, longer = tiny_.token_map;
  for (uint32_t& c : fewer) c = std::min(c, 60u);
  longer.push_back(0);
  for (const Ids& wrong : {fewer, longer, Ids{0, 1}, Ids{}}) {
    const auto classes = Of(std::nullopt, [&] { return Result<Ids>(wrong); });
    EXPECT_EQ(classes.status().code(), Code::kCorrupt) << wrong.size();
    EXPECT_EQ(classes.status().field(), "tokenizer.json");
  }
  const auto failed =
      Of(std::nullopt, [] { return Result<Ids>(base::NotFound("there is no tokenizer")); });
  EXPECT_EQ(failed.status().code(), Code::kNotFound);
  EXPECT_EQ(failed.status().field(), "engram_token_map.json");
  EXPECT_EQ(failed.status().message(),
            "the folder has no engram_token_map.json, and none can be made from its tokenizer: "
            "there is no tokenizer");
}

TEST_F(Classes, NeitherFileNorTokenizerIsSaid) {
  const auto classes = Of(std::nullopt);
  EXPECT_EQ(classes.status().code(), Code::kUnsupported);
  EXPECT_THAT(classes.status().message(), HasSubstr("tokenizer.json"));
  EXPECT_EQ(classes.status().field(), "engram_token_map.json");
}

}  // namespace
}  // namespace plumb::model
