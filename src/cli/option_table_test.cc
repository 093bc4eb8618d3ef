// cli/option_table_test.cc
// Where a setting comes from, and that every error names the place. The table is tested as a
// command uses it: a real command line, variables from a map, a real file.
#include "cli/option_table.h"

#include <gtest/gtest.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <map>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "cli/command_line.h"

namespace plumb::cli {
namespace {

// Two subcommands and what their settings became.
struct Commands {
  Commands()
      : table_(*app_.add_subcommand("serve"), "serve"),
        other_(*app_.add_subcommand("chat"), "chat") {
    table_.Add(Integer("port", port_, {1, 65535}, "PORT", "Port to listen on."));
    table_.Add(Text("model", model_, "MODEL", "What to serve."));
    table_.Add(Texts("api-key", keys_, "KEY", "A key."));
    table_.Add(Bytes("kv-memory", kv_memory_, {1024, 1u << 30}, "automatic", "Memory."));
    table_.Add(Switch("no-pull", no_pull_, "Do not pull."));
    table_.Add(Choice("log-format", format_, {"text", "json"}, "Format."));
    table_.Add(Number("temperature", temperature_, {0, 2, false}, "NUMBER", "Noise."));
    other_.Add(Text("url", url_, "URL", "A server."));
  }

  // The status of `plumb serve <arguments>`.
  base::Status RunServe(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), {"plumb", "serve"});
    if (ParseCommandLine(app_, static_cast<int>(arguments.size()), arguments.data())) {
      return base::InvalidArgument("", "command line");
    }
    const std::vector<const OptionTable*> tables = {&table_, &other_};
    return table_.Resolve(
        [&](const std::string& name) -> std::optional<std::string> {
          const auto found = variables_.find(name);
          if (found == variables_.end()) return std::nullopt;
          return found->second;
        },
        tables);
  }

  // `content` in a file that --config can name.
  const char* File(std::string_view content) {
    path_ = scratch_.File("settings.toml");
    EXPECT_TRUE(base::WriteFileAtomic(path_, content).ok());
    return path_.c_str();
  }

  base::ScratchFolder scratch_;
  CLI::App app_{"test", "plumb"};
  uint16_t port_ = 8000;
  std::string model_ = "small";
  std::vector<std::string> keys_;
  uint64_t kv_memory_ = 0;
  bool no_pull_ = false;
  std::string format_ = "text";
  std::optional<float> temperature_;
  std::string url_;
  OptionTable table_;
  OptionTable other_;
  std::map<std::string, std::string> variables_;
  std::string path_;
};

class OptionTableTest : public testing::Test, protected Commands {};

TEST_F(OptionTableTest, DefaultsStandWhenNothingIsSaid) {
  ASSERT_TRUE(RunServe({}).ok());
  EXPECT_EQ(port_, 8000);
  EXPECT_EQ(model_, "small");
  EXPECT_FALSE(no_pull_);
  EXPECT_FALSE(temperature_.has_value());
}

TEST_F(OptionTableTest, FlagWinsOverVariableWinsOverSectionWinsOverTopOfFile) {
  const char* file =
      File("port = 1\nmodel = 'top'\nkv-memory = 4096\n[serve]\nport = 2\nmodel = 'section'\n");
  variables_ = {{"PLUMB_PORT", "3"}, {"PLUMB_MODEL", "variable"}};
  ASSERT_TRUE(RunServe({"--config", file, "--port", "4"}).ok());
  EXPECT_EQ(port_, 4);
  EXPECT_EQ(model_, "variable");
  EXPECT_EQ(kv_memory_, 4096u);
}

TEST_F(OptionTableTest, SectionWinsOverTopOfFile) {
  ASSERT_TRUE(RunServe({"--config", File("port = 1\n[serve]\nport = 2\n")}).ok());
  EXPECT_EQ(port_, 2);
}

TEST_F(OptionTableTest, ConfigItselfMayComeFromAVariable) {
  variables_ = {{"PLUMB_CONFIG", File("port = 7\n")}};
  ASSERT_TRUE(RunServe({}).ok());
  EXPECT_EQ(port_, 7);
}

TEST_F(OptionTableTest, EmptyVariableCountsAsUnset) {
  variables_ = {{"PLUMB_PORT", ""}};
  ASSERT_TRUE(RunServe({}).ok());
  EXPECT_EQ(port_, 8000);
}

TEST_F(OptionTableTest, RepeatableTakesEveryFlagAndEveryElement) {
  ASSERT_TRUE(RunServe({"--api-key", "one", "--api-key=two"}).ok());
  EXPECT_EQ(keys_, (std::vector<std::string>{"one", "two"}));
}

TEST_F(OptionTableTest, RepeatableTakesAListOfTheFile) {
  ASSERT_TRUE(RunServe({"--config", File("[serve]\napi-key = ['a', 'b', 'c']\n")}).ok());
  EXPECT_EQ(keys_.size(), 3u);
}

TEST_F(OptionTableTest, EveryKindIsReadFromTheFile) {
  ASSERT_TRUE(RunServe({"--config", File("[serve]\nno-pull = true\ntemperature = 0.5\nlog-format = "
                                         "'json'\nkv-memory = '64M'\n")})
                  .ok());
  EXPECT_TRUE(no_pull_);
  EXPECT_FLOAT_EQ(*temperature_, 0.5f);
  EXPECT_EQ(format_, "json");
  EXPECT_EQ(kv_memory_, 64u << 20);
}

TEST_F(OptionTableTest, ErrorsNameTheFlag) {
  const struct {
    std::vector<const char*> arguments;
    const char* message;
  } kCases[] = {
      {{"--port", "0"}, "--port: '0' is not a whole number from 1 to 65535"},
      {{"--port", "65536"}, "--port: '65536' is not a whole number from 1 to 65535"},
      {{"--port", "8o"}, "--port: '8o' is not a whole number from 1 to 65535"},
      {{"--port=-1"}, "--port: '-1' is not a whole number from 1 to 65535"},
      {{"--port", "99999999999999999999"}, "--port: '99999999999999999999' is not a whole"},
      {{"--port", "1", "--port", "2"}, "--port: given more than once"},
      {{"--log-format", "jsn"},
       "--log-format: 'jsn' is not one of text|json; did you mean 'json'?"},
      {{"--kv-memory", "12"}, "--kv-memory: '12' is outside 1.02 kB to 1.07 GB"},
      {{"--kv-memory", "lots"}, "--kv-memory: 'lots' is not a size"},
      {{"--temperature", "nan"}, "--temperature: 'nan' is not a number from 0 to 2"},
      {{"--temperature", "2.1"}, "--temperature: '2.1' is not a number from 0 to 2"},
      {{"--config", "/nowhere.toml"}, "--config: cannot open '/nowhere.toml'"},
  };
  for (const auto& test : kCases) {
    Commands commands;
    const base::Status status = commands.RunServe(test.arguments);
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
    EXPECT_TRUE(status.message().starts_with(test.message)) << status.message();
  }
}

TEST_F(OptionTableTest, ErrorsNameTheVariable) {
  variables_ = {{"PLUMB_KV_MEMORY", "1Q"}};
  const base::Status status = RunServe({});
  EXPECT_EQ(status.field(), "PLUMB_KV_MEMORY");
  EXPECT_TRUE(status.message().starts_with("PLUMB_KV_MEMORY: '1Q' is not a size"));
}

TEST_F(OptionTableTest, ErrorsNameFileLineAndKey) {
  const base::Status status = RunServe({"--config", File("\n[serve]\nport = 'many'\n")});
  EXPECT_TRUE(status.message().ends_with(
      "settings.toml:3: serve.port: 'many' is not a whole number from 1 to 65535"))
      << status.message();
}

TEST_F(OptionTableTest, UnknownKeysAreErrorsWithTheNearestName) {
  const struct {
    const char* content;
    const char* message;
  } kCases[] = {
      {"[serve]\nprot = 1\n", ":2: serve.prot: no such setting; did you mean 'port'?"},
      {"kv_memory = 1\n", ":1: kv_memory: no such setting; did you mean 'kv-memory'?"},
      {"[serv]\nport = 1\n", ":2: there is no section [serv]; did you mean 'serve'?"},
      {"[serve]\nurl = 'x'\n", ":2: serve.url: no such setting"},
      {"config = 'x'\n", ":1: config: no such setting"},
      {"[serve]\nport = [1, 2]\n", ":2: serve.port: takes one value, not a list"},
      {"[serve]\nport = { a = 1 }\n", ":2: serve.port: a setting is a text, a number"},
      {"port = = 1\n", ":1: "},
  };
  for (const auto& test : kCases) {
    Commands commands;
    const base::Status status = commands.RunServe({"--config", File(test.content)});
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
    EXPECT_NE(status.message().find(test.message), std::string::npos) << status.message();
  }
}

TEST_F(OptionTableTest, TopOfFileMayHoldSettingsOfOtherSubcommands) {
  EXPECT_TRUE(RunServe({"--config", File("url = 'http://x'\nport = 5\n[chat]\nurl = 'y'\n")}).ok());
  EXPECT_EQ(port_, 5);
  EXPECT_EQ(url_, "");
}

TEST_F(OptionTableTest, HelpNamesVariableAndDefault) {
  const std::string help = app_.get_subcommand("serve")->help();
  EXPECT_NE(help.find("PLUMB_PORT; default 8000"), std::string::npos) << help;
  EXPECT_NE(help.find("PLUMB_KV_MEMORY; default automatic"), std::string::npos) << help;
}

TEST(ParseCommandLine, SuggestsFlagsAndSubcommands) {
  const struct {
    std::vector<const char*> arguments;
    const char* message;
  } kCases[] = {
      {{"plumb", "serve", "--prot", "1"}, "there is no flag '--prot'; did you mean '--port'?"},
      {{"plumb", "serv"}, "there is no subcommand 'serv'; did you mean 'serve'?"},
      {{"plumb", "serve", "extra"}, "unexpected argument 'extra'"},
  };
  for (const auto& test : kCases) {
    CLI::App app("test", "plumb");
    OptionTable table(*app.add_subcommand("serve"), "serve");
    uint16_t port = 1;
    table.Add(Integer("port", port, {1, 9}, "PORT", "Port."));
    testing::internal::CaptureStderr();
    const auto exit_code =
        ParseCommandLine(app, static_cast<int>(test.arguments.size()), test.arguments.data());
    const std::string printed = testing::internal::GetCapturedStderr();
    EXPECT_EQ(exit_code, 2);
    EXPECT_NE(printed.find(test.message), std::string::npos) << printed;
  }
}

}  // namespace
}  // namespace plumb::cli
