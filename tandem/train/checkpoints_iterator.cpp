#include "tandem/train/checkpoints_iterator.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/train/checkpoint_state.h"

namespace tandem::train {
namespace {

using Clock = std::chrono::steady_clock;

void check_cancelled() {
  const auto& cancellation = thread_context().cancellation;
  if (cancellation && cancellation->cancelled())
    throw CancelledError("the wait for a checkpoint was cancelled");
}

}  // namespace

checkpoints_iterator::checkpoints_iterator(String checkpoint_dir,
                                           CheckpointsIteratorOptions options)
    : directory_(std::move(checkpoint_dir)), options_(std::move(options)) {}

std::optional<std::string> checkpoints_iterator::next() {
  constexpr std::chrono::milliseconds kLook(20);
  Clock::time_point begin = Clock::now();
  for (;;) {
    check_cancelled();
    const std::optional<std::string> latest = latest_checkpoint(directory_);
    const bool due = !last_ || Clock::now() - given_ >= options_.min_interval;
    if (latest && latest != last_ && due) {
      last_ = latest;
      given_ = Clock::now();
      return latest;
    }
    if (options_.timeout && Clock::now() - begin >= *options_.timeout) {
      if (!options_.timeout_fn || options_.timeout_fn()) return std::nullopt;
      begin = Clock::now();
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace tandem::train
