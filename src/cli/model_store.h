// cli/model_store.h
// Where models lie on this machine: the cache folder, what is in it, what came with plumb, and what
// an argument "M" of a command means (an alias, a .gguf file, a Hugging Face folder). Read next:
// cli/model_pull.h, how a model gets there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/catalogue.h"
#include "cli/option_table.h"

namespace plumb::cli {

// PLUMB_CACHE, else XDG_CACHE_HOME/plumb, else HOME/.cache/plumb. kInvalidArgument: none is set.
base::Result<std::string> CacheFolder(const VariableReader& variables);

// The folders where models that come with a program lie: share/plumb/models beside it, as in a
// build, then ../share/plumb/models, as installed. By its place alone, so that an installed plumb
// may be moved.
std::vector<std::string> ShippedFolders(const std::string& program);
// The path of the running program, without links; empty when the system does not say.
std::string ThisProgram();

// A value type.
class ModelStore {
 public:
  explicit ModelStore(std::string cache_folder, std::vector<std::string> shipped_folders = {})
      : cache_folder_(std::move(cache_folder)), shipped_folders_(std::move(shipped_folders)) {}

  const std::string& cache_folder() const { return cache_folder_; }
  // "<cache>/models/<alias>", where the file and a pull's unfinished parts lie. Of one that is
  // shipped: "<shipped folder>/<alias>" in the first that has it, else in the last.
  std::string FolderOf(const CatalogueEntry& entry) const;
  // The file, or the folder of one that is shipped.
  std::string PathOf(const CatalogueEntry& entry) const;
  // Complete. A pull moves the file here only once its sha256 is right, so that the size suffices;
  // of a folder that is shipped only `plumb model verify` and loading know.
  bool Has(const CatalogueEntry& entry) const;
  // kNotFound: of one that it has not; how to get it.
  base::Status Missing(const CatalogueEntry& entry) const;

 private:
  std::string cache_folder_;
  std::vector<std::string> shipped_folders_;
};

// What "M" names: a row of the catalogue, a file or a folder. An alias wins over a file of that
// name.
struct ModelReference {
  const CatalogueEntry* entry = nullptr;  // null for a path
  std::string path;  // of the .gguf or the folder, there or not when entry is set
  std::string id;    // what clients call it: the alias, the file's stem or the folder's name
};

// kNotFound: neither an alias nor a file (names the nearest alias); kUnsupported: a folder that is
// not one of Hugging Face's.
base::Result<ModelReference> ResolveModel(const ModelStore& store, std::string_view model);

// An error of the readers of model files, which do not name the file: its path in front, and what
// may cure it behind. What is wrong with a file is kCorrupt, never wrong usage; only an option of
// ours out of its range ("context_max", "rows_max") stays kInvalidArgument. Ok stays ok.
base::Status InModel(const ModelReference& reference, const base::Status& status);

}  // namespace plumb::cli
