// tests/golden/tokenizer/vectors_test.cc
// Exact ids on llama.cpp's tokenizer vectors, for every vocabulary that has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden_files.h"

namespace plumb::golden {
namespace {

class Vectors : public testing::TestWithParam<const char*> {};

TEST_P(Vectors, IdsAreExact) {
  const std::string name = GetParam();
  auto tokenizer = LoadTokenizer(VocabularyFile(name));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  auto vectors = LoadVectors(name);
  ASSERT_TRUE(vectors.ok()) << vectors.status().ToString();
  ASSERT_GE(vectors->size(), 40u);
  for (const Vector& vector : *vectors) {
    auto ids = (*tokenizer)->Encode(vector.text, text::ControlTokens::kAsText, false);
    ASSERT_TRUE(ids.ok()) << ids.status().ToString();
    EXPECT_EQ(Ids(*ids), vector.ids) << name << ": " << testing::PrintToString(vector.text);
  }
}

INSTANTIATE_TEST_SUITE_P(LlamaCpp, Vectors, testing::ValuesIn(kVocabularies), TestName);

}  // namespace
}  // namespace plumb::golden
