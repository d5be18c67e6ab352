#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/fs/file_system.h"

namespace tandem::fs {

/// Makes the file system of a scheme, when a path of it is first used. It gets paths as they were
/// given, "scheme://…".
using FileSystemFactory = std::function<std::unique_ptr<FileSystem>()>;

/// The file systems by scheme. The process has one, `registered_file_systems`; a test may create
/// its own. Thread-safe; file systems live as long as the registry.
class TANDEM_EXPORT FileSystemRegistry {
 public:
  /// Knows "file" (and paths without a scheme) and "ram", and the schemes of libtandem_stores.so:
  /// "http", "https", "s3" and "gs", which is opened when one of them is first used.
  FileSystemRegistry();
  ~FileSystemRegistry();
  FileSystemRegistry(const FileSystemRegistry&) = delete;
  FileSystemRegistry& operator=(const FileSystemRegistry&) = delete;

  /// Registers `scheme` ("s3", without "://"); replaces a factory that has made nothing yet, such
  /// as the default one. Throws InvalidArgumentError for what is no scheme or is "file",
  /// AlreadyExistsError for a scheme that is in use.
  void add(const std::string& scheme, FileSystemFactory factory);
  /// The file system of a path; throws UnimplementedError where its scheme is not registered.
  FileSystem& find(std::string_view path);
  /// Sorted.
  std::vector<std::string> schemes() const;

 private:
  struct Entry {
    FileSystemFactory factory;
    std::unique_ptr<FileSystem> files;  // null until first used
  };
  const std::unique_ptr<FileSystem> local_;
  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ TANDEM_GUARDED_BY(mutex_);
};

/// The registry that every path is looked up in.
TANDEM_EXPORT FileSystemRegistry& registered_file_systems();

/// FileSystemRegistry::add on `registered_file_systems`.
TANDEM_EXPORT void register_file_system(const std::string& scheme, FileSystemFactory factory);

}  // namespace tandem::fs
