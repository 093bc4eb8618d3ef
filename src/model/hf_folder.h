// model/hf_folder.h
// The files of a Hugging Face folder, by name. The folder may come from a stranger: a name in it
// leads to a regular file of the folder, or of the one folder of templates in it, and nowhere else.
// Internal to the readers of such folders. Read next: model/hf_checkpoint.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/hf_text.h"
#include "model/safetensors.h"

namespace plumb::model {

constexpr uint32_t kHfFilesMax = 4096;  // safetensors files of a model

// A value type; reads the disk when asked. Messages name files, never paths.
class HfFolder {
 public:
  // kNotFound: no such folder; kUnsupported: it has no config.json.
  static base::Result<HfFolder> Open(const std::string& path);

  // A small file. kNotFound; kCorrupt: larger than `size_max`, not a regular file, or a link that
  // leaves the folder (a link to the blobs of Hugging Face's own cache is followed).
  base::Result<std::string> Read(std::string_view name, uint64_t size_max) const;
  // Nothing when there is none.
  base::Result<std::optional<std::string>> ReadIfAny(std::string_view name,
                                                     uint64_t size_max) const;

  // config.json into `config`, which the result borrows, and the other texts that are there.
  // kCorrupt, kNotFound: as Read.
  base::Result<HfTextFiles> TextFiles(std::string& config) const;

  // The model's safetensors: model.safetensors, else what model.safetensors.index.json lists, in
  // order of their names. Every tensor is there once, and an index of these files lists each.
  // kUnsupported: neither is there, or too many files; kCorrupt: a file's name in the index is no
  // plain name, a file is missing or damaged; field() names file or tensor.
  base::Result<std::vector<std::unique_ptr<Safetensors>>> OpenWeights() const;
  // Names of those files, and of every other file of the model that decides an answer (config.json,
  // tokenizer.json, ...), as far as they are there, in alphabetical order: what a fingerprint
  // covers. Errors as above.
  base::Result<std::vector<std::string>> FileNames() const;
  // The file of such a name, which may be empty. kNotFound, kCorrupt: as Read.
  base::Result<std::string> PathOf(std::string_view name) const;

  // What people call the model: the folder's name, or the repository's in Hugging Face's cache.
  std::string Name() const;

 private:
  explicit HfFolder(std::string path) : path_(std::move(path)) {}
  base::Result<std::set<std::string>> WeightFiles(std::string* index) const;

  std::string path_;  // without links, absolute
};

}  // namespace plumb::model
