#include "tandem/io/internal/on_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "tandem/runtime/thread_context.h"

namespace tandem::io {

void on_threads(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const ThreadContext context = thread_context();
  const auto run = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < count;) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  const std::size_t wanted = std::min(count, static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<std::thread> others;
  try {
    for (std::size_t i = 1; i < wanted; ++i) {
      others.emplace_back([&] {
        const ThreadContextScope scope(context);
        run();
      });
    }
  } catch (const std::system_error&) {
    // No further thread can be had: those that there are do the work.
  }
  run();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tandem::io
