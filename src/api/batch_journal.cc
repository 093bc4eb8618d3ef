// api/batch_journal.cc
// See batch_journal.h. A record: "00000007 o 0000001234 <64 hexadecimal digits>\n" and the text
// with its line break; the digits hash the head before them and the text.
#include "api/batch_journal.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "api/stored_record.h"
#include "base/check.h"
#include "base/hash.h"

namespace plumb::api {

using base::Result;
using base::Status;

namespace {

constexpr size_t kSummedBytes = 22;  // "00000007 o 0000001234 "
constexpr size_t kHeadBytes = kSummedBytes + 64 + 1;

std::string Summed(uint32_t line, ResultKind kind, uint64_t bytes) {
  return fmt::format("{:08} {} {:010} ", line, kind == ResultKind::kOutput ? 'o' : 'e', bytes);
}

std::string SumOf(std::string_view head, std::string_view text) {
  return HexOf(base::Blake3({std::as_bytes(std::span(head)), std::as_bytes(std::span(text))}));
}

std::optional<uint32_t> ReadDigits(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<std::unique_ptr<BatchJournal>> BatchJournal::Open(const std::string& path, uint32_t lines) {
  std::unique_ptr<BatchJournal> journal(new BatchJournal(path, lines));
  // Made when it is missing; an empty file cannot be mapped.
  ASSIGN_OR_RETURN(journal->file_, base::AppendFile::Open(path));
  auto map = base::MappedFile::Open(path);
  if (map.ok()) {
    const auto bytes = (*map)->bytes();
    journal->ReadRecords({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } else if (map.status().code() != base::Code::kInvalidArgument) {
    return map.status();
  }
  map = base::Internal("unmapped: what follows cuts the file");
  RETURN_IF_ERROR(journal->Reopen());
  return journal;
}

// Up to the first record that is not whole.
void BatchJournal::ReadRecords(std::string_view bytes) {
  for (;;) {
    const std::string_view rest = bytes.substr(size_);
    if (rest.size() < kHeadBytes) return;
    const std::string_view head = rest.substr(0, kSummedBytes);
    const auto line = ReadDigits(head.substr(0, 8));
    const auto text_bytes = ReadDigits(head.substr(11, 10));
    if (!line || *line >= places_.size() || !text_bytes || *text_bytes == 0) return;
    if (rest.size() - kHeadBytes < *text_bytes || Has(*line)) return;
    const ResultKind kind = head[9] == 'o' ? ResultKind::kOutput : ResultKind::kError;
    const std::string_view text = rest.substr(kHeadBytes, *text_bytes);
    if (head != Summed(*line, kind, *text_bytes)) return;
    if (rest.substr(kSummedBytes, 64) != SumOf(head, text) || rest[kHeadBytes - 1] != '\n') return;
    Keep(*line, {.offset = size_ + kHeadBytes, .bytes = *text_bytes, .kind = kind});
    size_ += kHeadBytes + *text_bytes;
  }
}

void BatchJournal::Keep(uint32_t line, Place place) {
  places_[line] = place;
  ++counts_[static_cast<size_t>(place.kind)];
}

Status BatchJournal::Reopen() {
  file_.reset();
  ASSIGN_OR_RETURN(file_, base::AppendFile::Open(path_, size_));
  return base::OkStatus();
}

uint64_t BatchJournal::BytesOf(const LineResult& result) {
  return kHeadBytes + result.text.size() + 1;
}

Status BatchJournal::Append(std::span<const LineResult> results) {
  if (results.empty()) return base::OkStatus();
  if (file_ == nullptr) {
    if (Status status = Reopen(); !status.ok()) return StorageError(status);
  }
  std::string records;
  std::vector<Place> places;
  for (const LineResult& result : results) {
    CHECK(result.line < places_.size() && !Has(result.line)) << "line " << result.line;
    const std::string text = result.text + '\n';
    const std::string head = Summed(result.line, result.kind, text.size());
    records += head + SumOf(head, text) + '\n';
    places.push_back({.offset = size_ + records.size(),
                      .bytes = static_cast<uint32_t>(text.size()),
                      .kind = result.kind});
    records += text;
  }
  Status status = file_->Append(records);
  if (status.ok()) status = file_->Flush();
  if (!status.ok()) {
    (void)Reopen();  // cuts off what may be there of it; when it cannot, the next call tries again
    return StorageError(status);
  }
  size_ += records.size();
  for (size_t i = 0; i < results.size(); ++i) Keep(results[i].line, places[i]);
  return base::OkStatus();
}

Result<std::unique_ptr<base::MappedFile>> BatchJournal::Map() const {
  auto map = base::MappedFile::Open(path_);
  if (!map.ok()) return StorageError(map.status());
  if ((*map)->bytes().size() < size_) return base::Internal("a journal has become shorter");
  return map;
}

std::string_view BatchJournal::TextAt(const base::MappedFile& map, const Place& place) {
  return {reinterpret_cast<const char*>(map.bytes().data()) + place.offset, place.bytes};
}

}  // namespace plumb::api
