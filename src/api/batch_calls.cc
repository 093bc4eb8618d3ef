// api/batch_calls.cc
// See batch_calls.h.
#include "api/batch_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/common_fields.h"
#include "api/data_calls.h"
#include "api/json.h"
#include "api/json_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using net::HttpResponse;

namespace {

constexpr uint64_t kBodyBytesMax = 64u << 10;
constexpr size_t kTextBytesMax = 256;
constexpr IntegerRange kExpirySeconds = {3600, 30 * 24 * 3600};

Status ReadExpiry(const JsonValue& value, const std::string& path, Batch& batch) {
  if (value.is_null()) return base::OkStatus();
  RETURN_IF_ERROR(CheckObject(value, path, 2));
  for (const JsonMember& member : value.members) {
    const std::string inner = MemberPath(path, member.name);
    if (member.name == "anchor") {
      ASSIGN_OR_RETURN(const auto anchor, ReadString(member.value, inner, kTextBytesMax));
      if (anchor != "created_at") return InvalidArgument(inner, "anchor must be \"created_at\"");
    } else if (member.name == "seconds") {
      ASSIGN_OR_RETURN(const auto seconds, ReadInteger(member.value, inner, kExpirySeconds));
      batch.output_expires_after = seconds.value_or(0);
    } else {
      return InvalidArgument(inner, inner + " is not a field of this request");
    }
  }
  if (batch.output_expires_after == 0)
    return InvalidArgument(MemberPath(path, "seconds"), "seconds is missing");
  return base::OkStatus();
}

Status ReadMetadata(const JsonValue& value, const std::string& path, Batch& batch) {
  RETURN_IF_ERROR(CheckMetadata(value, path));
  for (const JsonMember& entry : value.members)
    batch.metadata.emplace_back(entry.name, entry.value.text);
  return base::OkStatus();
}

Status ReadText(const JsonValue& value, const std::string& path, std::string& out) {
  ASSIGN_OR_RETURN(auto text, ReadString(value, path, kTextBytesMax));
  out = std::move(text).value_or("");
  return base::OkStatus();
}

struct Draft {
  Batch batch;
  std::string window;
};
struct Field {
  std::string_view name;
  Status (*read)(const JsonValue& value, const std::string& path, Draft& draft);
};
constexpr Field kFields[] = {
    {"input_file_id",
     [](const JsonValue& value, const std::string& path, Draft& draft) {
       return ReadText(value, path, draft.batch.input_file_id);
     }},
    {"endpoint", [](const JsonValue& value, const std::string& path,
                    Draft& draft) { return ReadText(value, path, draft.batch.endpoint); }},
    {"completion_window", [](const JsonValue& value, const std::string& path,
                             Draft& draft) { return ReadText(value, path, draft.window); }},
    {"metadata", [](const JsonValue& value, const std::string& path,
                    Draft& draft) { return ReadMetadata(value, path, draft.batch); }},
    {"output_expires_after", [](const JsonValue& value, const std::string& path,
                                Draft& draft) { return ReadExpiry(value, path, draft.batch); }},
};

Status CheckRequest(const Batch& batch, const std::string& window,
                    const std::vector<std::string>& endpoints) {
  if (batch.input_file_id.empty())
    return InvalidArgument("input_file_id", "input_file_id is missing");
  if (std::ranges::find(endpoints, batch.endpoint) == endpoints.end()) {
    std::string message = "endpoint must be one of";
    for (const std::string& endpoint : endpoints) message += " " + endpoint;
    return InvalidArgument("endpoint", message);
  }
  if (window != "24h")
    return InvalidArgument("completion_window", "completion_window must be \"24h\"");
  return base::OkStatus();
}

}  // namespace

Result<Batch> ReadBatchRequest(std::string_view body, const std::vector<std::string>& endpoints) {
  ASSIGN_OR_RETURN(const JsonValue root, ParseJson(body, {.bytes_max = kBodyBytesMax}));
  if (root.kind != JsonKind::kObject) return InvalidArgument("", "the body is one JSON object");
  Draft draft;
  for (const JsonMember& member : root.members) {
    const std::string path = MemberPath("", member.name);
    const auto field = std::ranges::find(kFields, member.name, &Field::name);
    if (field == std::end(kFields))
      return InvalidArgument(path, path + " is not a field of this request");
    RETURN_IF_ERROR(field->read(member.value, path, draft));
  }
  RETURN_IF_ERROR(CheckRequest(draft.batch, draft.window, endpoints));
  return std::move(draft.batch);
}

std::vector<std::string_view> BatchFieldNames() {
  std::vector<std::string_view> names;
  for (const Field& field : kFields) names.push_back(field.name);
  return names;
}

HttpResponse BatchCalls::Create(const Call& call) {
  auto batch = ReadBatchRequest(call.request.body, endpoints);
  if (!batch.ok()) return CallError(batch.status(), logger, call);
  batch->caller = call.isolation;
  const StoredFile* file = files.Find(call.isolation, batch->input_file_id);
  if (file == nullptr || file->purpose != "batch") {
    const char* message = file == nullptr
                              ? "input_file_id names no file of yours"
                              : "the file must have been uploaded for purpose \"batch\"";
    return CallError(InvalidArgument("input_file_id", message), logger, call);
  }
  // Whoever has no room for files makes no batch: none of its lines would get an answer.
  if (const Status room = files.CheckRoom(call.isolation, 0); !room.ok())
    return CallError(room, logger, call);
  const auto created = runner.Create(*std::move(batch));
  if (!created.ok()) return CallError(created.status(), logger, call);
  return JsonResponse(BatchJson(**created));
}

HttpResponse BatchCalls::List(const Call& call) {
  const auto page = ReadPage(call.request.query);
  if (!page.ok()) return CallError(page.status(), logger, call);
  std::vector<const Batch*> all = batches.List(call.isolation);
  if (Status status = TakePage(*page, all); !status.ok()) return CallError(status, logger, call);
  const size_t shown = std::min(all.size(), page->limit);
  PageWriter writer;
  for (size_t i = 0; i < shown; ++i) writer.Entry(all[i]->id).Raw(BatchJson(*all[i]));
  return JsonResponse(writer.Finish(shown < all.size()));
}

HttpResponse BatchCalls::Get(const Call& call) {
  const Batch* batch = batches.Find(call.isolation, call.names.front());
  if (batch == nullptr)
    return CallError(NoSuch("batch", call.names.front(), "batch_id"), logger, call);
  return JsonResponse(BatchJson(*batch));
}

HttpResponse BatchCalls::Cancel(const Call& call) {
  const std::string& id = call.names.front();
  const Batch* batch = batches.Find(call.isolation, id);
  if (batch == nullptr) return CallError(NoSuch("batch", id, "batch_id"), logger, call);
  const Status status = runner.Cancel(*batch);
  if (!status.ok()) return CallError(status, logger, call);
  return JsonResponse(BatchJson(*batches.Find(call.isolation, id)));
}

}  // namespace plumb::api
