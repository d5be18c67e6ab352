#include "tandem/data/stages/threads.h"

#include <system_error>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"

namespace tandem::data {
namespace {

constexpr const char* kWhatToDo =
    "Give the pipeline fewer threads (num_parallel_calls, private_threadpool_size), end iterators "
    "that are not needed, or raise the limit of processes (`ulimit -u`, the container's pids "
    "limit).";

}  // namespace

std::thread start_thread(std::string_view stage, std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw ResourceExhaustedError(
        cat(stage, " cannot make a thread: ", error.code().message(), ". ", kWhatToDo));
  }
}

std::size_t start_threads(std::string_view stage, std::size_t count,
                          const std::function<void(std::size_t number)>& work,
                          std::vector<std::thread>& threads) {
  while (threads.size() < count) {
    threads.emplace_back();
    try {
      threads.back() = start_thread(stage, [work, number = threads.size() - 1] { work(number); });
    } catch (const ResourceExhaustedError&) {
      threads.pop_back();
      if (threads.empty()) throw;
      log(LogLevel::kWarning, cat(stage, " goes on with ", threads.size(), " of ", count,
                                  " threads, because the system gives no more. ", kWhatToDo));
      break;
    }
  }
  return threads.size();
}

}  // namespace tandem::data
