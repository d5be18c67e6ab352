#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  /// The size, where opening the file has shown it: saves a request to a store.
  virtual std::optional<std::uint64_t> known_size() const { return std::nullopt; }
};

/// A file being written from its beginning. Used by one thread at a time. Destroying it closes it
/// and hides errors; an object store then keeps what the last `sync` made visible.
class TANDEM_EXPORT WritableFile {
 public:
  virtual ~WritableFile();
  virtual void append(std::string_view bytes) = 0;
  /// Returns when everything appended would survive a crash; on an object store it is visible from
  /// then on.
  virtual void sync() = 0;
  /// Makes everything appended visible to readers. A local file shows it at once; a store needs a
  /// request.
  virtual void flush() {}
  virtual void close() = 0;
};

/// New content for a file, in preparation: until `commit` the file's name has its old content, or
/// none, for every reader and after every crash. A checkpoint of several files stages them all,
/// seals them (in any order, on any threads), and commits them so that the one that names the
/// others comes last.
///
/// A local file is written under a name beside its own, synced, and renamed, and then its folder is
/// synced; an object store completes an upload. What is destroyed before its `commit` leaves
/// nothing behind. Used by one thread at a time.
class TANDEM_EXPORT StagedFile {
 public:
  virtual ~StagedFile();
  /// Throws FailedPreconditionError once the content is sealed.
  virtual void append(std::string_view bytes) = 0;
  /// Ends the content and does what takes long: a local file is synced, an upload is sent. When it
  /// returns, all of it is durable, though not under the file's name.
  virtual void seal() = 0;
  /// Gives the content the file's name in one step; when it returns, that is durable too. Seals
  /// first where `seal` was not called. After an error the name has the old or the new content,
  /// whole.
  virtual void commit() = 0;
};

struct FileInfo {
  std::uint64_t size = 0;
  bool is_directory = false;
  bool is_regular = true;  ///< false also for devices, pipes and sockets
};

struct DirectoryEntry {
  std::string name;
  FileInfo info;
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
  /// Goes on at the end of the file, or makes it. A store reads the old content and writes it
  /// again.
  virtual std::unique_ptr<WritableFile> append_to(const std::string& path);
  /// Begins new content for a file, which appears whole or not at all. The folder must exist. Links
  /// are followed, permissions kept; what is no regular file (a device, a pipe) is written in
  /// place. Made of `create`, `rename` and `sync_directory` unless the file system has a way of its
  /// own.
  virtual std::unique_ptr<StagedFile> stage(const std::string& path);
  virtual FileInfo stat(const std::string& path) = 0;
  /// Names in a folder, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::string& path) = 0;
  /// Those of `list` that begin with `prefix`; stores list no others.
  virtual std::vector<std::string> list_prefix(const std::string& path, const std::string& prefix);
  /// What `list` and `stat` say of each; stores ask once for all. A link that leads nowhere is an
  /// empty file.
  virtual std::vector<DirectoryEntry> list_entries(const std::string& path);
  /// Removes a file or an empty folder.
  virtual void remove(const std::string& path) = 0;
  /// Replaces `to` in one step where it exists. A store copies each object and removes the old
  /// one, those of a folder in the order of their names.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// False for a store of objects, where a folder is no thing of its own: it is there while an
  /// object's name begins with it, need not be made, and is not renamed in one step.
  virtual bool has_directories() const { return true; }
  /// Returns when the names that were made, replaced and removed in a folder would survive a crash.
  /// Does nothing where they always do.
  virtual void sync_directory(const std::string& path);
  /// The path that symbolic links lead to in the end; the path itself where there are none.
  virtual std::string follow_links(const std::string& path) { return path; }
  /// Gives `to` the permissions of `from`.
  virtual void copy_permissions(const std::string& from, const std::string& to);
  /// Makes a folder and those above it; none need be missing.
  virtual void make_directories(const std::string& path) = 0;
};

/// The file system that a path belongs to: the local one for plain paths and "file://", for other
/// schemes the one that is registered (tandem/fs/file_systems.h). Throws UnimplementedError for a
/// scheme that is not.
TANDEM_EXPORT FileSystem& file_system_of(std::string_view path);

/// The whole file. What has no size, as the files of /proc, is read up to 256 MiB:
/// ResourceExhaustedError beyond.
TANDEM_EXPORT std::string read_file(const std::string& path);

/// Writes a file so that others see the old content or the whole of the new, also after a crash:
/// stages it and commits it (FileSystem::stage).
TANDEM_EXPORT void write_file(const std::string& path, std::string_view bytes);

TANDEM_EXPORT bool exists(const std::string& path);

}  // namespace tandem::fs
