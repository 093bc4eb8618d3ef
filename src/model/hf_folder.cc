// model/hf_folder.cc
// A name out of the index is checked before it meets the disk; where a link leads is checked after.
// Links are not refused outright, since Hugging Face's cache consists of them:
// models--org--name/snapshots/<commit>/config.json -> ../../blobs/<hash>.
#include "model/hf_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "base/disk.h"
#include "model/hf_json.h"

namespace plumb::model {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Corrupt;
using base::Result;
using base::Status;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
// Parsed, JSON takes eight times as much memory; 16 MiB list some 150,000 tensors.
constexpr uint64_t kIndexBytesMax = 16u << 20;
// In alphabetical order.
constexpr std::string_view kSideFiles[] = {"additional_chat_templates/default.jinja",
                                           "additional_chat_templates/tool_use.jinja",
                                           "chat_template.jinja",
                                           "config.json",
                                           "engram_token_map.json",
                                           "generation_config.json",
                                           "tokenizer.json",
                                           "tokenizer_config.json"};
// The one folder in a model's that is looked into; as the transformers library writes it.
constexpr std::string_view kTemplates = "additional_chat_templates/";

bool PlainName(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return c >= 0x21 && c <= 0x7e && c != '/' && c != '\\' && c != ':';
         });
}

std::string Shown(std::string_view name) {
  std::string shown(name.substr(0, 80));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return shown;
}

bool Within(const fs::path& file, const fs::path& folder) { return file.parent_path() == folder; }

// The files that an index lists.
Result<std::set<std::string>> ListedFiles(std::string_view index) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseHfJson(index, kIndex));
  const HfObject object(json, kIndex);
  const nlohmann::json* map = object.Find("weight_map");
  if (map == nullptr || !map->is_object()) return object.Wrong("weight_map", "an object");
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) return object.Wrong("weight_map", "a map to file names");
    const std::string& name = file.get_ref<const std::string&>();
    if (!PlainName(name) || !name.ends_with(".safetensors")) {
      return Corrupt(fmt::format("{}: '{}' is not the plain name of a .safetensors file", kIndex,
                                 Shown(name)))
          .WithField(Shown(tensor));
    }
    files.insert(name);
    if (files.size() > kHfFilesMax) {
      return base::Unsupported(fmt::format("{} lists more than {} files", kIndex, kHfFilesMax));
    }
  }
  if (files.empty()) return object.Wrong("weight_map", "a list of tensors");
  return files;
}

// Which file holds a tensor.
using Places = std::map<std::string_view, std::string_view>;

// `index`, which ListedFiles has read, and the files hold the same tensors.
Status CheckIndex(std::string_view index, const Places& places) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseHfJson(index, kIndex));
  const nlohmann::json& map = json["weight_map"];
  for (const auto& [tensor, file] : map.items()) {
    const auto found = places.find(tensor);
    if (found != places.end() && found->second == file.get_ref<const std::string&>()) continue;
    return Corrupt(fmt::format("{} lists the tensor {} in {}, which does not hold it", kIndex,
                               Shown(tensor), file.get_ref<const std::string&>()))
        .WithField(Shown(tensor));
  }
  for (const auto& [tensor, file] : places) {
    if (map.contains(tensor)) continue;
    return Corrupt(
               fmt::format("{} does not list the tensor {}, which is in {}", kIndex, tensor, file))
        .WithField(std::string(tensor));
  }
  return base::OkStatus();
}

}  // namespace

Result<HfFolder> HfFolder::Open(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::canonical(path, error);
  if (error || !fs::is_directory(whole, error)) {
    return base::NotFound("the model folder does not exist");
  }
  HfFolder folder(whole.string());
  if (!fs::exists(whole / "config.json", error)) {
    return base::Unsupported("the folder has no config.json: it is not a Hugging Face model")
        .WithField("config.json");
  }
  return folder;
}

std::string HfFolder::Name() const {
  const fs::path path(path_);
  if (path.parent_path().filename() != "snapshots") return path.filename().string();
  const std::string cache = path.parent_path().parent_path().filename().string();
  const size_t cut = cache.rfind("--");
  return cut == std::string::npos ? cache : cache.substr(cut + 2);
}

Result<std::string> HfFolder::PathOf(std::string_view name) const {
  const bool is_template = name.starts_with(kTemplates);
  if (!PlainName(is_template ? name.substr(kTemplates.size()) : name)) {
    return Corrupt(fmt::format("'{}' is not a plain file name", Shown(name)))
        .WithField(Shown(name));
  }
  const fs::path folder(path_);
  std::error_code error;
  const fs::path file = fs::canonical(folder / name, error);
  if (error) {
    return base::NotFound(fmt::format("the folder has no file {}", name))
        .WithField(std::string(name));
  }
  const bool cached = folder.parent_path().filename() == "snapshots" &&
                      Within(file, folder.parent_path().parent_path() / "blobs");
  const fs::path home = is_template ? (folder / kTemplates).parent_path() : folder;
  if (!Within(file, home) && !cached) {
    return Corrupt(fmt::format("{} is a link that leaves the model's folder", name))
        .WithField(std::string(name));
  }
  // Asked before anyone opens it, since opening a pipe would wait.
  if (!fs::is_regular_file(file, error)) {
    return Corrupt(fmt::format("{} is not a regular file", name)).WithField(std::string(name));
  }
  return file.string();
}

Result<std::string> HfFolder::Read(std::string_view name, uint64_t size_max) const {
  ASSIGN_OR_RETURN(const std::string path, PathOf(name));
  auto text = base::ReadFile(path, size_max);
  if (text.ok()) return text;
  // Its message holds the path.
  const bool large = text.status().code() == Code::kInvalidArgument;
  return Status(large ? Code::kCorrupt : text.status().code(),
                fmt::format("{} {}", name,
                            large ? fmt::format("is larger than {} bytes", size_max)
                                  : std::string("cannot be read")))
      .WithField(std::string(name));
}

Result<std::optional<std::string>> HfFolder::ReadIfAny(std::string_view name,
                                                       uint64_t size_max) const {
  auto text = Read(name, size_max);
  if (text.ok()) return std::optional(std::move(text).value());
  if (text.status().code() == Code::kNotFound) return std::optional<std::string>();
  return text.status();
}

Result<HfTextFiles> HfFolder::TextFiles(std::string& config) const {
  ASSIGN_OR_RETURN(config, Read("config.json", kHfSmallFileBytesMax));
  HfTextFiles text{.config = config};
  ASSIGN_OR_RETURN(text.tokenizer, ReadIfAny("tokenizer.json", kHfTokenizerBytesMax));
  ASSIGN_OR_RETURN(text.tokenizer_config, ReadIfAny("tokenizer_config.json", kHfSmallFileBytesMax));
  ASSIGN_OR_RETURN(text.generation_config,
                   ReadIfAny("generation_config.json", kHfSmallFileBytesMax));
  ASSIGN_OR_RETURN(text.chat_template, ReadIfAny("chat_template.jinja", kHfSmallFileBytesMax));
  if (!text.chat_template) {
    ASSIGN_OR_RETURN(text.chat_template,
                     ReadIfAny("additional_chat_templates/default.jinja", kHfSmallFileBytesMax));
  }
  ASSIGN_OR_RETURN(text.tool_template,
                   ReadIfAny("additional_chat_templates/tool_use.jinja", kHfSmallFileBytesMax));
  return text;
}

// The names of the weight files; the text of the index, where it says what they hold, goes to
// `index`. An index beside a file that holds the whole model may speak of others, which then nobody
// reads.
Result<std::set<std::string>> HfFolder::WeightFiles(std::string* index) const {
  ASSIGN_OR_RETURN(std::optional<std::string> text, ReadIfAny(kIndex, kIndexBytesMax));
  const std::set<std::string> whole = {std::string(kSingle)};
  const auto single = PathOf(kSingle);
  if (single.ok()) {
    if (!text) return whole;
    ASSIGN_OR_RETURN(const std::set<std::string> listed, ListedFiles(*text));
    if (index != nullptr && listed == whole) *index = *std::move(text);
    return whole;
  }
  if (single.status().code() != Code::kNotFound) return single.status();
  if (!text) {
    return base::Unsupported(fmt::format("the folder has neither {} nor {}", kSingle, kIndex))
        .WithField(std::string(kSingle));
  }
  ASSIGN_OR_RETURN(std::set<std::string> files, ListedFiles(*text));
  if (index != nullptr) *index = *std::move(text);
  return files;
}

Result<std::vector<std::unique_ptr<Safetensors>>> HfFolder::OpenWeights() const {
  std::string index;
  ASSIGN_OR_RETURN(const std::set<std::string> files, WeightFiles(&index));
  std::vector<std::unique_ptr<Safetensors>> opened;
  Places places;
  for (const std::string& name : files) {
    ASSIGN_OR_RETURN(const std::string path, PathOf(name));
    auto file = Safetensors::Open(path, name);
    if (!file.ok()) {
      return Status(file.status().code(), fmt::format("{}: {}", name, file.status().message()))
          .WithField(name);
    }
    for (const SafetensorsTensor& tensor : (*file)->tensors()) {
      const auto [at, fresh] = places.emplace(tensor.name, name);
      if (fresh) continue;
      return Corrupt(fmt::format("the tensor {} is in {} and in {}", tensor.name, at->second, name))
          .WithField(tensor.name);
    }
    opened.push_back(std::move(file).value());
  }
  if (!index.empty()) RETURN_IF_ERROR(CheckIndex(index, places));
  return opened;
}
Result<std::vector<std::string>> HfFolder::FileNames() const {
  ASSIGN_OR_RETURN(const std::set<std::string> weights, WeightFiles(nullptr));
  std::vector<std::string> names(weights.begin(), weights.end());
  for (const std::string_view name : kSideFiles) {
    const auto path = PathOf(name);
    if (path.ok())
      names.emplace_back(name);
    else if (path.status().code() != Code::kNotFound)
      return path.status();
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace plumb::model
