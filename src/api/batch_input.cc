// api/batch_input.cc
// See batch_input.h.
#include "api/batch_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "api/json.h"
#include "api/json_fields.h"
#include "api/json_writer.h"

namespace plumb::api {

namespace {

constexpr size_t kErrorsMax = 100;  // that are told
constexpr uint32_t kDepthMax = 65;  // one more than a body that is sent alone

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

BatchError ErrorOf(std::string code, const base::Status& status) {
  return {.code = std::move(code), .message = status.message(), .param = status.field()};
}

// A member that must be a text, not empty.
std::variant<std::string, BatchError> ReadMember(const JsonValue& line, const char* name) {
  const JsonValue* value = line.Find(name);
  if (value == nullptr || value->is_null()) {
    return BatchError{.code = "missing_required_parameter",
                      .message = fmt::format("the line has no {}", name),
                      .param = name};
  }
  auto text = ReadString(*value, name, kCustomIdBytesMax);
  if (!text.ok()) return ErrorOf("invalid_type", text.status());
  if ((*text)->empty()) {
    return BatchError{.code = "invalid_value",
                      .message = fmt::format("{} must not be empty", name),
                      .param = name};
  }
  return **std::move(text);
}

std::optional<BatchError> CheckMembers(const JsonValue& line) {
  constexpr std::string_view kKnown[] = {"custom_id", "method", "url", "body"};
  for (const JsonMember& member : line.members) {
    if (std::ranges::find(kKnown, member.name) != std::end(kKnown)) continue;
    const std::string path = MemberPath("", member.name);
    return BatchError{.code = "unknown_parameter",
                      .message = fmt::format("{} is not a member of a batch's line", path),
                      .param = path};
  }
  return std::nullopt;
}

}  // namespace

BatchInput::BatchInput(std::shared_ptr<const base::MappedFile> file)
    : file_(std::move(file)),
      text_(reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size()) {}

std::variant<std::unique_ptr<BatchInput>, BatchError> BatchInput::Split(
    std::shared_ptr<const base::MappedFile> file, const BatchInputLimits& limits) {
  std::unique_ptr<BatchInput> input(new BatchInput(std::move(file)));
  const std::string_view text = input->text_;
  uint32_t number = 0;
  for (uint64_t begin = 0; begin < text.size();) {
    const uint64_t end = std::min<uint64_t>(text.find('\n', begin), text.size());
    ++number;
    if (!IsBlank(text.substr(begin, end - begin))) {
      if (input->places_.size() == limits.lines_max) {
        return BatchError{.code = "too_many_tasks",
                          .message = fmt::format("the file has more than {} lines, as many as a "
                                                 "batch may have; split it",
                                                 limits.lines_max)};
      }
      input->places_.push_back({.offset = begin, .bytes = end - begin, .number = number});
    }
    begin = end + 1;
  }
  if (input->places_.empty()) {
    return BatchError{.code = "empty_file", .message = "the file has no line that asks anything"};
  }
  return input;
}

std::variant<BatchLine, BatchError> ReadBatchLine(std::string_view line, std::string_view endpoint,
                                                  const BatchInputLimits& limits) {
  const auto root = ParseJson(line, {.bytes_max = limits.line_bytes_max, .depth_max = kDepthMax});
  if (!root.ok()) return ErrorOf("invalid_json_line", root.status());
  if (root->kind != JsonKind::kObject)
    return BatchError{.code = "invalid_json_line", .message = "a line is one JSON object"};
  if (auto error = CheckMembers(*root)) return *std::move(error);
  auto custom_id = ReadMember(*root, "custom_id");
  auto method = ReadMember(*root, "method");
  auto url = ReadMember(*root, "url");
  for (auto* member : {&custom_id, &method, &url})
    if (auto* error = std::get_if<BatchError>(member)) return std::move(*error);
  if (std::get<std::string>(method) != "POST") {
    return BatchError{
        .code = "invalid_method", .message = "method must be \"POST\"", .param = "method"};
  }
  if (std::get<std::string>(url) != endpoint) {
    return BatchError{.code = "mismatched_url",
                      .message = fmt::format("url must be the batch's endpoint, \"{}\"", endpoint),
                      .param = "url"};
  }
  const JsonValue* body = root->Find("body");
  if (body == nullptr || body->kind != JsonKind::kObject) {
    return BatchError{.code = body == nullptr ? "missing_required_parameter" : "invalid_type",
                      .message = "body must be an object, as it would be sent alone",
                      .param = "body"};
  }
  // What is answered piece by piece, or later, is no answer that a file could hold.
  for (const char* mode : {"stream", "background"}) {
    const JsonValue* value = body->Find(mode);
    if (value == nullptr || value->kind != JsonKind::kBool || !value->boolean) continue;
    return BatchError{.code = "invalid_value",
                      .message = fmt::format("{} cannot be true in a batch", mode),
                      .param = MemberPath("body", mode)};
  }
  BatchLine read{.custom_id = std::get<std::string>(std::move(custom_id)), .body = {}};
  AppendJson(read.body, *body);
  return read;
}

bool BatchCheck::GoOn(uint64_t bytes) {
  for (uint64_t seen = 0; seen < bytes && next_ < input_.size(); ++next_) {
    const std::string_view line = input_.Line(next_);
    seen += line.size();
    auto read = ReadBatchLine(line, endpoint_, limits_);
    auto* error = std::get_if<BatchError>(&read);
    BatchError twice{.code = "duplicate_custom_id", .param = "custom_id"};
    if (auto* good = std::get_if<BatchLine>(&read);
        good != nullptr && !custom_ids_.insert(std::move(good->custom_id)).second) {
      twice.message = "another line has this custom_id; answers are told apart by it";
      error = &twice;
    }
    if (error == nullptr) continue;
    error->line = input_.NumberOf(next_);
    errors_.push_back(std::move(*error));
    if (errors_.size() == kErrorsMax) return true;
  }
  return next_ == input_.size();
}

}  // namespace plumb::api
