// api/batches_test.cc
// What waits for the thread of files and batches: how much of it, and whose.
#include "api/batches.h"

#include <gtest/gtest.h>

#include <string>

namespace plumb::api {
namespace {

Call CallOf(uint8_t key, size_t bytes) {
  Call call;
  call.isolation.bytes[0] = key;  // 0: there are no keys
  call.request.body = std::string(bytes, 'x');
  return call;
}

bool Push(BatchInbox& inbox, uint8_t key, size_t bytes) {
  Call call = CallOf(key, bytes);
  const bool pushed = inbox.Push(call);
  EXPECT_EQ(call.request.body.size(), pushed ? 0u : bytes) << "what is refused stays the caller's";
  return pushed;
}

TEST(BatchInbox, HoldsAsMuchAsItMay) {
  BatchInbox inbox(3, 100);
  EXPECT_TRUE(Push(inbox, 0, 60));
  EXPECT_FALSE(Push(inbox, 0, 41));
  EXPECT_TRUE(Push(inbox, 0, 40));
  EXPECT_TRUE(Push(inbox, 0, 0));
  EXPECT_FALSE(Push(inbox, 0, 0)) << "calls without a body wait, too";
  EXPECT_EQ(inbox.Take({}).calls.size(), 3u);
  EXPECT_TRUE(Push(inbox, 0, 100));
}

TEST(BatchInbox, GivesEachKeyAsMuchAsItLeavesToOthers) {
  BatchInbox inbox(100, 120);
  EXPECT_TRUE(Push(inbox, 1, 40));
  EXPECT_TRUE(Push(inbox, 1, 20));
  EXPECT_FALSE(Push(inbox, 1, 1));
  EXPECT_TRUE(Push(inbox, 2, 30));
  EXPECT_FALSE(Push(inbox, 2, 1));
  EXPECT_TRUE(Push(inbox, 3, 15)) << "two together cannot fill it";
  EXPECT_EQ(inbox.Take({}).calls.size(), 4u);
  EXPECT_TRUE(Push(inbox, 1, 60)) << "what was taken is forgotten";
}

TEST(BatchInbox, GivesEachKeyItsShareOfCalls) {
  BatchInbox inbox(8, 100);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Push(inbox, 1, 0));
  EXPECT_FALSE(Push(inbox, 1, 0));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Push(inbox, 2, 0));
  EXPECT_FALSE(Push(inbox, 2, 0));
  EXPECT_TRUE(Push(inbox, 3, 0));
}

TEST(BatchInbox, TakesNoCallOnceItIsClosed) {
  BatchInbox inbox(8, 100);
  inbox.Close();
  EXPECT_FALSE(Push(inbox, 1, 1));
  EXPECT_TRUE(inbox.Take({}).closed);
}

}  // namespace
}  // namespace plumb::api
