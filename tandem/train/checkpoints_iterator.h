#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"

namespace tandem::train {

struct CheckpointsIteratorOptions {
  std::chrono::nanoseconds min_interval = {};  ///< between two checkpoints that are given
  /// How long a new checkpoint is waited for; nothing: without end.
  std::optional<std::chrono::nanoseconds> timeout = std::nullopt;
  /// Called after each timeout: true ends the iteration, false waits again. Without one a timeout
  /// ends it.
  std::function<bool()> timeout_fn = {};
};

/// Waits for the checkpoints that another process writes to a folder, to evaluate each: only the
/// latest at a time, so that some may be left out.
///
///     td::train::checkpoints_iterator checkpoints("/tmp/run", {.timeout = std::chrono::hours(1)});
///     while (const auto path = checkpoints.next()) evaluate(*path);
///
/// Used by one thread at a time.
class TANDEM_EXPORT checkpoints_iterator {  // NOLINT: TensorFlow's name
 public:
  explicit checkpoints_iterator(String checkpoint_dir, CheckpointsIteratorOptions options = {});
  /// The path of the next one; nothing once the wait is over. A CancellationScope of the thread
  /// ends it with CancelledError.
  std::optional<std::string> next();

 private:
  std::string directory_;
  CheckpointsIteratorOptions options_;
  std::optional<std::string> last_;
  std::chrono::steady_clock::time_point given_ = {};
};

}  // namespace tandem::train
