#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/keras/session.h"

namespace tandem::keras::utils {

/// A bar of progress on std::cout, for loops of one's own, as fit draws it.
///
///     td::keras::utils::Progbar bar(100);
///     for (int step = 1; step <= 100; ++step) bar.update(step, {{"loss", loss}});
class TANDEM_EXPORT Progbar {
 public:
  using Values = std::vector<std::pair<std::string, double>>;
  /// `target`: how many steps there are; -1 if that is not known. `verbose`: 0 nothing, 1 a bar
  /// that writes over itself, 2 a line at the end.
  explicit Progbar(std::int64_t target, int verbose = 1);
  ~Progbar();
  Progbar(const Progbar&) = delete;
  Progbar& operator=(const Progbar&) = delete;
  /// The bar after `current` steps with means of the values so far. The last step, or `finalize`,
  /// ends the line.
  void update(std::int64_t current, const Values& values = {}, bool finalize = false);
  /// `n` steps more.
  void add(std::int64_t n, const Values& values = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What Verbose::kAuto means from now on: a bar on a terminal (interactive, the beginning), or a
/// line an epoch.
TANDEM_EXPORT void enable_interactive_logging();
TANDEM_EXPORT void disable_interactive_logging();
TANDEM_EXPORT bool is_interactive_logging_enabled();

using keras::clear_session;

}  // namespace tandem::keras::utils
