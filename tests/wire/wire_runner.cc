// tests/wire/wire_runner.cc
// Plays one .talk file against the real service behind the real HTTP server on a loopback port,
// with a scripted generator in place of a model. Exit 0 when everything came as expected. Format:
// talk.h.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "api/batch_record.h"
#include "api/testing/scripted_server.h"
#include "base/disk.h"
#include "base/folder.h"
#include "base/mutex.h"
#include "base/testing/scratch_folder.h"
#include "base/thread.h"
#include "documented_statuses.h"
#include "net/http_client.h"
#include "net/sse.h"
#include "talk.h"

namespace plumb::wire {
namespace {

using api::testing::FakeAnswer;
using nlohmann::json;

constexpr uint32_t kContextDefault = 2048;
constexpr uint64_t kTalkBytesMax = 1 << 20;
constexpr base::Duration kAwaitMax = base::Seconds(30);
constexpr size_t kBatchFilesMax = 100;
constexpr const char* kBoundary = "talk-boundary";

// What the generator is to do, as the talk says; read on other threads.
class Script {
 public:
  FakeAnswer Answer(uint32_t sample_index) const {
    base::MutexLock lock(mutex_);
    const auto own = texts_.find(static_cast<int>(sample_index));
    const std::string& text = own == texts_.end() ? texts_.at(-1) : own->second;
    const bool end = failure_.ok() && !hang_;
    return {api::testing::ByteTokens(text, end), chunk_tokens_, failure_};
  }
  void Say(int sample_index, std::string text) {
    base::MutexLock lock(mutex_);
    if (sample_index < 0) texts_.clear();
    texts_[sample_index] = std::move(text);
    failure_ = base::OkStatus();
    hang_ = false;
  }
  void Chunk(uint32_t tokens) {
    base::MutexLock lock(mutex_);
    chunk_tokens_ = tokens;
  }
  void Fail(base::Status status) {
    base::MutexLock lock(mutex_);
    failure_ = std::move(status);
  }
  void Hang() {
    base::MutexLock lock(mutex_);
    hang_ = true;
  }

 private:
  mutable base::Mutex mutex_;
  // -1: every sample that has none of its own.
  std::map<int, std::string> texts_ GUARDED_BY(mutex_){{-1, ""}};
  uint32_t chunk_tokens_ GUARDED_BY(mutex_) = 1;
  base::Status failure_ GUARDED_BY(mutex_);
  bool hang_ GUARDED_BY(mutex_) = false;
};

// What the talk says of the server before its first request.
struct Setting {
  std::vector<std::string> keys;
  std::string model;                       // its chat format and tokens; empty: a template, bytes
  uint32_t context_max = kContextDefault;  // tokens
  std::vector<std::string> origins;
  tenancy::KeyLimits limits;
  std::optional<std::vector<std::string>> hosts;  // nothing: Host is not looked at
  std::string data_folder;                        // empty: none
  uint64_t data_bytes_max = api::FileLimits().storage_bytes_max;
};

// A server that takes its answers from a script, on a clock that stands still.
struct Server {
  Server(const Setting& setting, const Script& script, const base::Clock& clock)
      : http(
            Model(setting.model),
            [&script](const engine::Request&, uint32_t i) { return script.Answer(i); },
            Options(setting, clock)) {}

  static api::testing::ScriptedModel Model(const std::string& name) {
    if (name == "deepseek") return api::testing::DeepseekModel();
    if (!api::testing::ToolTemplate(name).empty()) return api::testing::ToolModel(name);
    return name == "fim" ? api::testing::FimModel() : api::testing::ByteModel();
  }
  static api::testing::ScriptedServerOptions Options(const Setting& setting,
                                                     const base::Clock& clock) {
    api::testing::ScriptedServerOptions options{.api_keys = setting.keys,
                                                .model_names = {"fake"},
                                                .context_max = setting.context_max,
                                                .data_folder = setting.data_folder,
                                                .data_limits = {},
                                                .service = {},
                                                .http = {.port = 0},
                                                .clock = &clock};
    options.data_limits.files.file_bytes_max = 4096;
    options.data_limits.files.storage_bytes_max = setting.data_bytes_max;
    options.data_limits.files.shared = setting.keys.size() > 1;
    if (setting.limits.any())
      options.limits.assign(std::max<size_t>(1, setting.keys.size()), setting.limits);
    options.service.cors = api::CorsPolicy::FromOrigins(setting.origins).value();
    if (setting.hosts) options.service.hosts = api::HostPolicy::Local(*setting.hosts).value();
    options.http.limits.body_bytes_max = 64 << 10;
    return options;
  }

  api::testing::ScriptedServer http;
};

// A request whose answer nobody waits for, on a thread of its own.
class Begun {
 public:
  Begun(net::HttpClientRequest request, const base::Clock& clock) {
    thread_ = base::Thread("begun", [this, request = std::move(request), &clock] {
      const net::HttpBodySink sink{.on_head =
                                       [this](const net::HttpResponse& head) {
                                         base::MutexLock lock(mutex_);
                                         response_ = head;
                                         return true;
                                       },
                                   .on_body =
                                       [this](std::string_view bytes) {
                                         base::MutexLock lock(mutex_);
                                         response_.body += bytes;
                                         changed_.NotifyAll();
                                         return true;
                                       }};
      base::Status ended = net::FetchStream(request, {}, clock, &cancel_, sink);
      base::MutexLock lock(mutex_);
      end_ = std::move(ended);
      changed_.NotifyAll();
    });
  }
  ~Begun() {
    cancel_.Cancel();
    thread_.Join();
  }
  // Nothing when the body is this, now or soon; else what it is.
  std::optional<std::string> Differs(const std::string& expected) {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() HOLDS(mutex_) {
      return end_.has_value() || response_.body.size() >= expected.size();
    });
    const std::string& body = response_.body;
    return body == expected ? std::nullopt : std::optional("the body is " + body);
  }
  // False: it ended without a body.
  bool WaitSome() {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock,
                  [&]() HOLDS(mutex_) { return end_.has_value() || !response_.body.empty(); });
    return !response_.body.empty();
  }
  // The whole answer, once it has ended.
  base::Result<net::HttpResponse> Wait() {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() HOLDS(mutex_) { return end_.has_value(); });
    if (!end_->ok()) return *end_;
    return response_;
  }

 private:
  net::CancelToken cancel_;
  base::Mutex mutex_;
  base::Condition changed_;
  net::HttpResponse response_ GUARDED_BY(mutex_);       // what has come of it
  std::optional<base::Status> end_ GUARDED_BY(mutex_);  // once it has ended
  base::Thread thread_;
};

// Plays line by line; the request is sent when `expect` is reached.
class Player {
 public:
  // False: a line did not hold; `error` says why.
  bool Play(const TalkLine& line, std::string& error) {
    const std::optional<std::string> why = answered_ ? PlayAnswer(line) : PlayRequest(line);
    if (why) error = *why;
    return !why;
  }
  // Everything that came must have been expected.
  std::optional<std::string> Close() {
    if (answered_ && next_event_ < events_.size())
      return "an event was not expected: " + events_[next_event_].data;
    answered_ = false;
    events_.clear();
    next_event_ = 0;
    return std::nullopt;
  }

 private:
  std::optional<std::string> PlayRequest(const TalkLine& line) {
    if (IsSetting(line.word)) {
      if (server_) return line.word + " comes before everything else";
      return PlaySetting(line);
    } else if (line.word == "restart") {
      server_.reset();
    } else if (line.word == "say") {
      PlaySay(line.rest);
    } else if (line.word == "chunk") {
      script_.Chunk(static_cast<uint32_t>(std::stoul(line.rest)));
    } else if (line.word == "fail") {
      return PlayFail(line.rest);
    } else if (line.word == "hang") {
      script_.Hang();
    } else if (line.word == "idle") {
      while (server().http.service().live_requests() > 0) std::this_thread::yield();
    } else if (line.word == "settled") {
      return AwaitSettled();
    } else if (line.word == "drain") {
      server().http.service().BeginDrain();
    } else if (line.word == "request") {
      const size_t space = line.rest.find(' ');
      const auto method = net::MethodFromName(line.rest.substr(0, space));
      if (!method) return "not a method";
      request_ = {.method = *method, .url = {}, .headers = {}, .body = ""};
      path_ = WithNames(line.rest.substr(space + 1));
    } else if (line.word == "header") {
      const size_t colon = line.rest.find(": ");
      request_.headers.Add(line.rest.substr(0, colon), line.rest.substr(colon + 2));
    } else if (line.word == "host") {
      host_ = line.rest;
    } else if (line.word == "body") {
      request_.body = WithNames(line.rest);
      request_.headers.Add("Content-Type", "application/json");
    } else if (line.word == "form") {
      AddToForm(line.rest);
    } else if (line.word == "pass") {
      PlayPass(std::stoi(line.rest));
    } else if (line.word == "begin") {
      return Begin();
    } else if (line.word == "got") {
      if (begun_ == nullptr) return "nothing was begun";
      return begun_->Differs(json::parse(line.rest).get<std::string>());
    } else if (line.word == "leave") {
      begun_.reset();
    } else if (line.word == "came") {
      if (begun_ == nullptr || !begun_->WaitSome()) return "nothing came";
    } else if (line.word == "resume") {
      server().http.generator().Resume(script_.Answer(0));
    } else if (line.word == "ends") {
      if (begun_ == nullptr) return "nothing was begun";
      auto response = begun_->Wait();
      begun_.reset();
      return Take(std::move(response), std::stoi(line.rest));
    } else if (line.word == "expect") {
      return Ask(std::stoi(line.rest));
    } else if (line.word == "await") {
      return Await(WithNames(line.rest));
    } else {
      return "no such word before an answer";
    }
    return std::nullopt;
  }

  static bool IsSetting(const std::string& word) {
    return word == "key" || word == "model" || word == "context" || word == "cors" ||
           word == "limit" || word == "hosts" || word == "data";
  }

  std::optional<std::string> PlaySetting(const TalkLine& line) {
    const std::vector<std::string> words = Words(line.rest);
    if (line.word == "key") {
      setting_.keys = words;
    } else if (line.word == "model") {
      const bool known = line.rest == "deepseek" || line.rest == "fim" ||
                         !api::testing::ToolTemplate(line.rest).empty();
      if (!known) return "no such model here";
      setting_.model = line.rest;
    } else if (line.word == "context") {
      setting_.context_max = static_cast<uint32_t>(std::stoul(line.rest));
    } else if (line.word == "cors") {
      setting_.origins = words;
    } else if (line.word == "hosts") {
      setting_.hosts = words;
    } else if (line.word == "data") {
      setting_.data_folder = scratch_.File("data");
      if (!words.empty()) setting_.data_bytes_max = std::stoull(words[0]);
    } else {
      const std::map<std::string, uint32_t*> limits = {
          {"requests-per-minute", &setting_.limits.requests_per_minute},
          {"tokens-per-minute", &setting_.limits.tokens_per_minute},
          {"concurrent-requests", &setting_.limits.concurrent_requests}};
      if (words.size() != 2 || !limits.contains(words[0])) return "no such limit";
      *limits.at(words[0]) = static_cast<uint32_t>(std::stoul(words[1]));
    }
    return std::nullopt;
  }

  void PlayPass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Advance(base::Seconds(1));
      server().http.service().KeepAlive();
    }
  }

  void PlaySay(const std::string& rest) {
    const size_t quote = rest.find('"');
    const int sample_index = quote == 0 ? -1 : std::stoi(rest);
    script_.Say(sample_index, json::parse(rest.substr(quote)).get<std::string>());
  }

  std::optional<std::string> PlayFail(const std::string& rest) {
    const size_t space = rest.find(' ');
    const std::string name = rest.substr(0, space);
    const std::string message = json::parse(rest.substr(space + 1)).get<std::string>();
    for (const base::Code code : {base::Code::kDeadline, base::Code::kInternal}) {
      if (base::CodeName(code) != name) continue;
      script_.Fail(base::Status(code, message));
      return std::nullopt;
    }
    return "no such code here";
  }

  // NAME "text" or NAME FILENAME "text": one more part of the request's form.
  void AddToForm(const std::string& rest) {
    const size_t quote = rest.find('"');
    const std::vector<std::string> names = Words(rest.substr(0, quote));
    const std::string file = names.size() > 1 ? "; filename=\"" + names[1] + "\"" : "";
    const std::string part = std::string("--") + kBoundary +
                             "\r\nContent-Disposition: form-data; name=\"" + names[0] + "\"" +
                             file + "\r\n\r\n" +
                             WithNames(json::parse(rest.substr(quote)).get<std::string>()) + "\r\n";
    const std::string end = std::string("--") + kBoundary + "--\r\n";
    if (request_.body.empty()) {
      request_.headers.Add("Content-Type",
                           std::string("multipart/form-data; boundary=") + kBoundary);
    } else {
      request_.body.resize(request_.body.size() - end.size());
    }
    request_.body += part + end;
  }

  // Asks again and again, until the answer is 200 and as it should be.
  std::optional<std::string> Await(const std::string& expected) {
    const base::Instant deadline = server().http.clock().Now() + kAwaitMax;
    for (;;) {
      if (auto why = Ask(200)) return why;
      const auto why = Match(expected, response_.body);
      if (!why || server().http.clock().Now() > deadline) return why;
      std::this_thread::yield();
    }
  }

  // Until the record of every batch says that it has ended, whoever may ask for it.
  std::optional<std::string> AwaitSettled() {
    const std::string folder = setting_.data_folder + "/batches";
    const base::Instant deadline = server().http.clock().Now() + kAwaitMax;
    for (bool settled = false; !settled;) {
      settled = true;
      const std::vector<std::string> names = base::ListFolder(folder, kBatchFilesMax).value();
      for (const std::string& name : names) {
        if (!name.ends_with(".json")) continue;
        const auto text = base::ReadFile(folder + "/" + name, kTalkBytesMax);
        const auto batch = api::ReadBatchRecord(text.ok() ? *text : "");
        settled = settled && batch.ok() && api::HasEnded(batch->status);
      }
      if (!settled && server().http.clock().Now() > deadline) return "a batch has not ended";
      if (!settled) std::this_thread::yield();
    }
    return std::nullopt;
  }

  std::optional<std::string> FindUrl() {
    auto url =
        net::ParseHttpUrl("http://127.0.0.1:" + std::to_string(server().http.port()) + path_);
    if (!url.ok()) return url.status().ToString();
    request_.url = *url;
    if (host_) request_.url.host_header = *host_;
    host_.reset();
    return std::nullopt;
  }

  std::optional<std::string> Begin() {
    if (auto why = FindUrl()) return why;
    const size_t live = server().http.generator().live();
    begun_ = std::make_unique<Begun>(request_, server().http.clock());
    server().http.generator().WaitLive(live + 1);
    return std::nullopt;
  }

  std::optional<std::string> Ask(int status) {
    if (auto why = FindUrl()) return why;
    return Take(net::Fetch(request_, {}, server().http.clock(), nullptr), status);
  }

  // An answer that the lines from now on judge.
  std::optional<std::string> Take(base::Result<net::HttpResponse> response, int status) {
    if (!response.ok()) return response.status().ToString();
    answered_ = true;
    response_ = *std::move(response);
    const auto type = response_.headers.Get("Content-Type");
    if (type && type->starts_with("text/event-stream")) {
      net::SseParser parser(1 << 20);
      if (base::Status fed = parser.Feed(response_.body, events_); !fed.ok()) return fed.ToString();
    }
    if (!documented_.Allow(request_.method, path_, response_.status))
      return "/openapi.json names no " + std::to_string(response_.status) + " of this path";
    if (response_.status == status) return std::nullopt;
    return "status " + std::to_string(response_.status) + ": " + response_.body;
  }

  std::optional<std::string> PlayAnswer(const TalkLine& line) {
    if (line.word == "header") {
      const size_t colon = line.rest.find(": ");
      const auto got = response_.headers.Get(line.rest.substr(0, colon));
      const std::string expected = line.rest.substr(colon + 2);
      if (expected == "<absent>")
        return got ? std::optional("the header should not be there") : std::nullopt;
      if (!got) return "the header is missing";
      if (expected == "<any>" || expected == *got) return std::nullopt;
      return "the header is \"" + std::string(*got) + "\"";
    }
    if (line.word == "json" || line.word == "json=")
      return Match(WithNames(line.rest), response_.body, MembersOf(line));
    if (line.word == "jsonl" || line.word == "jsonl=")
      return MatchLines(WithNames(line.rest), response_.body, MembersOf(line));
    if (line.word == "let") return PlayLet(line.rest);
    if (line.word == "event" || line.word == "event=") {
      if (next_event_ == events_.size()) return "the stream ended before";
      const std::string& data = events_[next_event_++].data;
      if (line.rest == "[DONE]" || data == "[DONE]")
        return line.rest == data ? std::nullopt : std::optional("the event is " + data);
      if (auto why = MisnamedEvent(events_[next_event_ - 1])) return why;
      return Match(WithNames(line.rest), data, MembersOf(line));
    }
    if (auto why = Close()) return why;
    return PlayRequest(line);
  }

  // NAME POINTER: a value of the body, or of the newest event, under a name.
  std::optional<std::string> PlayLet(const std::string& rest) {
    const size_t space = rest.find(' ');
    const std::string& text = next_event_ > 0 ? events_[next_event_ - 1].data : response_.body;
    const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
    const json::json_pointer pointer(rest.substr(space + 1));
    if (parsed.is_discarded() || !parsed.contains(pointer)) return "nothing is there";
    const json& value = parsed[pointer];
    names_[rest.substr(0, space)] = value.is_string() ? value.get<std::string>() : value.dump();
    return std::nullopt;
  }

  // Every <NAME> that `let` has given becomes what it stands for.
  std::string WithNames(std::string text) const {
    for (const auto& [name, value] : names_) {
      const std::string marked = "<" + name + ">";
      for (size_t at = 0; (at = text.find(marked, at)) != text.npos; at += value.size())
        text.replace(at, marked.size(), value);
    }
    return text;
  }

  static std::vector<std::string> Words(const std::string& text) {
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
  }

  // An event that has a name says it as its type.
  static std::optional<std::string> MisnamedEvent(const net::SseEvent& event) {
    const json parsed = json::parse(event.data, nullptr, /*allow_exceptions=*/false);
    const bool named = event.event.empty() || !parsed.is_object() ||
                       parsed.value("type", json()) == json(event.event);
    return named ? std::nullopt : std::optional("the event is called " + event.event);
  }

  static Members MembersOf(const TalkLine& line) {
    return line.word.ends_with('=') ? Members::kAll : Members::kSome;
  }

  static std::optional<std::string> Match(const std::string& expected, const std::string& got,
                                          Members members = Members::kSome) {
    const json parsed = json::parse(got, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_discarded()) return "not JSON: " + got;
    return Mismatch(json::parse(expected), parsed, members);
  }

  // Each line of the body against an element of an array.
  static std::optional<std::string> MatchLines(const std::string& expected, const std::string& body,
                                               Members members) {
    json lines = json::array();
    std::istringstream in(body);
    for (std::string text; std::getline(in, text);) {
      lines.push_back(json::parse(text, nullptr, /*allow_exceptions=*/false));
      if (lines.back().is_discarded()) return "not JSON: " + text;
    }
    return Mismatch(json::parse(expected), lines, members);
  }

  Server& server() {
    if (!server_) server_ = std::make_unique<Server>(setting_, script_, clock_);
    return *server_;
  }

  const DocumentedStatuses documented_;
  const base::ScratchFolder scratch_;
  Setting setting_;
  Script script_;
  base::ManualClock clock_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Begun> begun_;
  std::optional<std::string> host_;  // Host of the request; nothing: where it goes
  net::HttpClientRequest request_;
  std::string path_;  // of the newest request
  bool answered_ = false;
  net::HttpResponse response_;
  std::vector<net::SseEvent> events_;
  size_t next_event_ = 0;
  std::map<std::string, std::string> names_;
};

int PlayFile(const std::string& path) {
  const auto text = base::ReadFile(path, kTalkBytesMax);
  if (!text.ok()) {
    std::cerr << text.status().message() << "\n";
    return 1;
  }
  Player player;
  int expectations = 0;
  for (const TalkLine& line : ReadTalk(*text)) {
    std::string error;
    if (line.word == "expect") ++expectations;
    if (player.Play(line, error)) continue;
    std::cerr << path << ":" << line.number << ": " << line.word << " " << line.rest << "\n  "
              << error << "\n";
    return 1;
  }
  if (auto why = player.Close()) {
    std::cerr << path << ": " << *why << "\n";
    return 1;
  }
  if (expectations == 0) std::cerr << path << " expects nothing\n";
  return expectations == 0 ? 1 : 0;
}

}  // namespace
}  // namespace plumb::wire

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: wire_runner FILE.talk\n";
    return 2;
  }
  return plumb::wire::PlayFile(argv[1]);
}
