// cli/model_store.cc
// Paths and presence, behind cli/model_store.h.
#include "cli/model_store.h"

#include <filesystem>
#include <vector>

#include "cli/format.h"
#include "cli/suggest.h"
#include "model/hf_folder.h"

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

std::vector<std::string> ShippedFolders(const std::string& program) {
  if (program.empty()) return {};
  const fs::path folder = fs::path(program).parent_path();
  return {(folder / "share/plumb/models").string(),
          (folder.parent_path() / "share/plumb/models").string()};
}

std::string ThisProgram() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "" : program.string();
}

std::string ModelStore::FolderOf(const CatalogueEntry& entry) const {
  const std::string alias(entry.alias);
  if (!entry.shipped) return cache_folder_ + "/models/" + alias;
  std::string path = alias;
  for (const std::string& folder : shipped_folders_) {
    path = folder + "/" + alias;
    std::error_code error;
    if (fs::is_directory(path, error)) break;
  }
  return path;
}

std::string ModelStore::PathOf(const CatalogueEntry& entry) const {
  return entry.shipped ? FolderOf(entry) : FolderOf(entry) + "/" + std::string(entry.file);
}

bool ModelStore::Has(const CatalogueEntry& entry) const {
  std::error_code error;
  if (entry.shipped) return fs::is_regular_file(PathOf(entry) + "/config.json", error);
  const uintmax_t size = fs::file_size(PathOf(entry), error);
  return !error && size == entry.size;
}

base::Status ModelStore::Missing(const CatalogueEntry& entry) const {
  const std::string alias(entry.alias);
  if (!entry.shipped) {
    return base::NotFound("'" + alias + "' is not on this machine; run 'plumb model pull " + alias +
                          "'");
  }
  return base::NotFound("'" + alias + "' comes with plumb, but is not at '" + PathOf(entry) +
                        "'; install plumb again");
}

base::Result<ModelReference> ResolveModel(const ModelStore& store, std::string_view model) {
  if (const CatalogueEntry* entry = FindInCatalogue(model)) {
    return ModelReference{entry, store.PathOf(*entry), std::string(entry->alias)};
  }
  const fs::path path{std::string(model)};
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const base::Result<model::HfFolder> folder = model::HfFolder::Open(path.string());
    if (!folder.ok()) {
      return base::Status(folder.status().code(),
                          "'" + Printable(model, 200) + "': " + folder.status().message());
    }
    return ModelReference{nullptr, path.string(), Printable(folder->Name(), 128)};
  }
  if (fs::exists(path, error)) {
    return ModelReference{nullptr, path.string(), Printable(path.stem().string(), 128)};
  }
  const std::vector<std::string> aliases = CatalogueAliases();
  return base::NotFound("there is no model '" + Printable(model, 200) +
                        "': neither a file nor an alias" + DidYouMean(model, aliases) +
                        (DidYouMean(model, aliases).empty() ? "; see 'plumb model list'" : ""));
}

base::Status InModel(const ModelReference& reference, const base::Status& status) {
  if (status.ok()) return status;
  const bool of_option = status.field() == "context_max" || status.field().ends_with("rows_max") ||
                         status.field() == "--replay";
  const bool of_file = status.code() == base::Code::kInvalidArgument && !of_option;
  const base::Code code = of_file ? base::Code::kCorrupt : status.code();
  const bool has_path = status.message().find(reference.path) != std::string::npos;
  std::string message =
      has_path ? status.message() : "'" + reference.path + "': " + status.message();
  if (code == base::Code::kCorrupt && reference.entry != nullptr) {
    message += reference.entry->shipped
                   ? "; install plumb again"
                   : "; delete it and run 'plumb model pull " + reference.id + "'";
  }
  return base::Status(code, std::move(message)).WithField(status.field());
}

}  // namespace plumb::cli
