#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/variable.h"
#include "tandem/train/checkpoint.h"

namespace tandem::train {

struct CheckpointManagerOptions {
  /// So many are kept, the oldest are deleted; nothing: all.
  std::optional<std::int64_t> max_to_keep = std::nullopt;
  /// One of those that would be deleted is kept for each span of so many hours.
  std::optional<double> keep_checkpoint_every_n_hours = std::nullopt;
  String checkpoint_name = "ckpt";
  /// Counts training steps; for `checkpoint_interval`.
  Variable step_counter = {};
  /// `save` does nothing unless so many steps have gone by since the last one.
  std::optional<std::int64_t> checkpoint_interval = std::nullopt;
  /// Initialises what is trained, where there is no checkpoint.
  std::function<void()> init_fn = {};
  /// Seconds since 1970, for tests.
  std::function<double()> clock = {};
};

struct SaveOptions {
  std::optional<std::int64_t> checkpoint_number = std::nullopt;  ///< the next one by default
  bool check_interval = true;
  CheckpointOptions checkpoint = {};
};

/// Keeps the last checkpoints of a folder, as tf.train.CheckpointManager, whose folders it goes on
/// with and the reverse. The file `checkpoint` never names what is not durable: whenever the
/// machine stops, it names a checkpoint that is whole.
///
///     td::train::CheckpointManager manager(checkpoint, "/tmp/run", {.max_to_keep = 3});
///     manager.restore_or_initialize();
///     while (training) { step(); manager.save(); }
///
/// A handle; used by one thread at a time.
class TANDEM_EXPORT CheckpointManager {
 public:
  /// Throws InvalidArgumentError for numbers that are not positive, and for an interval without a
  /// counter.
  CheckpointManager(Checkpoint checkpoint, String directory,
                    const CheckpointManagerOptions& options = {});

  /// Writes "DIRECTORY/NAME-N", then the state file, then deletes what is too old. Returns the
  /// path, or nothing where the interval is not over.
  std::optional<std::string> save(const SaveOptions& options = {}) const;
  /// Waits for a save in the background, and throws if it failed.
  void sync() const;

  /// Restores the newest checkpoint, or calls `init_fn`. One that is damaged or incomplete is
  /// reported by a warning that names file and tensor, and the one before it is taken. Returns the
  /// path, or nothing where there was none. Throws DataLossError if there are some and all are
  /// damaged.
  std::optional<std::string> restore_or_initialize() const;

  /// The newest one, in its place in the folder's list; nothing if there is none.
  std::optional<std::string> latest_checkpoint() const;
  /// Those that are managed, oldest first. One that is being written in the background comes in
  /// when it is there.
  std::vector<std::string> checkpoints() const;
  const std::string& directory() const;
  const Checkpoint& checkpoint() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::train
