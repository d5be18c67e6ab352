#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tandem/fs/file_system.h"

namespace tandem::fs {

/// A staged file of a file system that renames: it is written under a name of its own beside the
/// file. Errors name the file that was asked for.
class RenamedFile final : public StagedFile {
 public:
  RenamedFile(FileSystem& files, std::string path);
  ~RenamedFile() override;

  void append(std::string_view bytes) override;
  void seal() override;
  void commit() override;

 private:
  template <class Work>
  void on_behalf(Work work);

  FileSystem& files_;
  const std::string path_;
  std::string target_;      // `path_` without links
  std::string unfinished_;  // empty: written in place, or renamed
  bool replaces_ = false;
  std::unique_ptr<WritableFile> file_;  // null once sealed
};

}  // namespace tandem::fs
