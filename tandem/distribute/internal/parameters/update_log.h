#pragma once

#include <atomic>
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

/// The state of a parameter server in a folder, as records: a state, and the updates since. Records
/// that arrive together reach the disk by one sync. Thread-safe; a thread of its own writes, unless
/// another way to write later is given.
///
/// A state is written among the updates that are applied meanwhile: `begin_state`,
/// `append_part`, `complete_state`. Until then the one before counts, with all updates behind it.
///
///     FOLDER/snapshot-3   log-3 begins with a state. By earlier versions: that state
///     FOLDER/log-3        TFRecords: a state's, or updates
///     FOLDER/log-4        updates since the server was started again
///     FOLDER/incoming-5   the state of another task, which is on its way here
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

  /// What `recover` calls.
  struct Reader {
    std::function<void(std::string_view)> snapshot;  ///< with the content of "snapshot-N"
    std::function<bool(std::string_view)> record;    ///< true if it is an update
    std::function<void()> state_end;                 ///< behind log N, before later ones
  };
  /// Reads the newest file "snapshot-N", then the records of its log and of later ones in order,
  /// before anything is written. False if there is none. A record that a crash has cut off ends its
  /// log. Throws DataLossError if the snapshot is damaged.
  bool recover(const Reader& reader);

  void append(Bytes update, Durable durable);
  void append_part(Bytes part, Durable durable);
  /// A new log, which begins with this record. What follows is for the state that it begins and, if
  /// that is this task's own and not `incoming`, for the one before as well. Later records are lost
  /// with an incoming state that is not completed.
  void begin_state(Bytes head, bool incoming, Durable durable);
  /// `snapshot` is the content of the file that says so. Older files are removed.
  void complete_state(Bytes snapshot, Durable durable);
  /// What follows is for the state before the one that was begun and not completed.
  void abandon_state();
  /// Whether an incoming state could not be written, so that the folder has an older one.
  bool has_lost_state() const { return lost_state_; }
  /// Bytes of updates since the last state was begun, those that `recover` has read included.
  std::uint64_t bytes_since_state() const;

 private:
  enum class Kind { kUpdate, kPart, kHead, kIncomingHead, kComplete, kAbandon };
  struct Item {
    Kind kind;
    Bytes bytes;
    Durable durable;
  };
  void add(Item item) TANDEM_EXCLUDES(mutex_);
  void write_all();
  void write(std::deque<Item> items);
  void write(const Item& item, bool& is_synced);
  void sync_log(bool& is_synced);
  void begin_log(const char* kind);
  void write_snapshot(const Bytes& state);
  void remove_older();
  std::string path(const char* kind, std::int64_t generation) const;

  const std::string folder_;
  const RunLater run_later_;
  fs::FileSystem& files_;
  // These belong to the writing thread.
  std::int64_t generation_ = 0;
  std::unique_ptr<fs::WritableFile> log_;
  bool has_state_ = false;        // the log begins with one that is not complete
  bool is_incoming_ = false;      // and that is another task's
  std::exception_ptr lost_ = {};  // why records of an incoming state are not there
  std::atomic<bool> lost_state_{false};
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> waiting_ TANDEM_GUARDED_BY(mutex_);
  std::uint64_t bytes_ TANDEM_GUARDED_BY(mutex_) = 0;
  bool closing_ TANDEM_GUARDED_BY(mutex_) = false;
  std::thread writer_;                // without `run_later_`
  std::shared_ptr<UpdateLog*> self_;  // of works that run later: they do nothing once it is gone
};

}  // namespace tandem::distribute
