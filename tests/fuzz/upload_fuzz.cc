// tests/fuzz/upload_fuzz.cc
// Arbitrary bytes as the form of an upload, as the body that makes a batch, as a batch's line and
// as a record on the disk. Besides not crashing: what a form gives lies within it, a batch that is
// made can be kept and read again, a line's body is JSON again, and a record that is taken is
// written as it was read.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "api/batch_calls.h"
#include "api/batch_input.h"
#include "api/batch_record.h"
#include "api/json.h"
#include "api/json_writer.h"
#include "api/multipart.h"
#include "base/check.h"
#include "refusal.h"

namespace {

namespace api = plumb::api;

void CheckForm(std::string_view body) {
  const auto form = api::ReadForm("multipart/form-data; boundary=b", body);
  if (!form.ok()) {
    CHECK(form.status().code() == plumb::base::Code::kInvalidArgument);
    return;
  }
  CHECK(form->size() <= api::kFormPartsMax);
  for (const api::FormPart& part : *form) {
    CHECK(!part.name.empty());
    CHECK(part.content.data() >= body.data());
    CHECK(part.content.data() + part.content.size() <= body.data() + body.size());
    CHECK(part.content.find("\r\n--b") == part.content.npos);
  }
}

void CheckMade(std::string_view body) {
  auto batch = api::ReadBatchRequest(body, {"/v1/chat/completions", "/v1/embeddings"});
  if (!batch.ok()) return plumb::fuzz::CheckRefusal(batch.status());
  batch->id = "batch_0123456789abcdef01234567";
  batch->sequence = 1;
  batch->output_file_id = "file-1123456789abcdef01234567";
  batch->error_file_id = "file-2123456789abcdef01234567";
  batch->created_at = 1;
  batch->expires_at = 86401;
  const std::string written = api::BatchRecordJson(*batch);
  const auto again = api::ReadBatchRecord(written);
  CHECK(again.ok()) << again.status().ToString() << written;
  CHECK(api::BatchRecordJson(*again) == written);
}

void CheckLine(std::string_view text) {
  const auto read = api::ReadBatchLine(text, "/v1/chat/completions", {});
  if (const auto* line = std::get_if<api::BatchLine>(&read)) {
    CHECK(!line->custom_id.empty() && line->custom_id.size() <= api::kCustomIdBytesMax);
    const auto body = api::ParseJson(line->body);
    CHECK(body.ok()) << line->body;
    std::string again;
    api::AppendJson(again, *body);
    CHECK(again == line->body) << line->body;
    CHECK(line->body.find('\n') == line->body.npos);
  } else {
    CHECK(!std::get<api::BatchError>(read).code.empty());
  }
}

void CheckRecord(std::string_view text) {
  const auto batch = api::ReadBatchRecord(text);
  if (!batch.ok()) return;
  const std::string written = api::BatchRecordJson(*batch);
  const auto again = api::ReadBatchRecord(written);
  CHECK(again.ok()) << again.status().ToString();
  CHECK(api::BatchRecordJson(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckForm(text);
  CheckMade(text);
  CheckLine(text);
  CheckRecord(text);
  return 0;
}
