// api/file_calls.cc
// See file_calls.h.
#include "api/file_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "api/data_calls.h"
#include "api/json_writer.h"
#include "api/multipart.h"
#include "api/stored_record.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using net::HttpResponse;

namespace {

constexpr size_t kFilenameBytesMax = 255;
constexpr size_t kFieldBytesMax = 64;
constexpr PageLimits kPageLimits = {.limit_max = 10'000, .limit_default = 10'000};
constexpr int64_t kExpirySecondsMin = 3600;
constexpr int64_t kExpirySecondsMax = 30 * 24 * 3600;

// What an upload says besides its bytes.
struct Upload {
  std::string_view content;
  std::string filename;
  std::optional<std::string> purpose;
  std::optional<std::string> expiry_anchor;
  std::optional<std::string> expiry_seconds;
};

void WriteFile(JsonWriter& json, const StoredFile& file) {
  json.BeginObject().Key("id").String(file.id).Key("object").String("file");
  json.Key("bytes").Uint(file.bytes).Key("created_at").Int(file.created_at).Key("expires_at");
  file.expires_at == 0 ? json.Null() : json.Int(file.expires_at);
  json.Key("filename").String(file.filename).Key("purpose").String(file.purpose);
  json.Key("status").String("processed").EndObject();
}

HttpResponse FileResponse(const StoredFile& file) {
  std::string out;
  JsonWriter json(out);
  WriteFile(json, file);
  return JsonResponse(std::move(out));
}

Status TakePart(FormPart& part, Upload& upload) {
  if (part.name == "file") {
    if (!part.filename)
      return InvalidArgument("file", "file must be sent as a file, with its name");
    upload.content = part.content;
    upload.filename = *std::move(part.filename);
    return base::OkStatus();
  }
  for (const auto& [name, to] : {std::pair("purpose", &upload.purpose),
                                 {"expires_after[anchor]", &upload.expiry_anchor},
                                 {"expires_after[seconds]", &upload.expiry_seconds}}) {
    if (part.name != name) continue;
    if (part.content.size() > kFieldBytesMax)
      return InvalidArgument(part.name,
                             fmt::format("{} has at most {} bytes", part.name, kFieldBytesMax));
    *to = std::string(part.content);
    return base::OkStatus();
  }
  const std::string path = MemberPath("", part.name);
  return InvalidArgument(path, path + " is not a field of this request");
}

Status CheckUpload(const Upload& upload) {
  if (upload.filename.empty()) return InvalidArgument("file", "file is missing");
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (upload.filename.size() > kFilenameBytesMax || std::ranges::any_of(upload.filename, control)) {
    return InvalidArgument("file", fmt::format("a file's name has at most {} bytes and no control "
                                               "characters",
                                               kFilenameBytesMax));
  }
  if (upload.content.empty()) return InvalidArgument("file", "the file is empty");
  if (!upload.purpose) return InvalidArgument("purpose", "purpose is missing");
  if (upload.purpose != "batch") {
    return InvalidArgument("purpose",
                           "purpose must be \"batch\": this server reads files as the input of "
                           "batches and for nothing else");
  }
  return base::OkStatus();
}

// Seconds from now; 0: never.
Result<int64_t> ReadExpiry(const Upload& upload) {
  if (!upload.expiry_anchor && !upload.expiry_seconds) return 0;
  if (upload.expiry_anchor != "created_at")
    return InvalidArgument("expires_after[anchor]", "anchor must be \"created_at\"");
  int64_t seconds = 0;
  const std::string text = upload.expiry_seconds.value_or("");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < kExpirySecondsMin ||
      seconds > kExpirySecondsMax) {
    return InvalidArgument(
        "expires_after[seconds]",
        fmt::format("seconds must be from {} to {}", kExpirySecondsMin, kExpirySecondsMax));
  }
  return seconds;
}

Result<const StoredFile*> Store(FileStore& files, const base::Clock& clock, const Call& call) {
  const auto type = call.request.headers.Get("Content-Type");
  ASSIGN_OR_RETURN(std::vector<FormPart> parts, ReadForm(type.value_or(""), call.request.body));
  Upload upload;
  for (FormPart& part : parts) RETURN_IF_ERROR(TakePart(part, upload));
  RETURN_IF_ERROR(CheckUpload(upload));
  ASSIGN_OR_RETURN(const int64_t seconds, ReadExpiry(upload));
  RETURN_IF_ERROR(files.CheckRoom(call.isolation, upload.content.size()));
  const std::string id = NewStoredId(kFileIdPrefix);
  ASSIGN_OR_RETURN(auto writer, files.Begin(id));
  RETURN_IF_ERROR(writer->Append(upload.content));
  StoredFile file{.id = id,
                  .caller = call.isolation,
                  .filename = std::move(upload.filename),
                  .purpose = *std::move(upload.purpose),
                  .expires_at = seconds == 0 ? 0 : clock.UnixSeconds() + seconds};
  return files.Commit(std::move(writer), std::move(file));
}

}  // namespace

HttpResponse FileCalls::Upload(const Call& call) {
  const auto stored = Store(files, clock, call);
  return stored.ok() ? FileResponse(**stored) : CallError(stored.status(), logger, call);
}

HttpResponse FileCalls::List(const Call& call) {
  const auto page = ReadPage(call.request.query, kPageLimits);
  if (!page.ok()) return CallError(page.status(), logger, call);
  const auto purpose = net::QueryParam(call.request.query, "purpose");
  std::vector<const StoredFile*> all = files.List(call.isolation);
  if (Status status = TakePage(*page, all); !status.ok()) return CallError(status, logger, call);
  if (purpose)
    std::erase_if(all, [&](const StoredFile* file) { return file->purpose != *purpose; });
  const size_t shown = std::min(all.size(), page->limit);
  PageWriter writer;
  for (size_t i = 0; i < shown; ++i) WriteFile(writer.Entry(all[i]->id), *all[i]);
  return JsonResponse(writer.Finish(shown < all.size()));
}

HttpResponse FileCalls::Get(const Call& call) {
  const StoredFile* file = files.Find(call.isolation, call.names.front());
  return file == nullptr ? CallError(NoSuch("file", call.names.front(), "id"), logger, call)
                         : FileResponse(*file);
}

// To be saved, never shown: a browser must not take what somebody uploaded for a page of ours.
DataAnswer FileCalls::Content(const Call& call) {
  const StoredFile* file = files.Find(call.isolation, call.names.front());
  if (file == nullptr)
    return {CallError(NoSuch("file", call.names.front(), "id"), logger, call), nullptr};
  auto map = files.Map(*file);
  if (!map.ok()) return {CallError(map.status(), logger, call), nullptr};
  HttpResponse response;
  response.headers.Add("Content-Type", "application/octet-stream");
  response.headers.Add("Content-Disposition", "attachment");
  response.headers.Add("X-Content-Type-Options", "nosniff");
  return {std::move(response), *std::move(map)};
}

HttpResponse FileCalls::Delete(const Call& call) {
  const std::string& id = call.names.front();
  if (files.Find(call.isolation, id) == nullptr)
    return CallError(NoSuch("file", id, "id"), logger, call);
  if (runner.Uses(id)) {
    return CallError(
        InvalidArgument("id", "a batch reads this file; cancel it, or wait for its end")
            .WithReason("file_in_use"),
        logger, call);
  }
  const Status status = files.Remove(call.isolation, id);
  if (!status.ok()) return CallError(status, logger, call);
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("id").String(id).Key("object").String("file");
  json.Key("deleted").Bool(true).EndObject();
  return JsonResponse(std::move(out));
}

}  // namespace plumb::api
