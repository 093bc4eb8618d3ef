// cli/model_store.h
// Where models lie on this machine: the cache folder, what is in it, and what an argument "M" of a
// command means (an alias, a .gguf file). Read next: cli/model_pull.h, how a model gets there.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/catalogue.h"
#include "cli/option_table.h"

namespace plumb::cli {

// PLUMB_CACHE, else XDG_CACHE_HOME/plumb, else HOME/.cache/plumb. kInvalidArgument: none is set.
base::Result<std::string> CacheFolder(const VariableReader& variables);

// A value type.
class ModelStore {
 public:
  explicit ModelStore(std::string cache_folder) : cache_folder_(std::move(cache_folder)) {}

  const std::string& cache_folder() const { return cache_folder_; }
  // "<cache>/models/<alias>", where the file and a pull's unfinished parts lie.
  std::string FolderOf(const CatalogueEntry& entry) const;
  std::string PathOf(const CatalogueEntry& entry) const;
  // Complete. A pull moves the file here only once its sha256 is right, so that the size suffices.
  bool Has(const CatalogueEntry& entry) const;

 private:
  std::string cache_folder_;
};

// What "M" names: a row of the catalogue, or a file. An alias wins over a file of that name.
struct ModelReference {
  const CatalogueEntry* entry = nullptr;  // null for a path
  std::string path;                       // of the .gguf, there or not when entry is set
  std::string id;                         // what clients call it: the alias, or the file's stem
};

// kNotFound: neither an alias nor a file (names the nearest alias); kUnsupported: a folder (of
// safetensors).
base::Result<ModelReference> ResolveModel(const ModelStore& store, std::string_view model);

}  // namespace plumb::cli
