// tests/fuzz/replay.cc
// Runs a fuzz target over every file of the folders given: what the fuzzer found once stays a test
// in builds without libFuzzer. Fails when there is nothing to run.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>

#include "base/disk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  constexpr uint64_t kInputBytesMax = 16u << 20;
  size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      auto input = plumb::base::ReadFile(entry.path().string(), kInputBytesMax);
      if (!input.ok()) {
        std::cerr << input.status().message() << "\n";
        return 1;
      }
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input->data()), input->size());
      ++count;
    }
  }
  std::cout << count << " inputs replayed\n";
  return count == 0 ? 1 : 0;
}
