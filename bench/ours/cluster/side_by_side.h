// Clients of a cluster that make steps at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "bench/common/timing.h"

namespace bench {

/// Steps of all clients in a second, each of which is a thread that makes one step after the other
/// until `seconds` are over: `step(c, i)` is the i-th one of client c. Throws what a step throws.
template <class Step>
double steps_per_second(std::size_t clients, double seconds, Step&& step) {
  std::vector<std::exception_ptr> errors(clients);
  std::atomic<std::size_t> steps{0};
  const double start = now();
  std::vector<std::thread> threads;
  for (std::size_t c = 0; c < clients; ++c) {
    threads.emplace_back([&, c] {
      try {
        std::size_t made = 0;
        for (; now() - start < seconds; ++made) step(c, made);
        steps += made;
      } catch (...) {
        errors[c] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double elapsed = now() - start;
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return static_cast<double>(steps) / elapsed;
}

}  // namespace bench
