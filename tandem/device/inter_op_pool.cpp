#include "tandem/device/inter_op_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/flush_denormals.h"

namespace tandem {

struct InterOpPool::State {
  struct Queue {
    std::mutex mutex;
    std::deque<std::function<void()>> tasks;
  };
  // Queue 0 belongs to the callers, queue i to worker i.
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<std::thread> workers;
  std::atomic<std::size_t> pending{0};
  std::mutex sleep_mutex;
  std::condition_variable wake;
  bool stop = false;

  static thread_local State* current;
  static thread_local std::size_t index;

  std::size_t home() const { return current == this ? index : 0; }

  // False, and the task is left, if there were workers and they have ended.
  bool push(std::function<void()>& task) {
    Queue& queue = *queues[home()];
    {
      std::lock_guard lock(sleep_mutex);
      if (stop) return false;
      std::lock_guard queue_lock(queue.mutex);
      queue.tasks.push_back(std::move(task));
      pending.fetch_add(1);
    }
    wake.notify_one();
    return true;
  }

  bool take(std::function<void()>& task) {
    const std::size_t own = home();
    for (std::size_t i = 0; i < queues.size(); ++i) {
      Queue& queue = *queues[(own + i) % queues.size()];
      std::lock_guard lock(queue.mutex);
      if (queue.tasks.empty()) continue;
      if (i == 0) {  // own work newest first, while its data is in the cache
        task = std::move(queue.tasks.back());
        queue.tasks.pop_back();
      } else {
        task = std::move(queue.tasks.front());
        queue.tasks.pop_front();
      }
      pending.fetch_sub(1);
      return true;
    }
    return false;
  }

  void end() {
    {
      std::lock_guard lock(sleep_mutex);
      stop = true;
    }
    wake.notify_all();
    for (std::thread& w : std::exchange(workers, {})) {
      // A kernel that ends the program, or destroys its runtime, may run on a worker.
      if (w.get_id() == std::this_thread::get_id()) {
        w.detach();
      } else {
        w.join();
      }
    }
  }

  void worker(std::size_t own) {
    const ScopedFlushDenormals flush;
    current = this;
    index = own;
    for (;;) {
      std::function<void()> task;
      if (take(task)) {
        task();
        continue;
      }
      std::unique_lock lock(sleep_mutex);
      wake.wait(lock, [&] { return stop || pending.load() > 0; });
      if (stop && pending.load() == 0) return;
    }
  }
};

thread_local InterOpPool::State* InterOpPool::State::current = nullptr;
thread_local std::size_t InterOpPool::State::index = 0;

InterOpPool::InterOpPool(int threads)
    : threads_(std::max(threads, 1)), state_(std::make_shared<State>()) {
  for (int i = 0; i < threads_; ++i) state_->queues.push_back(std::make_unique<State::Queue>());
  try {
    for (int i = 1; i < threads_; ++i) {
      state_->workers.emplace_back([s = state_, i] { s->worker(static_cast<std::size_t>(i)); });
    }
  } catch (const std::system_error& error) {
    state_->end();
    throw ResourceExhaustedError(
        cat("Could not start ", threads_, " threads for steps side by side: ", error.what()));
  }
}

InterOpPool::~InterOpPool() { state_->end(); }
void InterOpPool::stop() { state_->end(); }

bool InterOpPool::on_worker() { return State::current != nullptr; }

void InterOpPool::schedule(std::function<void()> task) {
  if (state_->push(task)) return;
  std::thread([task = std::move(task)] {
    const ScopedFlushDenormals flush;
    task();
  }).detach();
}

bool InterOpPool::help() {
  std::function<void()> task;
  if (!state_->take(task)) return false;
  task();
  return true;
}

}  // namespace tandem
