// cli/remote_talker.cc: OpenAI-style requests and streams, read leniently, behind
// cli/remote_talker.h: unknown members are skipped, since the server may be another program.
#include "cli/remote_talker.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/format.h"
#include "net/sse.h"

namespace plumb::cli {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kEventBytesMax = 4u << 20;
constexpr size_t kErrorTextMax = 500;
constexpr size_t kErrorBodyMax = 1u << 16;

// The member of an object, or null.
const Json& At(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

uint64_t CountOf(const Json& value) {
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

Json ParseLeniently(std::string_view text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// What the server says went wrong.
base::Status ErrorOf(int http_status, std::string_view body) {
  const Json error = At(ParseLeniently(body), "error");
  std::string message = Printable(TextOf(At(error, "message")), kErrorTextMax);
  if (message.empty())
    message = fmt::format("the server answered with HTTP status {}", http_status);
  const base::Code code = http_status == 401   ? base::Code::kUnauthenticated
                          : http_status == 403 ? base::Code::kForbidden
                          : http_status == 404 ? base::Code::kNotFound
                          : http_status < 500  ? base::Code::kInvalidArgument
                                               : base::Code::kUnavailable;
  base::Status status(code, std::move(message));
  return std::move(status).WithReason(TextOf(At(error, "code")));
}

void ReadDelta(const Json& delta, std::vector<text::AnswerDelta>& deltas) {
  using Kind = text::AnswerDelta::Kind;
  const auto add = [&](Kind kind, const Json& value) {
    const std::string text = TextOf(value);
    if (!text.empty()) text::AppendDelta(deltas, kind, text);
  };
  add(Kind::kReasoning, At(delta, "reasoning_content"));
  add(Kind::kContent, At(delta, "content"));
  const Json& calls = At(delta, "tool_calls");
  if (!calls.is_array()) return;
  for (const Json& call : calls) {
    add(Kind::kCallBegin, At(At(call, "function"), "name"));
    add(Kind::kArguments, At(At(call, "function"), "arguments"));
  }
}

}  // namespace

base::Status ReadChunk(std::string_view json, std::vector<text::AnswerDelta>& deltas,
                       AnswerEnd& end) {
  const Json chunk = ParseLeniently(json);
  if (!chunk.is_object()) return base::Corrupt("the server's stream is not JSON");
  if (chunk.contains("error")) return ErrorOf(500, json);
  const Json& choices = At(chunk, "choices");
  if (choices.is_array() && !choices.empty()) {
    ReadDelta(At(choices[0], "delta"), deltas);
    const std::string reason = TextOf(At(choices[0], "finish_reason"));
    if (!reason.empty()) end.finish_reason = Printable(reason, 40);
  }
  const Json& usage = At(chunk, "usage");
  if (usage.is_object()) {
    end.prompt_tokens = CountOf(At(usage, "prompt_tokens"));
    end.completion_tokens = CountOf(At(usage, "completion_tokens"));
  }
  const Json& seed = At(At(chunk, "plumb"), "seed");
  if (seed.is_number_integer()) end.seed = seed.get<int64_t>();
  return base::OkStatus();
}

base::Result<std::unique_ptr<RemoteTalker>> RemoteTalker::Connect(const std::string& url,
                                                                  const std::string& api_key,
                                                                  const std::string& wanted_model,
                                                                  const base::Clock& clock) {
  std::string base_url = url;
  while (base_url.ends_with('/')) base_url.pop_back();
  if (base_url.ends_with("/v1")) base_url.resize(base_url.size() - 3);
  if (const auto parsed = net::ParseHttpUrl(base_url); !parsed.ok()) {
    return base::InvalidArgument("--url", "--url: " + parsed.status().message());
  }
  std::unique_ptr<RemoteTalker> talker(new RemoteTalker(std::move(base_url), api_key, clock));
  RETURN_IF_ERROR(talker->ChooseModel(wanted_model));
  return talker;
}

RemoteTalker::~RemoteTalker() {
  cancel_.Cancel();
  if (thread_.joinable()) thread_.Join();
}

base::Result<net::HttpClientRequest> RemoteTalker::MakeRequest(net::HttpMethod method,
                                                               std::string_view target) const {
  net::HttpClientRequest request;
  request.method = method;
  ASSIGN_OR_RETURN(request.url, net::ParseHttpUrl(base_url_ + std::string(target)));
  if (!api_key_.empty()) request.headers.Add("Authorization", "Bearer " + api_key_);
  return request;
}

base::Status RemoteTalker::ChooseModel(const std::string& wanted) {
  ASSIGN_OR_RETURN(const net::HttpClientRequest request,
                   MakeRequest(net::HttpMethod::kGet, "/v1/models"));
  ASSIGN_OR_RETURN(const net::HttpResponse response, net::Fetch(request, {}, clock_, nullptr));
  if (response.status != 200) return ErrorOf(response.status, response.body);
  const Json list = ParseLeniently(response.body);
  for (const Json& model : At(list, "data")) {
    const std::string id = TextOf(At(model, "id"));
    if (model_.empty() || id == wanted) model_ = id;
  }
  if (model_.empty()) return base::Corrupt("the server at --url names no model");
  return base::OkStatus();
}

base::Status RemoteTalker::Start(const std::string& body, AnswerSink& sink) {
  if (thread_.joinable()) thread_.Join();
  cancel_.Reset();
  ASSIGN_OR_RETURN(net::HttpClientRequest request,
                   MakeRequest(net::HttpMethod::kPost, "/v1/chat/completions"));
  request.headers.Add("Content-Type", "application/json");
  request.body = body;
  thread_ = base::Thread("remote-answer",
                         [this, request = std::move(request), &sink] { Read(request, sink); });
  return base::OkStatus();
}

void RemoteTalker::Read(const net::HttpClientRequest& request, AnswerSink& sink) {
  AnswerEnd end;
  net::SseParser parser(kEventBytesMax);
  int http_status = 0;
  std::string error_body;
  base::Status stream_error;
  const net::HttpBodySink body_sink{
      .on_head =
          [&](const net::HttpResponse& head) {
            http_status = head.status;
            return true;
          },
      .on_body =
          [&](std::string_view bytes) {
            if (http_status != 200) {
              error_body +=
                  bytes.substr(0, kErrorBodyMax - std::min(error_body.size(), kErrorBodyMax));
              return true;
            }
            std::vector<net::SseEvent> events;
            stream_error = parser.Feed(bytes, events);
            std::vector<text::AnswerDelta> deltas;
            for (const net::SseEvent& event : events) {
              if (!stream_error.ok() || event.data == "[DONE]") break;
              stream_error = ReadChunk(event.data, deltas, end);
            }
            if (!deltas.empty()) sink.OnPiece({std::move(deltas), std::nullopt});
            return stream_error.ok();
          }};
  const base::Status status = net::FetchStream(request, {}, clock_, &cancel_, body_sink);
  if (!stream_error.ok()) {
    end.status = stream_error;
  } else if (status.code() == base::Code::kCancelled) {
    end.finish_reason = "cancelled";
  } else if (!status.ok()) {
    end.status = status;
  } else if (http_status != 200) {
    end.status = ErrorOf(http_status, error_body);
  } else if (end.finish_reason.empty()) {
    end.status = base::Status(base::Code::kUnavailable, "the server's stream ended too early");
  }
  sink.OnPiece({{}, std::move(end)});
}

}  // namespace plumb::cli
