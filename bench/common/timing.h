// How a single row is timed, on both sides alike.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

namespace bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// harness/machinery.py counts what happens in here, and no start of libraries.
[[gnu::noinline]] inline void counted(const std::function<void(std::int64_t)>& loop,
                                      std::int64_t n) {
  loop(n);
  asm volatile("" ::: "memory");  // a call, from which it returns
}

// `loop(n)` does the work n times. The median block's seconds for one. Where TANDEM_BENCH_TIMES is
// set the work is done so many times and not timed: harness/machinery.py counts instructions.
template <class Loop>
double seconds_per_call(Loop&& loop) {
  if (const char* times = std::getenv("TANDEM_BENCH_TIMES")) {
    counted(loop, std::atoll(times));
    return 0;
  }
  constexpr double kBlockSeconds = 0.02;
  constexpr int kBlocks = 15;
  std::int64_t n = 1;
  double elapsed = 0;
  for (;; n *= 2) {
    const double start = now();
    loop(n);
    elapsed = now() - start;
    if (elapsed >= kBlockSeconds / 2) break;
  }
  n = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(n) * kBlockSeconds / elapsed + 0.5));
  std::vector<double> times(kBlocks);
  for (double& time : times) {
    const double start = now();
    loop(n);
    time = (now() - start) / static_cast<double>(n);
  }
  std::nth_element(times.begin(), times.begin() + kBlocks / 2, times.end());
  return times[kBlocks / 2];
}

}  // namespace bench
