// cli/kept_digests.cc
// The text of such a file, read with suspicion, and how many there may be; behind
// cli/kept_digests.h.
#include "cli/kept_digests.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/disk.h"
#include "base/folder.h"
#include "cli/sha256.h"

namespace plumb::cli {
namespace {

constexpr std::string_view kHeader = "plumb digests 1\n";
constexpr std::string_view kEnd = "end ";
constexpr size_t kHexDigits = 64;
constexpr uint64_t kBytesMax = 2u << 20;  // more than kFilesMax lines take
constexpr size_t kEntriesSeenMax = 16 * size_t{KeptDigests::kModelsMax};

bool IsDigest(std::string_view text) {
  return text.size() == kHexDigits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string DigestOf(std::string_view text) {
  Sha256 hash;
  hash.Update(text);
  return hash.Finish();
}

// What stands before the next `end`, which goes with it; nothing when there is none.
std::optional<std::string_view> TakeUntil(std::string_view& text, char end) {
  const size_t at = text.find(end);
  if (at == text.npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

template <typename Number>
bool TakeNumber(std::string_view& line, Number& number) {
  const auto word = TakeUntil(line, ' ');
  if (!word) return false;
  const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), number);
  return error == std::errc() && end == word->data() + word->size();
}

std::optional<KeptDigest> ParseLine(std::string_view line) {
  KeptDigest file;
  base::FileStamp& stamp = file.stamp;
  const auto path = TakeUntil(line, ' ');
  if (!path || !IsDigest(*path) || !TakeNumber(line, stamp.size) ||
      !TakeNumber(line, stamp.modified_ns) || !TakeNumber(line, stamp.changed_ns) ||
      !TakeNumber(line, stamp.inode) || !TakeNumber(line, stamp.device) || !IsDigest(line)) {
    return std::nullopt;
  }
  file.path_digest = *path;
  file.digest = line;
  return file;
}

}  // namespace

std::string KeptDigests::FileOf(const std::string& path) const {
  return folder_ + "/" + DigestOf(path);
}

std::vector<KeptDigest> KeptDigests::Load(const std::string& path) const {
  if (folder_.empty()) return {};
  const auto content = base::ReadFile(FileOf(path), kBytesMax);
  if (!content.ok()) return {};
  std::string_view text = *content;
  const size_t end = text.rfind(kEnd);
  if (!text.starts_with(kHeader) || end == text.npos ||
      text.substr(end + kEnd.size()) != DigestOf(text.substr(0, end)) + "\n") {
    return {};
  }
  text = text.substr(kHeader.size(), end - kHeader.size());
  std::vector<KeptDigest> files;
  while (const auto line = TakeUntil(text, '\n')) {
    auto file = ParseLine(*line);
    if (!file || files.size() == kFilesMax) return {};
    files.push_back(*std::move(file));
  }
  return files;
}

base::Status KeptDigests::Save(const std::string& path, std::span<const KeptDigest> files) const {
  if (folder_.empty()) return base::OkStatus();
  if (files.size() > kFilesMax) {
    return base::InvalidArgument(
        "files", fmt::format("the model has {} files; at most {} digests are kept", files.size(),
                             kFilesMax));
  }
  std::string text(kHeader);
  for (const auto& [path_digest, stamp, digest] : files) {
    text += fmt::format("{} {} {} {} {} {} {}\n", path_digest, stamp.size, stamp.modified_ns,
                        stamp.changed_ns, stamp.inode, stamp.device, digest);
  }
  const std::string checksum = DigestOf(text);
  text += fmt::format("{}{}\n", kEnd, checksum);
  RETURN_IF_ERROR(base::MakeFolder(folder_));
  RETURN_IF_ERROR(base::WriteFileAtomic(FileOf(path), text));
  return DropOldest();
}

// Of ours alone, what a write that broke off has left among them.
base::Status KeptDigests::DropOldest() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   base::ListFolder(folder_, kEntriesSeenMax));
  std::vector<std::pair<int64_t, std::string>> ours;  // when written, where
  for (const std::string& name : names) {
    if (!IsDigest(std::string_view(name).substr(0, kHexDigits))) continue;
    const std::string file = folder_ + "/" + name;
    const auto stamp = base::StampFile(file);
    if (stamp.ok()) ours.emplace_back(stamp->modified_ns, file);
  }
  std::sort(ours.begin(), ours.end());
  for (size_t i = 0; i + kModelsMax < ours.size(); ++i) {
    RETURN_IF_ERROR(base::RemoveFile(ours[i].second));
  }
  return base::OkStatus();
}

}  // namespace plumb::cli
