// api/batch_record.cc
// See batch_record.h.
#include "api/batch_record.h"

#include <algorithm>
#include <array>

#include "api/json_writer.h"
#include "api/stored_record.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr std::array<std::pair<BatchStatus, std::string_view>, 8> kStatuses = {{
    {BatchStatus::kValidating, "validating"},
    {BatchStatus::kInProgress, "in_progress"},
    {BatchStatus::kFinalizing, "finalizing"},
    {BatchStatus::kCompleted, "completed"},
    {BatchStatus::kFailed, "failed"},
    {BatchStatus::kCancelling, "cancelling"},
    {BatchStatus::kCancelled, "cancelled"},
    {BatchStatus::kExpired, "expired"},
}};

// Every moment of a batch, under the name that it has in both shapes.
struct TimeField {
  std::string_view name;
  int64_t Batch::* value;
};
constexpr TimeField kTimes[] = {
    {"created_at", &Batch::created_at},     {"in_progress_at", &Batch::in_progress_at},
    {"expires_at", &Batch::expires_at},     {"finalizing_at", &Batch::finalizing_at},
    {"completed_at", &Batch::completed_at}, {"failed_at", &Batch::failed_at},
    {"expired_at", &Batch::expired_at},     {"cancelling_at", &Batch::cancelling_at},
    {"cancelled_at", &Batch::cancelled_at},
};

void WriteErrors(JsonWriter& json, const Batch& batch) {
  json.Key("errors");
  if (batch.errors.empty()) {
    json.Null();
    return;
  }
  json.BeginObject().Key("object").String("list").Key("data").BeginArray();
  for (const BatchError& error : batch.errors) {
    json.BeginObject().Key("code").String(error.code).Key("message").String(error.message);
    json.Key("param").StringOrNull(error.param).Key("line");
    error.line == 0 ? json.Null() : json.Uint(error.line);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteMetadata(JsonWriter& json, const Batch& batch) {
  json.Key("metadata");
  if (batch.metadata.empty()) {
    json.Null();
    return;
  }
  json.BeginObject();
  for (const auto& [name, value] : batch.metadata) json.Key(name).String(value);
  json.EndObject();
}

// What both shapes have.
void WriteCommon(JsonWriter& json, const Batch& batch) {
  json.Key("id").String(batch.id).Key("endpoint").String(batch.endpoint);
  json.Key("input_file_id").String(batch.input_file_id);
  json.Key("status").String(BatchStatusName(batch.status));
  WriteErrors(json, batch);
  WriteMetadata(json, batch);
  json.Key("request_counts").BeginObject().Key("total").Uint(batch.counts.total);
  json.Key("completed").Uint(batch.counts.completed).Key("failed").Uint(batch.counts.failed);
  json.EndObject();
  for (const TimeField& time : kTimes) {
    json.Key(time.name);
    batch.*time.value == 0 ? json.Null() : json.Int(batch.*time.value);
  }
}

Result<uint32_t> ReadCount(const JsonValue* value, std::string_view name) {
  const JsonValue* count = value == nullptr ? nullptr : value->Find(name);
  if (count == nullptr) return 0u;
  ASSIGN_OR_RETURN(const auto number, ReadInteger(*count, std::string(name), {0, UINT32_MAX}));
  return static_cast<uint32_t>(number.value_or(0));
}

Status ReadErrors(const JsonValue* list, Batch& batch) {
  const JsonValue* data = list == nullptr ? nullptr : list->Find("data");
  if (data == nullptr) return base::OkStatus();
  for (const JsonValue& item : data->items) {
    BatchError error;
    for (const auto& [name, to] :
         {std::pair("code", &error.code), {"message", &error.message}, {"param", &error.param}}) {
      if (const JsonValue* text = item.Find(name)) {
        ASSIGN_OR_RETURN(auto read, ReadString(*text, name, kRecordBytesMax));
        *to = std::move(read).value_or("");
      }
    }
    ASSIGN_OR_RETURN(error.line, ReadCount(&item, "line"));
    batch.errors.push_back(std::move(error));
  }
  return base::OkStatus();
}

Status ReadState(const StoredRecord& record, Batch& batch) {
  ASSIGN_OR_RETURN(const std::string status, record.Text("status"));
  const auto known = BatchStatusFromName(status);
  if (!known) return InvalidArgument("status", "not a status");
  batch.status = *known;
  const JsonValue* counts = record.Find("request_counts");
  ASSIGN_OR_RETURN(batch.counts.total, ReadCount(counts, "total"));
  ASSIGN_OR_RETURN(batch.counts.completed, ReadCount(counts, "completed"));
  ASSIGN_OR_RETURN(batch.counts.failed, ReadCount(counts, "failed"));
  ASSIGN_OR_RETURN(const int64_t has_output, record.Integer("has_output", {0, 1}));
  ASSIGN_OR_RETURN(const int64_t has_errors, record.Integer("has_errors", {0, 1}));
  batch.has_output = has_output == 1;
  batch.has_errors = has_errors == 1;
  for (const TimeField& time : kTimes) {
    ASSIGN_OR_RETURN(batch.*time.value, record.Integer(time.name, {0, INT64_MAX}));
  }
  const bool begun =
      batch.status == BatchStatus::kInProgress || batch.status == BatchStatus::kFinalizing;
  if (begun && batch.in_progress_at == 0)
    return InvalidArgument("in_progress_at", "the batch is under way and has not begun");
  if (batch.status == BatchStatus::kCancelling && batch.cancelling_at == 0)
    return InvalidArgument("cancelling_at", "the batch is being cancelled and nobody asked");
  return ReadErrors(record.Find("errors"), batch);
}

}  // namespace

std::string_view BatchStatusName(BatchStatus status) {
  for (const auto& [value, name] : kStatuses)
    if (value == status) return name;
  return "";
}

std::optional<BatchStatus> BatchStatusFromName(std::string_view name) {
  for (const auto& [value, known] : kStatuses)
    if (known == name) return value;
  return std::nullopt;
}

bool HasEnded(BatchStatus status) {
  return status == BatchStatus::kCompleted || status == BatchStatus::kFailed ||
         status == BatchStatus::kCancelled || status == BatchStatus::kExpired;
}

int64_t BatchNow(const base::Clock& clock) { return std::max<int64_t>(1, clock.UnixSeconds()); }

std::string BatchJson(const Batch& batch) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("object").String("batch");
  WriteCommon(json, batch);
  json.Key("completion_window").String("24h");
  json.Key("output_file_id").StringOrNull(batch.has_output ? batch.output_file_id : "");
  json.Key("error_file_id").StringOrNull(batch.has_errors ? batch.error_file_id : "");
  json.EndObject();
  return out;
}

std::string BatchRecordJson(const Batch& batch) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("sequence").Uint(batch.sequence);
  json.Key("caller").String(HexOf(batch.caller));
  WriteCommon(json, batch);
  json.Key("output_file_id").String(batch.output_file_id);
  json.Key("error_file_id").String(batch.error_file_id);
  json.Key("output_expires_after").Int(batch.output_expires_after);
  json.Key("has_output").Uint(batch.has_output ? 1 : 0);
  json.Key("has_errors").Uint(batch.has_errors ? 1 : 0).EndObject();
  return out;
}

Result<Batch> ReadBatchRecord(std::string_view text) {
  ASSIGN_OR_RETURN(const StoredRecord record, StoredRecord::Parse(text));
  Batch batch;
  ASSIGN_OR_RETURN(batch.id, record.Text("id"));
  ASSIGN_OR_RETURN(const int64_t sequence, record.Integer("sequence", {1, INT64_MAX - 1}));
  batch.sequence = static_cast<uint64_t>(sequence);
  ASSIGN_OR_RETURN(batch.caller, record.Hash("caller"));
  ASSIGN_OR_RETURN(batch.endpoint, record.Text("endpoint"));
  ASSIGN_OR_RETURN(batch.input_file_id, record.Text("input_file_id"));
  ASSIGN_OR_RETURN(batch.output_file_id, record.Text("output_file_id"));
  ASSIGN_OR_RETURN(batch.error_file_id, record.Text("error_file_id"));
  ASSIGN_OR_RETURN(batch.output_expires_after,
                   record.Integer("output_expires_after", {0, INT64_MAX / 2}));
  for (const std::string* id : {&batch.output_file_id, &batch.error_file_id}) {
    if (!IsStoredId(*id, "file-")) return InvalidArgument("output_file_id", "not an id of ours");
  }
  if (const JsonValue* metadata = record.Find("metadata")) {
    for (const JsonMember& member : metadata->members)
      batch.metadata.emplace_back(member.name, member.value.text);
  }
  RETURN_IF_ERROR(ReadState(record, batch));
  return batch;
}

}  // namespace plumb::api
