#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/fs/file_system.h"

namespace tandem::fs {

/// A file that appears whole or not at all: it is written under a name of its own beside `path` and
/// takes that name when it is finished; without that nothing remains. A link stays and what it
/// leads to is replaced, with the permissions it had; what is no regular file (a device, a pipe) is
/// written in place. Errors name `path`. Used by one thread at a time.
class TANDEM_EXPORT AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(std::string_view bytes);
  /// Would survive a crash; replaces what had the name.
  void finish();

 private:
  template <class Work>
  void on_behalf(Work work);

  std::string path_;
  std::string target_;      ///< `path_` without links
  std::string unfinished_;  ///< empty: written in place
  bool replaces_ = false;
  std::unique_ptr<WritableFile> file_;
};

}  // namespace tandem::fs
