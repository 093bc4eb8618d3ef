// api/responses_store_test.cc
// What is kept, for whom, and what goes when there is too much.
#include "api/responses_store.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/random.h"

namespace plumb::api {
namespace {

base::Hash256 Caller(uint8_t number) {
  base::Hash256 hash;
  hash.bytes[0] = number;
  return hash;
}

std::shared_ptr<const ResponsesItem> Item(std::string id, size_t bytes = 0) {
  ResponsesItem item;
  item.id = std::move(id);
  item.text = std::string(bytes, 'x');
  return std::make_shared<ResponsesItem>(std::move(item));
}

std::shared_ptr<const KeptResponse> Response(std::string id, ItemList input = {},
                                             ItemList output = {}) {
  auto kept = std::make_shared<KeptResponse>();
  kept->json = "{\"id\":\"" + id + "\"}";
  kept->id = std::move(id);
  kept->input = std::move(input);
  kept->output = std::move(output);
  return kept;
}

TEST(ResponsesStore, GivesBackWhatItWasGiven) {
  ResponsesStore store;
  store.Add(Caller(1), Response("a", {Item("i")}, {Item("o")}));
  const auto kept = store.Find(Caller(1), "a");
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->json, R"({"id":"a"})");
  EXPECT_EQ(store.FindItem(Caller(1), "i"), kept->input[0]);
  EXPECT_EQ(store.FindItem(Caller(1), "o"), kept->output[0]);
  EXPECT_EQ(store.Find(Caller(1), "b"), nullptr);
  EXPECT_EQ(store.FindItem(Caller(1), "b"), nullptr);
}

TEST(ResponsesStore, AnotherCallerSeesNothing) {
  ResponsesStore store;
  store.Add(Caller(1), Response("a", {Item("i")}));
  EXPECT_EQ(store.Find(Caller(2), "a"), nullptr);
  EXPECT_EQ(store.FindItem(Caller(2), "i"), nullptr);
  EXPECT_FALSE(store.Remove(Caller(2), "a"));
  store.Add(Caller(2), Response("a"));
  EXPECT_TRUE(store.Remove(Caller(2), "a"));
  EXPECT_NE(store.Find(Caller(1), "a"), nullptr);
}

TEST(ResponsesStore, ItemsOfAConversationAreCountedOnceAndOutliveItsBeginning) {
  ResponsesStore store;
  const auto shared = Item("i", 10'000);
  store.Add(Caller(1), Response("a", {shared}));
  const uint64_t one = store.bytes();
  store.Add(Caller(1), Response("b", {shared}));
  EXPECT_LT(store.bytes(), one + 2'000);
  EXPECT_TRUE(store.Remove(Caller(1), "a"));
  EXPECT_EQ(store.FindItem(Caller(1), "i"), shared);
  EXPECT_GT(store.bytes(), 10'000u);
  EXPECT_TRUE(store.Remove(Caller(1), "b"));
  EXPECT_EQ(store.FindItem(Caller(1), "i"), nullptr);
  EXPECT_EQ(store.bytes(), 0u);
  EXPECT_EQ(store.answers(), 0u);
}

TEST(ResponsesStore, OfTwoItemsWithOneIdTheNewerIsFound) {
  ResponsesStore store;
  store.Add(Caller(1), Response("a", {Item("i", 1)}));
  store.Add(Caller(1), Response("b", {Item("i", 2)}));
  EXPECT_EQ(store.FindItem(Caller(1), "i")->text, "xx");
  store.Remove(Caller(1), "a");
  EXPECT_EQ(store.FindItem(Caller(1), "i")->text, "xx");
  store.Remove(Caller(1), "b");
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponsesStore, TheOldestGoesWhenThereAreTooMany) {
  ResponsesStore store({.answers_max = 3, .caller_answers_max = 3});
  for (const char* id : {"a", "b", "c", "d"}) store.Add(Caller(1), Response(id));
  EXPECT_EQ(store.answers(), 3u);
  EXPECT_EQ(store.Find(Caller(1), "a"), nullptr);
  for (const char* id : {"b", "c", "d"}) EXPECT_NE(store.Find(Caller(1), id), nullptr) << id;
}

TEST(ResponsesStore, ACallerBeyondItsShareLosesItsOwn) {
  ResponsesStore store({.answers_max = 10, .caller_answers_max = 2});
  store.Add(Caller(1), Response("old"));
  for (int i = 0; i < 50; ++i) store.Add(Caller(2), Response("n" + std::to_string(i)));
  EXPECT_EQ(store.answers(), 3u);
  EXPECT_NE(store.Find(Caller(1), "old"), nullptr);
  EXPECT_NE(store.Find(Caller(2), "n49"), nullptr);
}

TEST(ResponsesStore, BytesAreALimitToo) {
  ResponsesStore store({.bytes_max = 30'000, .caller_bytes_max = 20'000});
  store.Add(Caller(1), Response("a", {Item("i", 12'000)}));
  store.Add(Caller(1), Response("b", {Item("j", 12'000)}));
  EXPECT_EQ(store.Find(Caller(1), "a"), nullptr);
  store.Add(Caller(2), Response("c", {Item("k", 12'000)}));
  store.Add(Caller(3), Response("d", {Item("l", 12'000)}));
  EXPECT_EQ(store.Find(Caller(1), "b"), nullptr);
  EXPECT_LE(store.bytes(), 30'000u);
}

TEST(ResponsesStore, WhatAloneIsTooMuchIsNotKept) {
  ResponsesStore store({.bytes_max = 30'000, .caller_bytes_max = 20'000});
  store.Add(Caller(1), Response("a"));
  store.Add(Caller(2), Response("b", {Item("j", 25'000)}));
  EXPECT_EQ(store.Find(Caller(2), "b"), nullptr);
  EXPECT_NE(store.Find(Caller(1), "a"), nullptr);
}

TEST(ResponsesStore, OnlyWhatStillRunsIsReplaced) {
  ResponsesStore store;
  auto running = std::make_shared<KeptResponse>(*Response("a"));
  running->running = true;
  store.Add(Caller(1), running);
  auto done = std::make_shared<KeptResponse>(*Response("a"));
  done->json = "done";
  store.Replace(Caller(2), done);
  EXPECT_EQ(store.Find(Caller(2), "a"), nullptr);
  store.Replace(Caller(1), done);
  EXPECT_EQ(store.Find(Caller(1), "a")->json, "done");
  auto late = std::make_shared<KeptResponse>(*Response("a"));
  late->json = "late";
  store.Replace(Caller(1), late);
  EXPECT_EQ(store.Find(Caller(1), "a")->json, "done");
  store.Remove(Caller(1), "a");
  store.Replace(Caller(1), late);
  EXPECT_EQ(store.Find(Caller(1), "a"), nullptr);
}

// Whatever is done, the counts are those of what is there; a wrong one would be a CHECK.
TEST(ResponsesStore, CountsStayTrueUnderAnyOrder) {
  base::Rng rng(11);
  ResponsesStore store({.answers_max = 20,
                        .bytes_max = 60'000,
                        .caller_answers_max = 12,
                        .caller_bytes_max = 40'000});
  std::vector<std::shared_ptr<const ResponsesItem>> items;
  for (int i = 0; i < 30; ++i)
    items.push_back(Item("i" + std::to_string(i % 10), rng.Below(3'000)));
  for (int i = 0; i < 5'000; ++i) {
    const base::Hash256 caller = Caller(static_cast<uint8_t>(rng.Below(4)));
    const std::string id = "r" + std::to_string(rng.Below(25));
    if (rng.Below(4) == 0) {
      store.Remove(caller, id);
    } else {
      ItemList input;
      for (uint64_t n = rng.Below(5); n > 0; --n) input.push_back(items[rng.Below(items.size())]);
      store.Add(caller, Response(id, std::move(input)));
    }
    ASSERT_LE(store.answers(), 20u);
    ASSERT_LE(store.bytes(), 60'000u);
  }
  for (uint8_t c = 0; c < 4; ++c)
    for (int i = 0; i < 25; ++i) store.Remove(Caller(c), "r" + std::to_string(i));
  EXPECT_EQ(store.bytes(), 0u);
}

}  // namespace
}  // namespace plumb::api
