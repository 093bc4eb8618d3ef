// cli/model_store.cc
// Paths and presence, behind cli/model_store.h.
#include "cli/model_store.h"

#include <filesystem>

#include "cli/format.h"
#include "cli/suggest.h"

namespace plumb::cli {
namespace fs = std::filesystem;

base::Result<std::string> CacheFolder(const VariableReader& variables) {
  const auto value = [&](const char* name) { return variables(name).value_or(""); };
  if (const std::string cache = value("PLUMB_CACHE"); !cache.empty()) return cache;
  const std::string xdg = value("XDG_CACHE_HOME");
  if (xdg.starts_with('/')) return xdg + "/plumb";
  if (const std::string home = value("HOME"); !home.empty()) return home + "/.cache/plumb";
  return base::InvalidArgument(
      "PLUMB_CACHE", "PLUMB_CACHE: set it to a folder for models (HOME is not set either)");
}

std::string ModelStore::FolderOf(const CatalogueEntry& entry) const {
  return cache_folder_ + "/models/" + std::string(entry.alias);
}

std::string ModelStore::PathOf(const CatalogueEntry& entry) const {
  return FolderOf(entry) + "/" + std::string(entry.file);
}

bool ModelStore::Has(const CatalogueEntry& entry) const {
  std::error_code error;
  const uintmax_t size = fs::file_size(PathOf(entry), error);
  return !error && size == entry.size;
}

base::Result<ModelReference> ResolveModel(const ModelStore& store, std::string_view model) {
  if (const CatalogueEntry* entry = FindInCatalogue(model)) {
    return ModelReference{entry, store.PathOf(*entry), std::string(entry->alias)};
  }
  const fs::path path{std::string(model)};
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return base::Unsupported(
        "'" + Printable(model, 200) +
        "' is a folder; safetensors folders cannot be loaded yet, give a .gguf "
        "file or an alias (see 'plumb model list')");
  }
  if (fs::exists(path, error)) {
    return ModelReference{nullptr, path.string(), Printable(path.stem().string(), 128)};
  }
  const std::vector<std::string> aliases = CatalogueAliases();
  return base::NotFound("there is no model '" + Printable(model, 200) +
                        "': neither a file nor an alias" + DidYouMean(model, aliases) +
                        (DidYouMean(model, aliases).empty() ? "; see 'plumb model list'" : ""));
}

}  // namespace plumb::cli
