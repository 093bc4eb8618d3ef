// tests/golden/tokenizer/golden_files.h
// The files of this test: vocabularies with their vectors (fetch.sh lays them in the folder given
// on the command line) and the small goldens committed beside this file.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace plumb::golden {

// Set once by main: the fetched files, this folder in the source tree, SmolLM2's GGUF file.
extern std::string data_folder;
extern std::string source_folder;
extern std::string smollm2_file;

// Every vocabulary that comes with vectors.
constexpr const char* kVocabularies[] = {"bert-bge",  "command-r", "deepseek-coder", "deepseek-llm",
                                         "falcon",    "gemma-4",   "gpt-2",          "llama-bpe",
                                         "llama-spm", "mpt",       "phi-3",          "qwen2",
                                         "qwen35",    "refact",    "starcoder"};
std::string VocabularyFile(const std::string& name);
// A parameter as a test's name.
std::string TestName(const testing::TestParamInfo<const char*>& info);

struct Vector {
  std::string text;
  std::vector<uint32_t> ids;
};

// The tokenizer of a GGUF file, built exactly as the service builds it.
base::Result<std::unique_ptr<text::Tokenizer>> LoadTokenizer(const std::string& path);

// NAME.inp and NAME.out of llama.cpp: texts with a separator line between, a line of ids for each.
base::Result<std::vector<Vector>> LoadVectors(const std::string& name);

std::vector<uint32_t> Ids(const std::vector<text::TokenId>& tokens);

}  // namespace plumb::golden
