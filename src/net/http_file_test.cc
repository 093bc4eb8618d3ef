// net/http_file_test.cc
// Files in both directions: an answer that ends with one, and uploads above the usual limit.
#include <gmock/gmock.h>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "net/test_socket.h"

namespace plumb::net {
namespace {

using testing::HasSubstr;

TEST(HttpFile, SendsAFileAfterTheBody) {
  const base::ScratchFolder scratch;
  std::string content;
  for (int i = 0; content.size() < (3u << 20); ++i) content += std::to_string(i) + "\n";
  ASSERT_TRUE(base::WriteFileAtomic(scratch.File("f"), content).ok());
  TestHandler handler;
  auto server = StartTestServer({}, handler);
  TestSocket client(server->port(), /*receive_bytes=*/4096);
  for (const bool is_head : {false, true}) {
    ASSERT_TRUE(client.Send((is_head ? "HEAD" : "GET") + std::string(" /f HTTP/1.1\r\nHost: h") +
                            "\r\n\r\n"));
    Held held = handler.Take();
    auto file = base::MappedFile::Open(scratch.File("f"));
    ASSERT_TRUE(file.ok());
    held.exchange->RespondFile({.body = "head\n"}, *std::move(file));
    const std::string length = "Content-Length: " + std::to_string(content.size() + 5);
    EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr(length));
    if (is_head) continue;
    EXPECT_TRUE(client.ReadBytes(content.size() + 5) == "head\n" + content);
  }
  ASSERT_TRUE(client.Send(kGetEcho));
  EXPECT_THAT(client.ReadResponse(), HasSubstr("GET /echo")) << "the connection goes on";
}

TEST(HttpFile, APathMayHaveALimitOfItsOwn) {
  TestHandler handler;
  auto server = StartTestServer(
      {.limits = {.body_bytes_max = 10, .body_limits = {{.path = "/echo/big", .bytes_max = 20}}}},
      handler);
  const auto ask = [&](const std::string& path, size_t bytes) {
    TestSocket client(server->port());
    client.Send("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: " +
                std::to_string(bytes) + "\r\n\r\n" + std::string(bytes, 'x'));
    return client.ReadResponse().substr(9, 3);
  };
  EXPECT_EQ(ask("/echo", 10), "200");
  EXPECT_EQ(ask("/echo", 11), "413");
  EXPECT_EQ(ask("/echo/big", 20), "200");
  EXPECT_EQ(ask("/echo/big", 21), "413");
  EXPECT_EQ(ask("/echo/bigger", 11), "413");
}

}  // namespace
}  // namespace plumb::net
