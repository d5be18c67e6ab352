#include "tandem/fs/file_systems.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/fs/internal/local_file_system.h"
#include "tandem/fs/internal/ram_file_system.h"
#include "tandem/fs/paths.h"
#include "tandem/fs/stores.h"

namespace tandem::fs {

FileSystemRegistry::FileSystemRegistry() : local_(std::make_unique<LocalFileSystem>()) {
  add("ram", [] { return std::make_unique<RamFileSystem>(); });
  for (const char* scheme : {"http", "https", "s3", "gs"}) {
    add(scheme, [scheme] { return make_store(scheme); });
  }
}

FileSystemRegistry::~FileSystemRegistry() = default;

void FileSystemRegistry::add(const std::string& scheme, FileSystemFactory factory) {
  if (scheme.empty() || scheme == "file" || scheme_of(scheme + "://") != scheme || !factory) {
    throw InvalidArgumentError(
        cat("A file system cannot be registered for '", scheme,
            "': a scheme has letters, digits, '+', '-' and '.', is not \"file\", and needs a "
            "factory."));
  }
  const MutexLock lock(mutex_);
  Entry& entry = entries_[scheme];
  if (entry.files) {
    throw AlreadyExistsError(
        cat("The scheme '", scheme,
            "' is in use: register its file system before the first path of it is used."));
  }
  entry.factory = std::move(factory);
}

FileSystem& FileSystemRegistry::find(std::string_view path) {
  if (is_local(path)) return *local_;
  const std::string_view scheme = scheme_of(path);
  const MutexLock lock(mutex_);
  const auto found = entries_.find(scheme);
  if (found == entries_.end()) {
    // TensorFlow's words.
    throw UnimplementedError(cat("File system scheme '", scheme, "' not implemented (file: '", path,
                                 "'). Copy the file to a local folder first, or register the "
                                 "scheme by td::io::register_file_system."));
  }
  Entry& entry = found->second;
  if (!entry.files) entry.files = entry.factory();
  if (!entry.files) {
    throw InternalError(cat("The factory of the scheme '", scheme, "' made no file system."));
  }
  return *entry.files;
}

std::vector<std::string> FileSystemRegistry::schemes() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [scheme, entry] : entries_) all.push_back(scheme);
  return all;
}

FileSystemRegistry& registered_file_systems() {
  static NeverDestroyed<FileSystemRegistry> registry;
  return *registry;
}

void register_file_system(const std::string& scheme, FileSystemFactory factory) {
  registered_file_systems().add(scheme, std::move(factory));
}

FileSystem& file_system_of(std::string_view path) { return registered_file_systems().find(path); }

}  // namespace tandem::fs
