#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/fs/file_system.h"

namespace tandem::fs {

/// A file that appears whole or not at all, whatever file system it is in: a StagedFile
/// (FileSystem::stage) that is opened by its path alone. Errors name `path`. Used by one thread at
/// a time.
class TANDEM_EXPORT AtomicFile {
 public:
  explicit AtomicFile(const std::string& path) : file_(file_system_of(path).stage(path)) {}
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(std::string_view bytes) { file_->append(bytes); }
  /// Makes the content durable, not yet under the name; `finish` is then quick.
  void seal() { file_->seal(); }
  /// Would survive a crash; replaces what had the name.
  void finish() {
    file_->commit();
    file_.reset();
  }

 private:
  std::unique_ptr<StagedFile> file_;
};

}  // namespace tandem::fs
