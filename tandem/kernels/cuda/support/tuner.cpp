#include "tandem/kernels/cuda/support/tuner.h"

#include <limits>

#include "tandem/core/internal/cache_folder.h"
#include "tandem/core/version.h"
#include "tandem/device/cuda/internal/stream.h"

namespace tandem::cuda {
namespace {

constexpr double kMaxSecondsOfProblem = 0.2, kMaxSecondsOfProcess = 5;
constexpr double kNever = std::numeric_limits<double>::infinity();

// kNever if that cannot be run. Throws Failure if the GPU is lost.
double seconds_of(const std::function<void(CUstream)>& issue) {
  StreamState& stream = StreamState::current();
  try {
    return stream.measure(issue);
  } catch (const Failure&) {
    if (!stream.gpu().lost().empty()) throw;
    return kNever;
  }
}

}  // namespace

Tuner::Tuner(const Gpu& gpu, const std::string& library)
    : enabled_(may_measure()),
      choices_(enabled_ ? internal::cache_folder() : std::string(),
               gpu.model() + "; " + library + "; tandem " + TANDEM_VERSION_STRING) {}

std::optional<std::string> Tuner::known(const std::string& problem) {
  if (!enabled_) return std::nullopt;
  const auto choice = choices_.find(problem);
  return choice ? std::optional(choice->way) : std::nullopt;
}

std::size_t Tuner::choose(const std::string& problem, std::size_t count,
                          const std::function<void(std::size_t, CUstream_st*)>& issue,
                          const std::function<std::string(std::size_t)>& name) {
  {
    std::lock_guard lock(mutex_);
    if (!enabled_ || count < 2 || spent_ > kMaxSecondsOfProcess) return 0;
  }
  std::size_t best = 0;
  double best_seconds = kNever, total = 0;
  bool all_ran = true;
  for (std::size_t i = 0; i < count && total < kMaxSecondsOfProblem; ++i) {
    const double seconds = seconds_of([&](CUstream stream) { issue(i, stream); });
    if (seconds == kNever) {
      all_ran = false;
      continue;
    }
    total += StreamState::kRunsOfMeasure * seconds;
    if (seconds < best_seconds) {
      best = i;
      best_seconds = seconds;
    }
  }
  // One that failed now may do in another process.
  if (all_ran) choices_.keep(problem, {name(best), best_seconds});
  std::lock_guard lock(mutex_);
  spent_ += total;
  return best;
}

}  // namespace tandem::cuda
