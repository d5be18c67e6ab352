#include "tandem/device/plugin/internal/reaper.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "tandem/core/never_destroyed.h"

namespace tandem {
namespace {

bool& inside() {
  thread_local bool flag = false;
  return flag;
}

class Reaper {
 public:
  void add(std::function<void()> task) {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    added_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      added_.wait(lock, [&] { return !tasks_.empty(); });
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> tasks_;
  std::thread thread_;
};

}  // namespace

bool on_device_thread() { return inside(); }

DeviceThreadScope::DeviceThreadScope() : saved_(std::exchange(inside(), true)) {}
DeviceThreadScope::~DeviceThreadScope() { inside() = saved_; }

void run_off_device_threads(std::function<void()> task) {
  if (!on_device_thread()) return task();
  static NeverDestroyed<Reaper> reaper;
  reaper->add(std::move(task));
}

}  // namespace tandem
