// cli/model_report.cc: layout of what is known of models, behind cli/model_report.h. Everything
// that comes out of a model file is made safe for a terminal first.
#include "cli/model_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/format.h"

namespace plumb::cli {
namespace {

constexpr size_t kTemplateLinesShown = 6;
constexpr size_t kTextBytesMax = 200;

// The template with line ends kept and other control characters replaced.
std::string TemplateText(std::string_view source, bool whole) {
  std::string text;
  size_t lines = 0;
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    if (!whole && lines == kTemplateLinesShown) {
      text += "  ... (--template prints all)\n";
      break;
    }
    text += "  " + Printable(source.substr(0, end), whole ? source.size() : kTextBytesMax) + "\n";
    source.remove_prefix(std::min(end + 1, source.size()));
    ++lines;
  }
  return text;
}

// A tokenizer.json is not read for this, so its entries are not counted.
std::string Tokenizer(const model::Inspection& found) {
  std::string text = Printable(found.tokenizer_model, 40);
  if (text.empty()) return "none";
  if (!found.tokenizer_pre.empty()) text += " (" + Printable(found.tokenizer_pre, 40) + ")";
  if (found.vocabulary_tokens != 0) text += fmt::format(", {} entries", found.vocabulary_tokens);
  return text;
}

std::string Mix(const model::Inspection& inspection) {
  uint64_t all = 0;
  for (const model::TypeShare& share : inspection.types) all += share.bytes;
  std::string text;
  for (const model::TypeShare& share : inspection.types) {
    const double percent =
        all == 0 ? 0 : 100.0 * static_cast<double>(share.bytes) / static_cast<double>(all);
    text +=
        fmt::format("{}{} {:.1f}% ({} tensors, {})", text.empty() ? "" : ", ",
                    Printable(share.type, 20), percent, share.tensors, FormatBytes(share.bytes));
  }
  return text;
}

// Where weights lie beside the file's numbers; of DeepSeek-V4.1 they may be elsewhere still.
bool HasWeights(const model::Inspection& found) { return found.tensors != 0; }

std::string RunsHere(const InspectView& view) {
  const model::Inspection& found = view.inspection;
  if (!found.unsupported.ok() && HasWeights(found)) {
    return "no: " + Printable(found.unsupported.message(), kTextBytesMax);
  }
  const std::string then =
      HasWeights(found) ? "" : "not yet: " + found.unsupported.message() + "; with them ";
  if (!found.deepseek || HeldInMemory(*found.deepseek, view.machine)) return then + "yes";
  return then + fmt::format(
                    "hardly: its {} of weights would be read from the disk again and again, for "
                    "want of memory ({})",
                    FormatBytes(found.deepseek->weight_bytes),
                    FormatBytes(view.machine.memory_bytes));
}

}  // namespace

std::string ListText(const ModelStore& store) {
  std::string text =
      fmt::format("{:<20} {:>8}  {:<5} {:<19} {}\n", "ALIAS", "SIZE", "HERE", "LICENCE", "WHAT");
  for (const CatalogueEntry& entry : Catalogue()) {
    const char* note = entry.alias == kDefaultModel ? " (default)"
                       : entry.shipped              ? " (comes with plumb)"
                                                    : "";
    text += fmt::format("{:<20} {:>8}  {:<5} {:<19} {}{}\n", entry.alias, FormatBytes(entry.size),
                        store.Has(entry) ? "yes" : "no", entry.licence, entry.description, note);
  }
  return text + "cache: " + store.cache_folder() + "\n";
}

std::string ListJson(const ModelStore& store) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CatalogueEntry& entry : Catalogue()) {
    list.push_back({{"alias", entry.alias},
                    {"description", entry.description},
                    {"licence", entry.licence},
                    {"size_bytes", entry.size},
                    {"download_bytes", entry.download_size},
                    {"comes_with_plumb", entry.shipped},
                    {"sha256", entry.sha256},
                    {"present", store.Has(entry)},
                    {"path", store.PathOf(entry)},
                    {"default", entry.alias == kDefaultModel}});
  }
  return list.dump(2) + "\n";
}

std::string InspectText(const InspectView& view) {
  const model::Inspection& found = view.inspection;
  const model::Config& config = found.config;
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("{:<14} {}\n", label, value);
  };
  line("model", view.reference.id);
  line("file",
       fmt::format("{} ({}{})", view.reference.path,
                   HasWeights(found) ? FormatBytes(found.file_bytes) + ", " : "", found.format));
  if (view.reference.entry != nullptr) line("licence", std::string(view.reference.entry->licence));
  line("architecture", Printable(config.architecture, kTextBytesMax));
  line("name", Printable(config.name, kTextBytesMax));
  line("parameters",
       FormatCount(found.parameters) +
           (HasWeights(found) ? fmt::format(" in {} tensors", found.tensors) : ", by config.json"));
  line("shape",
       fmt::format("{} layers, width {}, feed-forward {}, {} heads of {} ({} for keys and values)",
                   config.layers, config.embedding, config.feed_forward, config.heads,
                   config.head_dim, config.kv_heads));
  if (HasWeights(found)) line("quantisation", Mix(found));
  line("context", fmt::format("{} tokens", config.context_max));
  line("tokenizer", Tokenizer(found));
  const model::MemoryNeed& need = found.memory;
  line("memory", fmt::format("{} weights, {} a token of keys and values, {} workspace",
                             FormatBytes(need.weight_bytes), FormatBytes(need.token_bytes),
                             FormatBytes(need.workspace_bytes)));
  line("", fmt::format("{} for one sequence of {} tokens",
                       FormatBytes(model::MemoryFor(need, view.context_tokens, 1)),
                       view.context_tokens));
  if (found.deepseek) {
    for (const auto& [label, value] : DeepseekLines(*found.deepseek, view.machine)) {
      line(label, value);
    }
  }
  for (const model::TypeShare& share : found.types) {
    if (share.type != "F8_E4M3" || found.deepseek) continue;
    line("", fmt::format("(F8 weights become F32: {} in the file, {} in memory)",
                         FormatBytes(share.bytes), FormatBytes(share.elements * sizeof(float))));
  }
  line("runs here", RunsHere(view));
  if (found.deepseek) {
    line("template", "none needed: this family's chat encoding is built in");
  } else if (found.chat_template.empty()) {
    line("template", "none: completes text, does not chat");
  } else {
    line("template", fmt::format("{} bytes of Jinja", found.chat_template.size()));
    text += TemplateText(found.chat_template, view.whole_template);
  }
  return text;
}

std::string InspectJson(const InspectView& view) {
  const model::Inspection& found = view.inspection;
  const model::Config& config = found.config;
  nlohmann::ordered_json types = nlohmann::ordered_json::array();
  for (const model::TypeShare& share : found.types) {
    types.push_back({{"type", share.type},
                     {"tensors", share.tensors},
                     {"elements", share.elements},
                     {"bytes", share.bytes}});
  }
  const model::MemoryNeed& need = found.memory;
  nlohmann::ordered_json json = {
      {"id", view.reference.id},
      {"path", view.reference.path},
      {"file_bytes", found.file_bytes},
      {"format", found.format},
      {"architecture", config.architecture},
      {"name", config.name},
      {"parameters", found.parameters},
      {"tensors", found.tensors},
      {"layers", config.layers},
      {"embedding", config.embedding},
      {"feed_forward", config.feed_forward},
      {"heads", config.heads},
      {"kv_heads", config.kv_heads},
      {"head_dim", config.head_dim},
      {"vocabulary", config.vocabulary},
      {"context_max", config.context_max},
      {"types", types},
      {"tokenizer",
       {{"model", found.tokenizer_model},
        {"pre", found.tokenizer_pre},
        {"entries", found.vocabulary_tokens}}},
      {"memory",
       {{"weight_bytes", need.weight_bytes},
        {"token_bytes", need.token_bytes},
        {"page_bytes", need.page_bytes},
        {"workspace_bytes", need.workspace_bytes},
        {"context_tokens", view.context_tokens},
        {"total_bytes", model::MemoryFor(need, view.context_tokens, 1)}}},
      {"supported", found.unsupported.ok()},
      {"unsupported_because", found.unsupported.message()},
      {"chat_template", found.chat_template}};
  if (found.deepseek) json["deepseek"] = DeepseekJson(*found.deepseek, view.machine);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace plumb::cli
