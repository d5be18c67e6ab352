#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/fs/file_system.h"

namespace tandem::fs {

/// The files of this machine, through its system calls.
class LocalFileSystem final : public FileSystem {
 public:
  std::unique_ptr<ReadableFile> open(const std::string& path) override;
  std::unique_ptr<WritableFile> create(const std::string& path) override;
  std::unique_ptr<WritableFile> append_to(const std::string& path) override;
  FileInfo stat(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  void remove(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  std::string follow_links(const std::string& path) override;
  void copy_permissions(const std::string& from, const std::string& to) override;
  void sync_directory(const std::string& path) override;
  void make_directories(const std::string& path) override;
};

}  // namespace tandem::fs
