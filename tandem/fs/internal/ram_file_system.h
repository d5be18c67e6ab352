#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/fs/file_system.h"

namespace tandem::fs {

/// Files in the memory of this process, "ram://folder/file". A folder is there once it is made or a
/// file lies in it. An open file stays readable when its name
/// is removed or replaced.
class RamFileSystem final : public FileSystem {
 public:
  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  FileInfo stat(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  void remove(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void make_directories(const std::string& path) override;

  struct Content;

 private:
  bool is_directory(const std::string& key) const TANDEM_REQUIRES(mutex_);
  std::vector<std::string> names_in(const std::string& key) const TANDEM_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Content>> files_ TANDEM_GUARDED_BY(mutex_);
  std::set<std::string> directories_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::fs
