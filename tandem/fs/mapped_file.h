#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tandem/core/export.h"

namespace tandem::fs {

/// The bytes of a whole file, read-only. A regular local file is mapped into memory, so that only
/// what is looked at is read, and processes share it; files of other file systems are read at once.
///
/// A mapped file must not be shortened while it is mapped: the process would be killed (SIGBUS)
/// where it reads beyond the new end. Replacing the file by renaming another over it, as all
/// writers of Tandem do, is safe. Thread-safe.
class TANDEM_EXPORT MappedFile {
 public:
  /// Throws what FileSystem::open and stat throw.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return bytes_; }

 private:
  std::string content_;  ///< of a file that is not mapped
  std::string_view bytes_;
  void* mapping_ = nullptr;
};

}  // namespace tandem::fs
