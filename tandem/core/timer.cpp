#include "tandem/core/timer.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "tandem/core/error.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

class Timers {
 public:
  static Timers& instance() {
    static auto* timers = new Timers;  // never destroyed: its thread may outlive static objects
    return *timers;
  }

  std::uint64_t add(Clock::time_point due, std::function<void()> callback) {
    std::lock_guard lock(mutex_);
    if (!running_) {
      try {
        std::thread([this] { run(); }).detach();
      } catch (const std::system_error& error) {
        throw ResourceExhaustedError(cat("Could not start a thread for deadlines: ", error.what()));
      }
      running_ = true;
    }
    const std::uint64_t id = ++last_;
    const auto at = by_time_.emplace(std::pair(due, id), std::move(callback)).first;
    due_.emplace(id, due);
    if (at == by_time_.begin()) changed_.notify_one();
    return id;
  }

  void remove(std::uint64_t id) {
    std::function<void()> callback;  // destroyed without the lock
    std::lock_guard lock(mutex_);
    const auto found = due_.find(id);
    if (found == due_.end()) return;
    const auto at = by_time_.find({found->second, id});
    callback = std::move(at->second);
    by_time_.erase(at);
    due_.erase(found);
    if (by_time_.empty()) changed_.notify_one();
  }

 private:
  // The thread stays a while for timers that follow each other, call by call.
  static constexpr auto kLinger = std::chrono::milliseconds(100);

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (by_time_.empty()) {
        if (changed_.wait_for(lock, kLinger, [&] { return !by_time_.empty(); })) continue;
        running_ = false;
        return;
      }
      const auto first = by_time_.begin();
      const Clock::time_point due = first->first.first;
      if (due > Clock::now()) {
        changed_.wait_until(lock, due);
        continue;
      }
      const std::function<void()> callback = std::move(first->second);
      due_.erase(first->first.second);
      by_time_.erase(first);
      lock.unlock();
      callback();
      lock.lock();
    }
  }

  std::mutex mutex_;  // guards the below
  std::condition_variable changed_;
  std::map<std::pair<Clock::time_point, std::uint64_t>, std::function<void()>> by_time_;
  std::map<std::uint64_t, Clock::time_point> due_;
  std::uint64_t last_ = 0;
  bool running_ = false;
};

}  // namespace

Timer::Timer(Clock::time_point due, std::function<void()> callback)
    : id_(Timers::instance().add(due, std::move(callback))) {}

Timer::Timer(Timer&& other) noexcept : id_(std::exchange(other.id_, 0)) {}

Timer& Timer::operator=(Timer&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}

Timer::~Timer() {
  if (id_ != 0) Timers::instance().remove(id_);
}

}  // namespace tandem
