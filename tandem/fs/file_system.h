#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem::fs {

/// A file open for reading at any place. Thread-safe.
class TANDEM_EXPORT ReadableFile {
 public:
  virtual ~ReadableFile();
  /// Reads from `offset` on until `out` is full or the file ends; returns how many bytes were read.
  virtual std::size_t read(std::uint64_t offset, std::span<char> out) const = 0;
};

/// A file being written from its beginning. Used by one thread at a time. Destroying it closes it
/// and hides errors.
class TANDEM_EXPORT WritableFile {
 public:
  virtual ~WritableFile();
  virtual void append(std::string_view bytes) = 0;
  /// Returns when everything appended would survive a crash.
  virtual void sync() = 0;
  virtual void close() = 0;
};

struct FileInfo {
  std::uint64_t size = 0;
  bool is_directory = false;
  bool is_regular = true;  ///< false also for devices, pipes and sockets
};

/// Where files are. Thread-safe. Failures are typed errors whose message is the path and the
/// system's reason, as TensorFlow words it: "data/train.csv; No such file or directory"
/// (NotFoundError), PermissionDeniedError, AlreadyExistsError, ResourceExhaustedError (disk full,
/// too many open files), FailedPreconditionError (a folder where a file is needed, or the reverse).
class TANDEM_EXPORT FileSystem {
 public:
  virtual ~FileSystem();
  virtual std::unique_ptr<ReadableFile> open(const std::string& path) = 0;
  /// Makes the file, or empties it.
  virtual std::unique_ptr<WritableFile> create(const std::string& path) = 0;
  virtual FileInfo stat(const std::string& path) = 0;
  /// Names in a folder, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::string& path) = 0;
  /// Removes a file or an empty folder.
  virtual void remove(const std::string& path) = 0;
  /// Replaces `to` in one step where it exists.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// The path that symbolic links lead to in the end; the path itself where there are none.
  virtual std::string follow_links(const std::string& path) { return path; }
  /// Gives `to` the permissions of `from`.
  virtual void copy_permissions(const std::string& from, const std::string& to);
  /// Makes a folder and those above it; none need be missing.
  virtual void make_directories(const std::string& path) = 0;
};

/// The file system that a path belongs to: the local one for plain paths and "file://". Throws
/// UnimplementedError for other schemes.
TANDEM_EXPORT FileSystem& file_system_of(std::string_view path);

/// The whole file. What has no size, as the files of /proc, is read up to 256 MiB:
/// ResourceExhaustedError beyond.
TANDEM_EXPORT std::string read_file(const std::string& path);

/// Writes a file so that others see the old content or the whole of the new: under a name of its
/// own beside it, and renamed when complete. The folder must exist. Links are followed, permissions
/// kept; what is no regular file (a device, a pipe) is written in place.
TANDEM_EXPORT void write_file(const std::string& path, std::string_view bytes);

TANDEM_EXPORT bool exists(const std::string& path);

}  // namespace tandem::fs
