#include "tandem/data/stages/cancel_watch.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "tandem/data/stages/threads.h"

namespace tandem::data {
namespace {

using namespace std::chrono_literals;
constexpr auto kPeriod = 5ms;
constexpr auto kLinger = 100ms;  // without watches, until the thread ends

class Watcher {
 public:
  static Watcher& instance() {
    static auto* watcher = new Watcher;  // never destroyed: its thread may outlive static objects
    return *watcher;
  }

  std::uint64_t add(std::shared_ptr<StopSignal> signal,
                    std::shared_ptr<const Cancellation> cancellation) {
    std::lock_guard lock(mutex_);
    if (!running_) {
      start_thread("an iterator under a CancellationScope", [this] { run(); }).detach();
      running_ = true;
    }
    watches_.push_back({++last_id_, std::move(signal), std::move(cancellation)});
    added_.notify_one();
    return last_id_;
  }

  void remove(std::uint64_t id) {
    Watch gone;  // destroyed after the lock
    std::lock_guard lock(mutex_);
    for (Watch& watch : watches_) {
      if (watch.id != id) continue;
      std::swap(watch, watches_.back());
      gone = std::move(watches_.back());
      watches_.pop_back();
      return;
    }
  }

 private:
  struct Watch {
    std::uint64_t id = 0;
    std::shared_ptr<StopSignal> signal;
    std::shared_ptr<const Cancellation> cancellation;
  };

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (watches_.empty() && !added_.wait_for(lock, kLinger, [&] { return !watches_.empty(); })) {
        running_ = false;
        return;
      }
      std::vector<std::shared_ptr<StopSignal>> cancelled;
      for (const Watch& watch : watches_) {
        if (watch.cancellation->cancelled() && !watch.signal->stopped()) {
          cancelled.push_back(watch.signal);
        }
      }
      lock.unlock();
      // Stopping takes the locks of stages.
      for (const auto& signal : cancelled) signal->stop();
      cancelled.clear();
      std::this_thread::sleep_for(kPeriod);
      lock.lock();
    }
  }

  std::mutex mutex_;  // guards the below
  std::condition_variable added_;
  std::vector<Watch> watches_;
  std::uint64_t last_id_ = 0;
  bool running_ = false;
};

}  // namespace

CancelWatch::CancelWatch(std::shared_ptr<StopSignal> signal,
                         std::shared_ptr<const Cancellation> cancellation)
    : id_(Watcher::instance().add(std::move(signal), std::move(cancellation))) {}

CancelWatch::CancelWatch(CancelWatch&& other) noexcept : id_(std::exchange(other.id_, 0)) {}

CancelWatch& CancelWatch::operator=(CancelWatch&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}

CancelWatch::~CancelWatch() {
  if (id_ != 0) Watcher::instance().remove(id_);
}

}  // namespace tandem::data
