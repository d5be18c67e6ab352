#include "tandem/distribute/internal/rpc/poller.h"

#include <pthread.h>
#include <time.h>

#include <system_error>
#include <utility>

namespace tandem::distribute {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(1);
constexpr int kQuietLooks = 5;   // without an event: nothing to watch
constexpr int kBusyLooks = 100;  // how long a busy queue has two threads at least
constexpr double kBusyShare = 0.8;
constexpr auto kKeptSpare = std::chrono::seconds(5);

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Nanoseconds that a thread has computed.
std::int64_t cpu_time(pthread_t thread) {
  clockid_t clock{};
  timespec time{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

}  // namespace

void HandlingTime::note(std::chrono::nanoseconds time) {
  const std::int64_t before = nanoseconds_.load(std::memory_order_relaxed);
  nanoseconds_.store(before + (time.count() - before) / 8, std::memory_order_relaxed);
}

Poller::Poller(std::unique_ptr<EventQueue> queue) : queue_(std::move(queue)) {
  watcher_ = std::thread([this] { watch(); });
  try {
    const MutexLock lock(mutex_);
    let_another_wait();
  } catch (const std::system_error&) {  // there is no thread
    {
      const MutexLock lock(mutex_);
      closing_ = true;
      watched_.notify_all();
    }
    watcher_.join();
    throw;
  }
}

Poller::~Poller() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
    turn_.notify_all();
    watched_.notify_all();
  }
  queue_->shut_down();
  watcher_.join();
  MutexLock lock(mutex_);
  while (!threads_.empty()) lock.wait(ended_);
}

void Poller::let_another_wait() {
  if (parked_ > turns_) {
    ++waiting_;
    ++turns_;
    turn_.notify_one();
  } else if (static_cast<int>(threads_.size()) < kMaxThreads) {
    add_thread();
  }
}

void Poller::add_thread() {
  threads_.emplace_back();
  const auto self = std::prev(threads_.end());
  ++waiting_;
  try {
    std::thread([this, self] { poll(self); }).detach();
  } catch (const std::system_error&) {  // the others go on
    threads_.erase(self);
    --waiting_;
    if (threads_.empty()) throw;
  }
}

void Poller::poll(std::list<Thread>::iterator self) {
  {
    const MutexLock lock(mutex_);
    self->id = pthread_self();
  }
  PollerEvent* event = nullptr;
  bool ok = false;
  while (queue_->next(event, ok)) {
    num_events_.fetch_add(1);
    if (!is_watched_.load()) begin_watching();
    HandlingTime& time = event->time();
    const std::int64_t begin = now();
    const bool hands_over = time.is_long() || is_busy_.load(std::memory_order_relaxed);
    if (hands_over) {
      const MutexLock lock(mutex_);
      if (--waiting_ == 0 && !closing_) let_another_wait();
    } else {
      self->busy_since.store(begin);
    }
    event->complete(ok);
    time.note(std::chrono::nanoseconds(now() - begin));
    const bool has_turn = !hands_over && self->busy_since.exchange(0) != kReplaced;
    if (!has_turn && !wait_for_turn()) {
      const MutexLock lock(mutex_);
      threads_.erase(self);
      if (threads_.empty()) ended_.notify_all();
      return;
    }
  }
  const MutexLock lock(mutex_);
  --waiting_;
  threads_.erase(self);
  if (threads_.empty()) ended_.notify_all();
}

// False if the thread is not needed any more.
bool Poller::wait_for_turn() {
  MutexLock lock(mutex_);
  if (waiting_ < (is_busy_.load() ? 2 : 1) || closing_) {
    ++waiting_;
    return true;
  }
  if (parked_ >= kSpareThreads) return false;
  ++parked_;
  const auto until = std::chrono::steady_clock::now() + kKeptSpare;
  while (turns_ == 0 && !closing_ && std::chrono::steady_clock::now() < until)
    lock.wait_until(turn_, until);
  --parked_;
  if (turns_ > 0) {  // who gave it has counted this thread already
    --turns_;
    return true;
  }
  if (!closing_) return false;
  ++waiting_;
  return true;
}

void Poller::begin_watching() {
  const MutexLock lock(mutex_);
  if (is_watched_.exchange(true)) return;
  watched_.notify_all();
}

void Poller::watch() {
  int quiet = 0;
  std::uint64_t seen = 0;
  for (;;) {
    {
      MutexLock lock(mutex_);
      while (!closing_ && !is_watched_.load()) lock.wait(watched_);
      const auto until = std::chrono::steady_clock::now() + kLookEvery;
      while (!closing_ && std::chrono::steady_clock::now() < until)
        lock.wait_until(watched_, until);
      if (closing_) return;
    }
    look_at_threads();
    const std::uint64_t events = num_events_.load();
    quiet = events == seen ? quiet + 1 : 0;
    seen = events;
    const MutexLock lock(mutex_);
    if (quiet >= kQuietLooks && waiting_ > 0 && !is_busy_.load()) {
      is_watched_ = false;
      if (num_events_.load() != seen) is_watched_ = true;  // one that relied on it
      quiet = 0;
    }
  }
}

void Poller::look_at_threads() {
  constexpr auto kLook = std::chrono::nanoseconds(kLookEvery).count();
  const std::int64_t time = now();
  const MutexLock lock(mutex_);
  bool computes = false;
  for (Thread& thread : threads_) {
    if (thread.id == pthread_t{}) continue;
    const std::int64_t cpu = cpu_time(thread.id);
    const double share =
        static_cast<double>(cpu - thread.cpu_time) / static_cast<double>(time - last_look_);
    if (thread.cpu_time > 0 && share > kBusyShare) computes = true;
    thread.cpu_time = cpu;
    std::int64_t since = thread.busy_since.load();
    if (since <= 0 || time - since < kLook) continue;
    if (!thread.busy_since.compare_exchange_strong(since, kReplaced)) continue;
    if (--waiting_ == 0 && !closing_) let_another_wait();
  }
  last_look_ = time;
  if (computes) {
    busy_looks_ = kBusyLooks;
    is_busy_ = true;
  } else if (busy_looks_ > 0 && --busy_looks_ == 0) {
    is_busy_ = false;
  }
}

}  // namespace tandem::distribute
