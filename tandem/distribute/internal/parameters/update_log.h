#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/bytes.h"
#include "tandem/fs/file_system.h"

namespace tandem::distribute {

/// The state of a parameter server in a folder: a snapshot, and a log of the updates since. Records
/// that arrive together reach the disk by one sync. Thread-safe; a thread of its own writes, unless
/// another way to write later is given.
///
///     FOLDER/snapshot-3   the state when log-3 began
///     FOLDER/log-3        TFRecords, one for each update
///     FOLDER/log-4        those since the server was started again
class UpdateLog {
 public:
  /// Called when a record would survive a crash, or with the reason why it might not.
  using Durable = std::function<void(const std::exception_ptr& error)>;

  /// Does some work later, on the thread that uses the log, as a simulated disk does.
  using RunLater = std::function<void(std::function<void()> work)>;

  explicit UpdateLog(std::string folder, RunLater run_later = {});
  /// Writes what is waiting; with `run_later` it is lost, as in a crash.
  ~UpdateLog();
  UpdateLog(const UpdateLog&) = delete;
  UpdateLog& operator=(const UpdateLog&) = delete;

  /// Reads the newest snapshot, then the records after it in order, before anything is written.
  /// False if there is none. A record that a crash has cut off ends its log. Throws DataLossError
  /// if the snapshot is damaged.
  bool recover(const std::function<void(std::string_view)>& snapshot,
               const std::function<void(std::string_view)>& record);

  void append(Bytes record, Durable durable);
  /// A snapshot of the state after all records that were appended so far; older files are removed
  /// once it is durable.
  void snapshot(Bytes state, Durable durable);
  /// Bytes of records since the last snapshot, those that `recover` has read included.
  std::uint64_t bytes_since_snapshot() const;

 private:
  struct Item {
    Bytes bytes;
    bool is_snapshot = false;
    Durable durable;
  };
  void add(Item item) TANDEM_EXCLUDES(mutex_);
  void write_all();
  void write(std::deque<Item> items);
  void begin_log();
  void write_snapshot(const Bytes& state);
  std::string path(const char* kind, std::int64_t generation) const;

  const std::string folder_;
  const RunLater run_later_;
  fs::FileSystem& files_;
  std::int64_t generation_ = 0;            // of the writing thread
  std::unique_ptr<fs::WritableFile> log_;  // of the writing thread
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> waiting_ TANDEM_GUARDED_BY(mutex_);
  std::uint64_t bytes_ TANDEM_GUARDED_BY(mutex_) = 0;
  bool closing_ TANDEM_GUARDED_BY(mutex_) = false;
  std::thread writer_;                // without `run_later_`
  std::shared_ptr<UpdateLog*> self_;  // of works that run later: they do nothing once it is gone
};

}  // namespace tandem::distribute
