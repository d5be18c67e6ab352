#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "tandem/device/cuda/internal/choice_file.h"

struct CUstream_st;

namespace tandem::cuda {

class Gpu;

/// Chooses among the ways in which a library can compute a problem: runs each on the operands at
/// hand, once, and keeps what was the fastest in a file, so that later processes measure nothing
/// (docs/kernel-choice.md). TANDEM_TUNING=0 turns it off. Thread-safe.
class Tuner {
 public:
  /// For a kind of GPU and a version of a library.
  Tuner(const Gpu& gpu, const std::string& library);

  bool enabled() const { return enabled_; }
  /// What was chosen for a problem before, by this process or an earlier one, as `name` called it.
  std::optional<std::string> known(const std::string& problem);
  /// The fastest of `count` ways; the first one, which the library expects to be that, where
  /// nothing is measured any more. `issue` issues a way's work to the stream and throws Failure if
  /// that way cannot run. Only within a kernel. Throws Failure if the GPU is lost.
  std::size_t choose(const std::string& problem, std::size_t count,
                     const std::function<void(std::size_t, CUstream_st*)>& issue,
                     const std::function<std::string(std::size_t)>& name);

 private:
  const bool enabled_;
  ChoiceFile choices_;
  std::mutex mutex_;
  double spent_ = 0;  // seconds; guarded by mutex_
};

}  // namespace tandem::cuda
