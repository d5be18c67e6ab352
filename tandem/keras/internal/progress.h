#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tandem/keras/fit_options.h"
#include "tandem/keras/logs.h"

namespace tandem::keras::internal {

/// Whether kAuto may be a bar (utils::enable_interactive_logging).
bool interactive_logging();

/// kAuto decided: the bar on a terminal, else a line an epoch.
Verbose resolve(Verbose verbose);

/// Prints to std::cout how far a pass over data is, as Keras does: a bar that writes over itself,
/// or one line at the end.
class Progress {
 public:
  /// `steps` of -1: not known.
  Progress(Verbose verbose, std::int64_t steps);

  /// True if the bar should be drawn again: some time has gone by since it was drawn last. Costs
  /// one reading of the clock.
  bool due();
  /// After `step` steps.
  void draw(std::int64_t step, const Logs& logs);
  void finish(std::int64_t step, const Logs& logs);
  /// Counts the first step apart: it includes the tracing, so the time a step leaves it out.
  void step_done(std::int64_t step) {
    if (step == 1) after_first_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string bar(std::int64_t step) const;
  std::string time_per_step(std::int64_t step) const;
  double seconds_per_step(std::int64_t step) const;
  double elapsed() const;
  void put(const std::string& line, const std::string& visible);

  Verbose verbose_;
  std::int64_t steps_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point after_first_ = start_;
  Clock::time_point drawn_{};
  std::size_t width_ = 0;
};

}  // namespace tandem::keras::internal
