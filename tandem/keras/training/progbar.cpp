#include "tandem/keras/progbar.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "tandem/core/error.h"
#include "tandem/core/string.h"
#include "tandem/keras/fit_options.h"
#include "tandem/keras/internal/progress.h"

namespace tandem::keras {
namespace {

std::atomic<bool> interactive{true};

Verbose verbose_of(int level) {
  if (level <= 0) return Verbose::kSilent;
  return level == 1 ? Verbose::kProgressBar : Verbose::kLinePerEpoch;
}

}  // namespace

Verbosity::Verbosity(int level) : verbose_(verbose_of(level)) {
  if (level < 0 || level > 2) {
    throw InvalidArgumentError(
        cat("`verbose` must be 0 (silent), 1 (a bar), 2 (a line an epoch) "
            "or \"auto\", got ",
            level, "."));
  }
}

Verbosity::Verbosity(const char* text) : verbose_(Verbose::kAuto) {
  if (String(text) != "auto") {
    throw InvalidArgumentError(
        cat("`verbose` must be 0 (silent), 1 (a bar), 2 (a line an epoch) "
            "or \"auto\", got \"",
            text, "\"."));
  }
}

namespace internal {
bool interactive_logging() { return interactive; }
}  // namespace internal

namespace utils {

void enable_interactive_logging() { interactive = true; }
void disable_interactive_logging() { interactive = false; }
bool is_interactive_logging_enabled() { return interactive; }

struct Progbar::State {
  State(std::int64_t steps, int verbose) : target(steps), progress(verbose_of(verbose), steps) {}

  Logs means() const {
    Logs logs;
    for (const auto& [name, sum] : sums) logs.set(name, sum.first / sum.second);
    return logs;
  }

  std::int64_t target;
  std::int64_t seen = 0;
  std::map<std::string, std::pair<double, double>> sums;  // of values, and of their steps
  internal::Progress progress;
  bool finished = false;
};

Progbar::Progbar(std::int64_t target, int verbose)
    : state_(std::make_unique<State>(target, verbose)) {}
Progbar::~Progbar() = default;

void Progbar::update(std::int64_t current, const Values& values, bool finalize) {
  State& s = *state_;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, current - s.seen));
  for (const auto& [name, value] : values) {
    s.sums[name].first += value * steps;
    s.sums[name].second += steps;
  }
  s.seen = current;
  s.progress.step_done(current);
  if (s.finished) return;
  if (finalize || current == s.target) {
    s.finished = true;
    s.progress.finish(current, s.means());
  } else if (s.progress.due()) {
    s.progress.draw(current, s.means());
  }
}
void Progbar::add(std::int64_t n, const Values& values) { update(state_->seen + n, values); }

}  // namespace utils
}  // namespace tandem::keras
