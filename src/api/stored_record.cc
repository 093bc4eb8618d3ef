// api/stored_record.cc
// See stored_record.h.
#include "api/stored_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/random.h"
#include "net/http.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kIdDigits = 24;

bool IsHex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

Status StorageError(const Status& status) {
  if (status.reason() != "disk_full") return base::Internal(status.message());
  return Status(base::Code::kOverloaded,
                "the server's disk is full; try again when its operator has made room")
      .WithReason("disk_full")
      .WithRetryAfterMs(status.retry_after_ms());
}

std::string NewStoredId(std::string_view prefix) {
  const std::string digits =
      fmt::format("{:016x}{:016x}", base::EntropySeed(), base::EntropySeed());
  return std::string(prefix) + digits.substr(0, kIdDigits);
}

bool IsStoredId(std::string_view text, std::string_view prefix) {
  return text.size() == prefix.size() + kIdDigits && text.starts_with(prefix) &&
         IsHex(text.substr(prefix.size()));
}

std::string HexOf(const base::Hash256& hash) {
  std::string out;
  for (const uint8_t byte : hash.bytes) out += fmt::format("{:02x}", byte);
  return out;
}

Result<StoredRecord> StoredRecord::Parse(std::string_view text) {
  StoredRecord record;
  ASSIGN_OR_RETURN(record.root_, ParseJson(text, {.bytes_max = kRecordBytesMax}));
  if (record.root_.kind != JsonKind::kObject) return InvalidArgument("", "a record is an object");
  return record;
}

Result<std::string> StoredRecord::Text(std::string_view name) const {
  const JsonValue* value = root_.Find(name);
  if (value == nullptr) return std::string();
  ASSIGN_OR_RETURN(auto text, ReadString(*value, std::string(name), kRecordBytesMax));
  return std::move(text).value_or("");
}

Result<int64_t> StoredRecord::Integer(std::string_view name, IntegerRange range) const {
  const JsonValue* value = root_.Find(name);
  std::optional<int64_t> number;
  if (value != nullptr) {
    ASSIGN_OR_RETURN(number, ReadInteger(*value, std::string(name), range));
  }
  if (!number && range.min > 0) return InvalidArgument(std::string(name), "missing");
  return number.value_or(0);
}

Result<base::Hash256> StoredRecord::Hash(std::string_view name) const {
  ASSIGN_OR_RETURN(const std::string text, Text(name));
  base::Hash256 hash;
  if (text.size() != 2 * hash.bytes.size() || !IsHex(text))
    return InvalidArgument(std::string(name), "not a hash");
  for (size_t i = 0; i < hash.bytes.size(); ++i) {
    hash.bytes[i] =
        static_cast<uint8_t>(net::HexDigit(text[2 * i]) * 16 + net::HexDigit(text[2 * i + 1]));
  }
  return hash;
}

}  // namespace plumb::api
