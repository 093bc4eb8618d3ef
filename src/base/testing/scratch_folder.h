// base/testing/scratch_folder.h
// A folder of a test's own, gone when it ends. Tests of one binary run as processes side by side,
// so a fixed file name in the common temporary folder is a race.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace plumb::base {

// In memory where there is such a folder, since some tests flush thousands of times. A resource
// type; for tests only.
class ScratchFolder {
 public:
  ScratchFolder() {
    static int count = 0;
    const std::filesystem::path memory = "/dev/shm";
    const auto parent =
        std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    path_ = parent / ("plumb_test." + std::to_string(getpid()) + "." + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string File(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace plumb::base
