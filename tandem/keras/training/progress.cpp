#include "tandem/keras/internal/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "tandem/core/error.h"

namespace tandem::keras::internal {
namespace {

constexpr int kBarWidth = 20;
constexpr std::chrono::milliseconds kInterval(50);

template <class... Args>
std::string printed(const char* format, Args... args) {
  char text[64];
  std::snprintf(text, sizeof(text), format, args...);
  return text;
}

std::string repeated(const char* text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// "12/123" with the first number as wide as the second.
std::string count_text(std::int64_t step, std::int64_t steps) {
  if (steps < 0) return printed("%7lld/Unknown", static_cast<long long>(step));
  const int digits = static_cast<int>(std::to_string(steps).size());
  return printed("%*lld/%lld", digits, static_cast<long long>(step), static_cast<long long>(steps));
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  if (seconds > 3600)
    return printed("%lld:%02lld:%02lld", whole / 3600, whole % 3600 / 60, whole % 60);
  if (seconds > 60) return printed("%lld:%02lld", whole / 60, whole % 60);
  return printed("%llds", whole);
}

}  // namespace

Verbose resolve(Verbose verbose) {
  if (verbose != Verbose::kAuto) return verbose;
  return interactive_logging() && isatty(STDOUT_FILENO) ? Verbose::kProgressBar
                                                        : Verbose::kLinePerEpoch;
}

Progress::Progress(Verbose verbose, std::int64_t steps) : verbose_(verbose), steps_(steps) {}

bool Progress::due() {
  return verbose_ == Verbose::kProgressBar && Clock::now() - drawn_ >= kInterval;
}

double Progress::elapsed() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

double Progress::seconds_per_step(std::int64_t step) const {
  if (step == 0) return 0;
  if (step == 1) return elapsed();
  return std::chrono::duration<double>(Clock::now() - after_first_).count() /
         static_cast<double>(step - 1);
}

std::string Progress::time_per_step(std::int64_t step) const {
  const double seconds = seconds_per_step(step);
  if (seconds >= 1 || seconds == 0) return printed("%.0fs/step", seconds);
  if (seconds >= 1e-3) return printed("%.0fms/step", seconds * 1e3);
  return printed("%.0fus/step", seconds * 1e6);
}

void Progress::put(const std::string& line, const std::string& visible) {
  const std::size_t width = visible.size();
  std::cout << '\r' << line;
  if (width < width_) std::cout << std::string(width_ - width, ' ');
  width_ = width;
}

void Progress::draw(std::int64_t step, const Logs& logs) {
  if (verbose_ != Verbose::kProgressBar) return;
  drawn_ = Clock::now();
  const std::string count = count_text(step, steps_);
  std::string rest = " ";
  if (steps_ >= 0 && step < steps_) {
    rest += duration_text(seconds_per_step(step) * static_cast<double>(steps_ - step));
  } else {
    rest += printed("%.0fs", elapsed());
  }
  rest += " " + time_per_step(step);
  if (!logs.empty()) rest += " - " + logs.to_string();
  std::string line = "\x1b[1m" + count + "\x1b[0m";
  if (steps_ > 0) {
    const auto done =
        static_cast<int>(std::min<std::int64_t>(kBarWidth, kBarWidth * step / steps_));
    line += " \x1b[32m" + repeated("━", done) + "\x1b[0m\x1b[37m" +
            repeated("━", kBarWidth - done) + "\x1b[0m";
  }
  put(line + rest, count + std::string(kBarWidth + 1, ' ') + rest);
  std::cout.flush();
}

void Progress::finish(std::int64_t step, const Logs& logs) {
  if (verbose_ == Verbose::kSilent) return;
  if (steps_ < 0) steps_ = step;
  if (verbose_ == Verbose::kProgressBar) {
    draw(step, logs);
    std::cout << '\n';
    return;
  }
  std::cout << count_text(step, steps_) << " - " << printed("%.0fs", elapsed()) << " - "
            << time_per_step(step);
  if (!logs.empty()) std::cout << " - " << logs;
  std::cout << '\n';
  std::cout.flush();
}

}  // namespace tandem::keras::internal
