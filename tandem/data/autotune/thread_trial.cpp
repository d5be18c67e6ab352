#include "tandem/data/autotune/thread_trial.h"

#include <algorithm>
#include <cmath>

namespace tandem::data {
namespace {

// The first failure may be chance: others took the cores, or another stage held this one up.
constexpr int kFirstRest = 2, kLastRest = 16;
// Elements for each thread that a measured pace needs.
constexpr unsigned kEnough = 2;
// Twice the threads are worth it from this share of the possible gain.
constexpr double kPays = 0.5;

}  // namespace

int ThreadTrial::most(int threads, unsigned made, double seconds) {
  if (threads != threads_) {
    fewer_ = threads > threads_ && pace_ > 0 ? threads_ : 0;
    slower_ = pace_;
    threads_ = threads;
    made_ = made;
    seconds_ = pace_ = 0;
    return threads;
  }
  seconds_ += seconds;
  const unsigned count = made - made_;
  if (count < kEnough * static_cast<unsigned>(threads) || seconds_ <= 0) return threads;
  pace_ = count / seconds_;
  made_ = made;
  seconds_ = 0;
  if (fewer_ > 0) {
    const double gain = pace_ / slower_ - 1, hoped = static_cast<double>(threads) / fewer_ - 1;
    if (gain < kPays * hoped) {
      // A gain of a few in a hundred may be chance.
      const double worth = std::ceil(fewer_ * (0.95 + std::max(gain, 0.0)));
      worth_ = std::clamp(static_cast<int>(worth), fewer_, threads);
      rest_ = next_rest_;
      next_rest_ = std::min(2 * next_rest_, kLastRest);
    } else {
      next_rest_ = kFirstRest;
    }
    fewer_ = 0;
  }
  if (worth_ > 0 && rest_-- > 0) return worth_;
  worth_ = 0;
  return 2 * threads;
}

}  // namespace tandem::data
