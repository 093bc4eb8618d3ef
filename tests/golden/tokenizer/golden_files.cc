// tests/golden/tokenizer/golden_files.cc: readers of the test's files, and its main, which takes
// the folders that run.sh finds.
#include "golden_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <iostream>

#include "base/disk.h"
#include "engine/vocabulary.h"
#include "model/gguf.h"

namespace plumb::golden {

std::string data_folder;
std::string source_folder;
std::string smollm2_file;

namespace {

constexpr uint64_t kFileBytesMax = 1u << 20;

std::vector<std::string> Split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

base::Result<std::vector<uint32_t>> ParseIds(std::string_view line) {
  std::vector<uint32_t> ids;
  for (const std::string& word : Split(line, " ")) {
    if (word.empty()) continue;
    uint32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size()) {
      return base::Corrupt(fmt::format("\"{}\" is no token id", word));
    }
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

std::string VocabularyFile(const std::string& name) {
  return data_folder + "/ggml-vocab-" + name + ".gguf";
}

std::string TestName(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

base::Result<std::unique_ptr<text::Tokenizer>> LoadTokenizer(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, model::Gguf::Open(path));
  ASSIGN_OR_RETURN(const text::VocabularySpec spec, engine::ReadVocabulary(*file));
  return text::Tokenizer::FromVocabulary(spec);
}

base::Result<std::vector<Vector>> LoadVectors(const std::string& name) {
  const std::string stem = VocabularyFile(name);
  ASSIGN_OR_RETURN(const std::string inputs, base::ReadFile(stem + ".inp", kFileBytesMax));
  ASSIGN_OR_RETURN(const std::string outputs, base::ReadFile(stem + ".out", kFileBytesMax));
  std::vector<std::string> texts = Split(inputs, "\n__ggml_vocab_test__\n");
  if (texts.back().empty()) texts.pop_back();  // most files end with a separator
  std::vector<std::string> lines = Split(outputs, "\n");
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (texts.size() != lines.size()) {
    return base::Corrupt(fmt::format("{} texts but {} lines of ids", texts.size(), lines.size()));
  }
  std::vector<Vector> vectors;
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSIGN_OR_RETURN(auto ids, ParseIds(lines[i]));
    vectors.push_back({texts[i], std::move(ids)});
  }
  return vectors;
}

std::vector<uint32_t> Ids(const std::vector<text::TokenId>& tokens) {
  std::vector<uint32_t> ids;
  for (const text::TokenId token : tokens) ids.push_back(base::Index(token));
  return ids;
}

}  // namespace plumb::golden

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 4) {
    std::cerr << "usage: tokenizer_golden DATA_FOLDER SOURCE_FOLDER SMOLLM2_FILE (see run.sh)\n";
    return 2;
  }
  plumb::golden::data_folder = argv[1];
  plumb::golden::source_folder = argv[2];
  plumb::golden::smollm2_file = argv[3];
  return RUN_ALL_TESTS();
}
