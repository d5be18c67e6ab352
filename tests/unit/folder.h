#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

namespace tandem {

/// A folder for one test, empty at first.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("tandem_test_" + std::to_string(getpid()) + "_" + std::to_string(next_++))) {
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::size_t files() const {
    const std::filesystem::directory_iterator all(path_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

 private:
  static inline std::atomic<int> next_{0};
  std::filesystem::path path_;
};

}  // namespace tandem
