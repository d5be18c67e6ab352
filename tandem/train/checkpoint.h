#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/variable.h"
#include "tandem/train/trackable.h"

namespace tandem::train {

namespace internal {
class Restoration;
}

struct CheckpointOptions {
  /// `save` and `write` return when the values are taken, which copies nothing: a later step that
  /// changes a variable copies it then. A thread writes; `sync` waits for it, and so does the next
  /// save.
  bool enable_async = false;
  /// Bytes in a data file; more are spread over several, which are written side by side. 0: one
  /// file. A single tensor is never cut.
  std::int64_t max_shard_size = 0;
  /// A data file for the values of each device.
  bool shard_by_device = false;
  /// Values under names of variables, as TensorFlow 1's Saver has them, with what optimizers keep
  /// under the names of its optimizers: "dense/kernel/Adam_1", "beta1_power". All that is saved
  /// must be variables, whose names differ. `restore` reads such files as they are.
  bool legacy_names = false;
  /// This process writes the share of one worker: "PREFIX_temp/part-00001-of-00004". When all have
  /// written theirs, one calls `merge_checkpoints`.
  int worker = 0;
  int num_workers = 1;
  /// Called with the checkpoint's path when it is written, by the thread that wrote it.
  std::vector<std::function<void(const std::string& path)>> write_callbacks = {};
};

struct RestoreOptions {
  /// Objects that have another path in the checkpoint: `{{"encoder", "model/layers/0"}}`. Of a
  /// checkpoint without objects: how names of our variables begin, and how they do there.
  std::map<std::string, std::string> renamed = {};
  /// All values are checked before the first object changes. False: each value is checked as it is
  /// read and given to its object at once, in about half the time; where a file turns out to be
  /// damaged, objects before that place have their new values.
  bool check_first = true;
};

/// What became of a `restore`. Objects may get their values later, when they are made: see
/// Checkpoint. What does not fit throws FailedPreconditionError, where TensorFlow has an
/// AssertionError, and names it. Unless one of these is called, values that no object took are
/// logged when the checkpoint is restored again or destroyed. After a restore of no checkpoint the
/// three assertions throw.
class TANDEM_EXPORT LoadStatus {
 public:
  /// Each object has its value, and each value in the checkpoint was taken.
  const LoadStatus& assert_consumed() const;
  /// Each object that there is now has its value; the checkpoint may hold more.
  const LoadStatus& assert_existing_objects_matched() const;
  /// At least one object besides the root is in the checkpoint.
  const LoadStatus& assert_nontrivial_match() const;
  /// That values are left over is meant.
  const LoadStatus& expect_partial() const;

  /// Keys in the checkpoint that no object took.
  std::vector<std::string> unused_values() const;
  /// Paths of objects of ours that the checkpoint had no value for.
  std::vector<std::string> objects_without_value() const;

 private:
  friend class Checkpoint;
  struct State;
  explicit LoadStatus(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Values of named objects, saved together and restored together, as tf.train.Checkpoint: each
/// reads the other's files.
///
///     td::train::Checkpoint checkpoint({{"model", model}, {"step", step}, {"iterator", it}});
///     std::string path = checkpoint.save("/tmp/run/ckpt");        // "/tmp/run/ckpt-1"
///     checkpoint.restore(path).assert_consumed();
///
/// A restore that comes before an object is complete gives the rest its values as it is made: the
/// weights of a layer when that is built, what an optimizer keeps when it is first used, and what
/// `track` adds. A handle; used by one thread at a time, the last copy waits for what is being
/// written.
class TANDEM_EXPORT Checkpoint {
 public:
  Checkpoint(std::initializer_list<Tracked::Part> parts = {});
  explicit Checkpoint(std::vector<Tracked::Part> parts);

  /// Adds an object, which gets its value if a restored checkpoint has one. Throws
  /// InvalidArgumentError if another one has the name.
  void track(const std::string& name, const Tracked& part) const;

  /// Writes "PREFIX-N" with the next number, and makes it the folder's latest (the file
  /// `checkpoint`). Returns the path. Makes folders that are missing.
  std::string save(const String& prefix, const CheckpointOptions& options = {}) const;
  /// Writes PREFIX itself, and counts nothing. The checkpoint is there, durably, whole or not at
  /// all; one that it replaces stays until then.
  std::string write(const String& prefix, const CheckpointOptions& options = {}) const;
  /// Waits for what is being written, and throws if that failed.
  void sync() const;

  /// Gives objects their values; nothing is changed unless all fit. Throws NotFoundError if there
  /// is no checkpoint, DataLossError naming file and tensor where it is damaged,
  /// InvalidArgumentError naming the object where dtypes or shapes differ.
  LoadStatus restore(const String& path, const RestoreOptions& options = {}) const;
  /// `checkpoint.restore(manager.latest_checkpoint())`: where there is none yet nothing changes.
  template <std::same_as<std::optional<std::string>> Path>
  LoadStatus restore(const Path& path, const RestoreOptions& options = {}) const {
    return path ? restore(String(*path), options) : initialization_only();
  }
  /// The number of saves goes on from what is restored, as `restore` has it, only there.
  LoadStatus read(const std::string& path, const RestoreOptions& options = {}) const;

  /// How often it was saved.
  const Variable& save_counter() const;

  // ---- For CheckpointManager. ----
  /// As `write`; `then` runs when the checkpoint is durable.
  std::string write(const String& prefix, const CheckpointOptions& options,
                    std::function<void()> then) const;

 private:
  friend class LoadStatus;
  struct State;
  LoadStatus initialization_only() const;
  LoadStatus start_restoring(const std::string& path, const RestoreOptions& options) const;
  std::shared_ptr<State> state_;
};

/// Makes one checkpoint of what `num_workers` processes wrote for `prefix` (see
/// CheckpointOptions::worker). Throws NotFoundError or InvalidArgumentError naming the part that is
/// missing.
TANDEM_EXPORT void merge_checkpoints(const String& prefix, int num_workers);

}  // namespace tandem::train
