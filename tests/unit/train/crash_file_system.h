#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/fs/file_system.h"

namespace tandem {

/// Everything that was done to files, in order, so that it can be cut at any place.
struct FileLog {
  enum class Kind { kCreate, kAppend, kSync, kRename, kRemove, kSyncDirectory };
  struct Operation {
    Kind kind;
    int file = -1;     ///< number of the content, for the first three
    std::string path;  ///< for the others, and of kCreate
    std::string to;    ///< of kRename
    std::string bytes;
  };
  std::vector<Operation> operations;
};

/// Files as they are found after a crash.
using CrashedFiles = std::map<std::string, std::string>;

/// What may be there if the machine stopped after the first `count` operations: what was synced,
/// and of the rest whatever `random` says. Bytes that were not synced are there, cut off, zeros or
/// gone; names that were made, replaced or removed since their folder was synced changed or did
/// not, each for itself.
CrashedFiles crash(const FileLog& log, std::size_t count, std::mt19937& random);

/// Files in memory that note what is done to them. Thread-safe.
class RecordingFileSystem final : public fs::FileSystem {
 public:
  std::unique_ptr<fs::ReadableFile> open(const std::string& path) override;
  std::unique_ptr<fs::WritableFile> create(const std::string& path) override;
  fs::FileInfo stat(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  void remove(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void sync_directory(const std::string& path) override;
  void make_directories(const std::string& path) override;

  FileLog log() const;
  std::size_t operations() const;
  /// Forgets all files, and has these instead.
  void reset(const CrashedFiles& files);

 private:
  friend class RecordedFile;
  void note(FileLog::Operation operation) TANDEM_REQUIRES(mutex_);

  mutable Mutex mutex_;
  FileLog log_ TANDEM_GUARDED_BY(mutex_);
  std::vector<std::string> contents_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, int> names_ TANDEM_GUARDED_BY(mutex_);
  std::set<std::string> folders_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem
