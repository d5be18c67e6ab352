#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tandem/core/export.h"

namespace tandem::train {

/// Stops several threads together: each asks `should_stop`, and any may ask all to stop, with or
/// without an error, which `join` then throws. Thread-safe.
///
///     td::train::Coordinator coordinator;
///     std::thread worker([&] {
///       coordinator.stop_on_exception([&] {
///         while (!coordinator.should_stop()) step();
///       });
///     });
///     std::vector<std::thread> threads;
///     threads.push_back(std::move(worker));
///     coordinator.join(threads);
class TANDEM_EXPORT Coordinator {
 public:
  Coordinator();
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// The first of several errors counts. OutOfRangeError, the end of the data, is none.
  void request_stop(std::exception_ptr error = nullptr);
  bool should_stop() const;
  /// Begins again: forgets the request and the error.
  void clear_stop();
  /// True once a stop is requested, false after so long.
  bool wait_for_stop(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max()) const;
  /// Runs `body`; what it throws requests the stop.
  void stop_on_exception(const std::function<void()>& body);
  /// Waits for the threads, which are joined, and throws the error that was given.
  void join(std::vector<std::thread>& threads);
  bool joined() const;
  void raise_requested_exception() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::train
