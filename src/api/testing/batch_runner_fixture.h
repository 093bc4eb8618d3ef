// api/testing/batch_runner_fixture.h
// Tests only. Batches by a runner over a folder, as one process has them; the test answers each
// line that is sent, and starts the next process over the same folder.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "api/batch_runner.h"
#include "api/stored_record.h"
#include "base/folder.h"
#include "base/testing/scratch_folder.h"

namespace plumb::api {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr base::Hash256 kOne{{1}};
constexpr base::Hash256 kTwo{{2}};
constexpr const char* kEndpoint = "/v1/chat/completions";

inline std::string InputOf(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    text += json{{"custom_id", "id-" + std::to_string(i)},
                 {"method", "POST"},
                 {"url", kEndpoint},
                 {"body", {{"n", i}}}}
                .dump() +
            "\n";
  }
  return text;
}

// One process: its stores and its runner over a folder; lines that are sent wait in `sent`.
struct Process {
  Process(const std::string& folder, base::Clock& clock, BatchRunnerOptions options,
          const FileLimits& limits)
      : files(*FileStore::Open(folder + "/files", limits, clock, logger)),
        batches(*BatchStore::Open(folder + "/batches", {.caller_batches_max = 3}, logger)),
        runner(options, {.files = *files,
                         .batches = *batches,
                         .clock = clock,
                         .logger = logger,
                         .send = [this](LineRequest line) { sent.push_back(std::move(line)); },
                         .answered = [this](LineAnswer line) { done.push_back(std::move(line)); },
                         .live = [this] { return sent.size() + others; }}) {}
  ~Process() {
    for (LineRequest& line : sent) line.exchange->Respond({.status = 500});
  }

  void Turn() {
    for (LineAnswer& line : std::exchange(done, {})) runner.Take(std::move(line));
    while (runner.Turn()) {
    }
  }
  // Answers the oldest line that was sent.
  void Answer(int status = 200, net::HttpHeaders headers = {}) {
    ASSERT_FALSE(sent.empty());
    LineRequest line = std::move(sent.front());
    sent.erase(sent.begin());
    line.exchange->Respond({.status = status,
                            .headers = std::move(headers),
                            .body = "{\"echo\":\n" + line.body + "}"});
  }
  std::string Upload(const base::Hash256& caller, const std::string& text) {
    const std::string id = NewStoredId(kFileIdPrefix);
    auto writer = *files->Begin(id);
    EXPECT_TRUE(writer->Append(text).ok());
    return (*files->Commit(std::move(writer), {.id = id, .caller = caller, .purpose = "batch"}))
        ->id;
  }
  std::string Create(const base::Hash256& caller, const std::string& input) {
    Batch batch;
    batch.caller = caller;
    batch.endpoint = kEndpoint;
    batch.input_file_id = input;
    const auto created = runner.Create(std::move(batch));
    EXPECT_TRUE(created.ok()) << created.status().ToString();
    return created.ok() ? (*created)->id : "";
  }
  std::string ContentOf(const base::Hash256& caller, const std::string& id) {
    const StoredFile* file = files->Find(caller, id);
    if (file == nullptr) return "";
    const auto map = *files->Map(*file);
    return {reinterpret_cast<const char*>(map->bytes().data()), map->bytes().size()};
  }
  std::vector<std::string> CustomIds(const std::string& file_id) {
    std::vector<std::string> ids;
    std::istringstream in(ContentOf(kOne, file_id));
    for (std::string line; std::getline(in, line);) ids.push_back(json::parse(line)["custom_id"]);
    return ids;
  }

  telemetry::Logger logger{{.level = telemetry::LogLevel::kOff}};
  std::unique_ptr<FileStore> files;
  std::unique_ptr<BatchStore> batches;
  std::vector<LineRequest> sent;
  std::vector<LineAnswer> done;
  size_t others = 0;  // requests that are no lines
  BatchRunner runner;
};

struct BatchRunnerTest : testing::Test {
  BatchRunnerTest() { clock.Advance(base::Seconds(1000)); }
  void Start(BatchRunnerOptions options = {}) {
    process.reset();
    process.emplace(scratch.path(), clock, options, file_limits);
  }
  const Batch& BatchOf(const std::string& id) { return *process->batches->Find(kOne, id); }
  std::string Begin(int lines) {
    const std::string id = process->Create(kOne, process->Upload(kOne, InputOf(lines)));
    process->Turn();
    return id;
  }
  void FinishAll() {
    while (!process->runner.idle()) {
      process->Turn();
      if (!process->sent.empty()) process->Answer();
    }
  }

  base::ScratchFolder scratch;
  base::ManualClock clock;
  FileLimits file_limits;
  std::optional<Process> process;
};

}  // namespace plumb::api
