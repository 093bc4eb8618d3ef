// tests/golden/tokenizer/golden_files.h
// The files of this test: vocabularies with their vectors (fetch.py lays them in the folder given
// on the command line) and the small goldens committed beside this file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace plumb::golden {

// Where the fetched files are; set once by main.
extern std::string data_folder;
// This folder in the source tree; set once by main.
extern std::string source_folder;

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
