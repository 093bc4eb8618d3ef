// net/address_test.cc
// What counts as an address, and above all what counts as this machine alone.
#include "net/address.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumb::net {
namespace {

TEST(Address, ParsesHostAndPort) {
  struct Case {
    const char* text;
    const char* host;
    uint16_t port;
  };
  for (const Case& c : std::vector<Case>{{"127.0.0.1:80", "127.0.0.1", 80},
                                         {"[::1]:65535", "::1", 65535},
                                         {"[fe80::2]", "fe80::2", 7},
                                         {"example.org", "example.org", 7},
                                         {":0", "default", 0},
                                         {"", "default", 7}}) {
    const auto address = ParseHostPort(c.text, {"default", 7});
    ASSERT_TRUE(address.ok()) << c.text << address.status().ToString();
    EXPECT_EQ(address->host, c.host);
    EXPECT_EQ(address->port, c.port);
  }
  EXPECT_EQ(FormatHostPort({"::1", 80}), "[::1]:80");
  EXPECT_EQ(FormatHostPort({"h", 80}), "h:80");
}

TEST(Address, RefusesWhatIsNoAddress) {
  for (const char* text : {"h:", "h:65536", "h:-1", "h:+1", "h: 1", "h:1x", "::1", "[::1", "[::1]x",
                           "[h]:1", "a b:1", "a/b", "h:80:90", "h\r\n:1"}) {
    const auto address = ParseHostPort(text, {"default", 7});
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.status().code(), base::Code::kInvalidArgument);
  }
  EXPECT_FALSE(ParseHostPort(":1", {}).ok());
  EXPECT_FALSE(ParseHostPort(std::string(300, 'a'), {}).ok());
}

TEST(Address, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.255.255.254", "127.0.0.0", "localhost", "::1",
                           "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host :
       {"0.0.0.0", "::", "128.0.0.1", "126.255.255.255", "10.0.0.1", "1.127.0.0",
        "localhost.example.org", "LOCALHOST.", "127.1", "0x7f.0.0.1", "", "127.0.0.1:80", "[::1]",
        "::ffff:10.0.0.1", "::127.0.0.1", "2130706433", " 127.0.0.1", "127.0.0.1 "}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
  EXPECT_FALSE(IsLoopback(std::string_view("127.0.0.1\0.x", 12)));
}

TEST(Address, ParsesUrls) {
  const auto url = ParseHttpUrl("http://h:81/v1/x?y=1#z");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->address.host, "h");
  EXPECT_EQ(url->address.port, 81);
  EXPECT_EQ(url->host_header, "h:81");
  EXPECT_EQ(url->target, "/v1/x?y=1");
  EXPECT_EQ(ParseHttpUrl("http://h")->target, "/");
  EXPECT_EQ(ParseHttpUrl("http://[::1]?q")->target, "/?q");
  EXPECT_EQ(ParseHttpUrl("http://h")->address.port, 80);
  EXPECT_EQ(ParseHttpUrl("https://h").status().code(), base::Code::kUnsupported);
  for (const char* bad : {"", "h:80", "ftp://h", "http://", "http://:80", "http://h/a b",
                          "http://h/\r\nX: y", "http://user@h/", "http://h:x/"}) {
    EXPECT_EQ(ParseHttpUrl(bad).status().code(), base::Code::kInvalidArgument) << bad;
  }
}

TEST(IsAddress, TakesWholeNumericAddressesOnly) {
  using namespace std::string_view_literals;
  for (const auto good : {"127.0.0.1"sv, "192.0.2.1"sv, "::1"sv, "2001:db8::1"sv})
    EXPECT_TRUE(IsAddress(good)) << good;
  for (const auto bad : {""sv, "127.1"sv, "localhost"sv, "[::1]"sv, "127.0.0.1:80"sv,
                         " 127.0.0.1"sv, "127.0.0.1\0.example.org"sv, "0x7f.0.0.1"sv}) {
    EXPECT_FALSE(IsAddress(bad)) << bad;
  }
}

}  // namespace
}  // namespace plumb::net
