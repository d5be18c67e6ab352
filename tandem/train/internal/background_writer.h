#pragma once

#include <exception>
#include <functional>
#include <thread>

namespace tandem::train::internal {

/// Lets the calling thread, which only writes, run after those of training steps.
void give_way();

/// A thread that writes one checkpoint at a time while its owner goes on. Used by one thread; the
/// destructor waits, and logs a failure that was not asked for.
class BackgroundWriter {
 public:
  BackgroundWriter() = default;
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// Waits for the work before and throws what that threw, then begins.
  void start(std::function<void()> work);
  /// Waits; throws what the work threw, once.
  void wait();

 private:
  std::thread thread_;
  std::exception_ptr failure_;  // the thread's until it is joined
};

}  // namespace tandem::train::internal
