// cli/generate_output.cc
// Reading back, cutting and sorting, behind cli/generate_output.h.
#include "cli/generate_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "api/json.h"
#include "api/json_fields.h"
#include "cli/line_reader.h"
#include "cli/sha256.h"

namespace plumb::cli {
namespace {

constexpr size_t kKeyDigits = 16;

struct AnswerPlace {
  uint64_t index;
  std::string key;
};

// What a complete line of the file must say; nothing when it says something else.
std::optional<AnswerPlace> ReadPlace(std::string_view line) {
  api::JsonLimits limits;
  limits.bytes_max = kOutputLineBytesMax;
  limits.nodes_max = 1u << 26;
  const base::Result<api::JsonValue> json = api::ParseJson(line, limits);
  if (!json.ok() || json->kind != api::JsonKind::kObject) return std::nullopt;
  const api::JsonValue* index = json->Find("index");
  const api::JsonValue* key = json->Find("key");
  if (index == nullptr || key == nullptr || key->kind != api::JsonKind::kString)
    return std::nullopt;
  const auto number = api::ReadInteger(*index, "index", {0, INT64_MAX});
  if (!number.ok() || !number->has_value() || key->text.size() != kKeyDigits) return std::nullopt;
  return AnswerPlace{static_cast<uint64_t>(**number), key->text};
}

struct SortEntry {
  uint64_t index;
  uint64_t number;  // of the line in the file
  uint64_t offset;
  uint64_t size;
};

}  // namespace

std::string LineKey(std::string_view input_line, std::string_view settings) {
  Sha256 hash;
  hash.Update(fmt::format("{} ", input_line.size()));  // framing: where the line ends
  hash.Update(input_line);
  hash.Update(settings);
  return hash.Finish().substr(0, kKeyDigits);
}

base::Result<std::unique_ptr<GenerateOutput>> GenerateOutput::Open(const std::string& path) {
  std::unique_ptr<GenerateOutput> output(new GenerateOutput(path));
  RETURN_IF_ERROR(output->lock_.Take(path, {}));
  ASSIGN_OR_RETURN(const auto reader, LineReader::Open(path, kOutputLineBytesMax));
  uint64_t keep_size = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<FileLine> line, reader->Next());
    if (!line || !line->terminated) break;  // a torn line is cut below
    const std::optional<AnswerPlace> place = ReadPlace(line->text);
    if (!place || output->found_.size() >= kAnswersMax) {
      return base::InvalidArgument(
          "--output", fmt::format("--output: line {} of '{}' is not an answer of 'plumb generate' "
                                  "or 'plumb rollout'; choose another file",
                                  line->number, path));
    }
    if (!output->found_.emplace(place->index, place->key).second) {
      return base::InvalidArgument(
          "--output",
          fmt::format("--output: line {} of '{}' answers index {} a second time; choose "
                      "another file",
                      line->number, path, place->index));
    }
    keep_size = line->offset + line->size;
  }
  ASSIGN_OR_RETURN(output->file_, base::AppendFile::Open(path, keep_size));
  return output;
}

base::Status GenerateOutput::Sort() {
  ASSIGN_OR_RETURN(auto reader, LineReader::Open(path_, kOutputLineBytesMax));
  std::vector<SortEntry> entries;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<FileLine> line, reader->Next());
    if (!line) break;
    const std::optional<AnswerPlace> place = ReadPlace(line->text);
    CHECK(place && line->terminated) << "line " << line->number;
    entries.push_back({place->index, line->number, line->offset, line->size});
  }
  if (std::ranges::is_sorted(entries, {}, &SortEntry::index)) return base::OkStatus();
  std::ranges::sort(entries, {}, &SortEntry::index);

  ASSIGN_OR_RETURN(const auto source, base::MappedFile::Open(path_));
  const std::string_view content(reinterpret_cast<const char*>(source->bytes().data()),
                                 source->bytes().size());
  const std::string fresh = path_ + ".sorted";
  ASSIGN_OR_RETURN(const auto target, base::AppendFile::Open(fresh, 0));
  for (const SortEntry& entry : entries) {
    RETURN_IF_ERROR(target->Append(content.substr(entry.offset, entry.size)));
  }
  RETURN_IF_ERROR(target->Flush());
  std::error_code error;
  std::filesystem::rename(fresh, path_, error);
  if (error) return base::Internal("cannot replace '" + path_ + "': " + error.message());
  return base::OkStatus();
}

}  // namespace plumb::cli
