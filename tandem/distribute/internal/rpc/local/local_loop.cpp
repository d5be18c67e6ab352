#include "tandem/distribute/internal/rpc/local/local_loop.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <system_error>
#include <unordered_map>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/rpc/local/descriptor.h"
#include "tandem/distribute/internal/rpc/local/wake_event.h"

namespace tandem::distribute {
namespace {

// Deletes itself once it has run.
class PostedFunction final : public PollerEvent {
 public:
  PostedFunction(HandlingTime& time, std::function<void()> run)
      : PollerEvent(time), run_(std::move(run)) {}
  void complete(bool) override {
    const std::unique_ptr<PostedFunction> self(this);
    run_();
  }

 private:
  const std::function<void()> run_;
};

}  // namespace

// Sources, timers and functions that were posted, as one queue of events.
class LocalLoop::Queue final : public EventQueue {
 public:
  explicit Queue(HandlingTime& bookkeeping)
      : bookkeeping_(bookkeeping),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!epoll_.is_open() || !wake_.is_open() || !timer_.is_open())
      throw UnavailableError("The system has no descriptors left for connections.");
    // By its edge, so that each signal wakes one thread.
    control(EPOLL_CTL_ADD, wake_.number(), EPOLLIN | EPOLLET);
    control(EPOLL_CTL_ADD, timer_.number(), EPOLLIN | EPOLLET);
  }

  bool next(PollerEvent*& event, bool& ok) override {
    for (;;) {
      {
        const MutexLock lock(mutex_);
        ok = true;
        if (!posted_.empty()) {
          event = posted_.front().release();
          posted_.pop_front();
          // Others may be waiting for something to be ready.
          if (!posted_.empty() && waiting_ > 0) wake_.signal();
          return true;
        }
        if (closed_) {
          wake_.signal();  // the next thread
          return false;
        }
        ++waiting_;
      }
      epoll_event ready{};
      const int count = ::epoll_wait(epoll_.number(), &ready, 1, -1);
      std::shared_ptr<EventSource> source;
      {
        const MutexLock lock(mutex_);
        --waiting_;
        if (count == 1) {
          const auto found = sources_.find(ready.data.fd);
          if (found != sources_.end()) source = found->second;
        }
      }
      if (source) {
        source->on_ready();
      } else if (count == 1 && ready.data.fd == timer_.number()) {
        run_timers();
      }
    }
  }

  void shut_down() override {
    // What these hold may end with them, without the lock.
    decltype(sources_) sources;
    decltype(timers_) timers;
    const MutexLock lock(mutex_);
    closed_ = true;
    sources.swap(sources_);
    timers.swap(timers_);
    times_of_timers_.clear();
    wake_.signal();
  }

  void post(HandlingTime& time, std::function<void()> run) {
    auto event = std::make_unique<PostedFunction>(time, std::move(run));
    {
      const MutexLock lock(mutex_);
      if (!has_ended_) {
        posted_.push_back(std::move(event));
        if (waiting_ > 0) wake_.signal();
        return;
      }
    }
    event.release()->complete(true);
  }

  // No thread calls `next` any more.
  void end() {
    decltype(posted_) left;
    {
      const MutexLock lock(mutex_);
      has_ended_ = true;
      left.swap(posted_);
    }
    for (auto& event : left) event.release()->complete(true);
  }

  bool add(const std::shared_ptr<EventSource>& source) {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    const int number = source->descriptor();
    if (!control(EPOLL_CTL_ADD, number, EPOLLIN | EPOLLONESHOT)) return false;
    sources_[number] = source;
    return true;
  }
  void arm(const EventSource& source, bool wants_to_write) {
    control(EPOLL_CTL_MOD, source.descriptor(),
            EPOLLONESHOT | EPOLLIN | (wants_to_write ? EPOLLOUT : 0u));
  }
  void remove(const EventSource& source) {
    std::shared_ptr<EventSource> removed;  // may end with this, without the lock
    const MutexLock lock(mutex_);
    const auto found = sources_.find(source.descriptor());
    if (found == sources_.end() || found->second.get() != &source) return;
    control(EPOLL_CTL_DEL, source.descriptor(), 0);
    removed = std::move(found->second);
    sources_.erase(found);
  }

  Timer at(Clock::time_point time, std::function<void()> run) {
    const MutexLock lock(mutex_);
    if (closed_) return 0;
    timers_.emplace(std::pair{time, ++last_timer_}, std::move(run));
    times_of_timers_.emplace(last_timer_, time);
    if (!armed_ || time < *armed_) set_clock(time);
    return last_timer_;
  }
  void cancel(Timer timer) {
    std::function<void()> dropped;
    const MutexLock lock(mutex_);
    const auto found = times_of_timers_.find(timer);
    if (found == times_of_timers_.end()) return;
    const auto entry = timers_.find({found->second, timer});
    if (entry != timers_.end()) {
      dropped = std::move(entry->second);
      timers_.erase(entry);
    }
    times_of_timers_.erase(found);
  }

 private:
  bool control(int operation, int number, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = number;
    return ::epoll_ctl(epoll_.number(), operation, number, &event) == 0;
  }

  // It may go off although the timer it was set for has been cancelled: it is not set back.
  void set_clock(Clock::time_point time) TANDEM_REQUIRES(mutex_) {
    armed_ = time;
    const auto since = std::max<std::int64_t>(
        1, std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
    itimerspec value{};
    value.it_value.tv_sec = since / 1'000'000'000;
    value.it_value.tv_nsec = since % 1'000'000'000;
    ::timerfd_settime(timer_.number(), TFD_TIMER_ABSTIME, &value, nullptr);
  }

  void run_timers() {
    std::uint64_t count = 0;
    static_cast<void>(::read(timer_.number(), &count, sizeof(count)) + 0);
    const MutexLock lock(mutex_);
    const Clock::time_point now = Clock::now();
    while (!timers_.empty() && timers_.begin()->first.first <= now) {
      times_of_timers_.erase(timers_.begin()->first.second);
      posted_.push_back(
          std::make_unique<PostedFunction>(bookkeeping_, std::move(timers_.begin()->second)));
      timers_.erase(timers_.begin());
    }
    armed_.reset();
    if (!timers_.empty()) set_clock(timers_.begin()->first.first);
  }

  HandlingTime& bookkeeping_;
  const Descriptor epoll_, timer_;
  const WakeEvent wake_;
  Mutex mutex_;
  std::deque<std::unique_ptr<PostedFunction>> posted_ TANDEM_GUARDED_BY(mutex_);
  std::map<int, std::shared_ptr<EventSource>> sources_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::pair<Clock::time_point, Timer>, std::function<void()>> timers_
      TANDEM_GUARDED_BY(mutex_);
  std::unordered_map<Timer, Clock::time_point> times_of_timers_ TANDEM_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> armed_ TANDEM_GUARDED_BY(mutex_);
  Timer last_timer_ TANDEM_GUARDED_BY(mutex_) = 0;
  int waiting_ TANDEM_GUARDED_BY(mutex_) = 0;  // threads, for the kernel
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
  bool has_ended_ TANDEM_GUARDED_BY(mutex_) = false;
};

// The poller owns a queue; sources and timers may come after it has ended.
class LocalLoop::QueueOfPoller final : public EventQueue {
 public:
  explicit QueueOfPoller(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
  bool next(PollerEvent*& event, bool& ok) override { return queue_->next(event, ok); }
  void shut_down() override { queue_->shut_down(); }

 private:
  const std::shared_ptr<Queue> queue_;
};

LocalLoop::LocalLoop(std::size_t memory_limit)
    : memory_(memory_limit), queue_(std::make_shared<Queue>(bookkeeping_)) {
  try {
    poller_ = std::make_unique<Poller>(std::make_unique<QueueOfPoller>(queue_));
  } catch (const std::system_error&) {
    throw UnavailableError("The system has no threads left for local connections.");
  }
}

LocalLoop::~LocalLoop() { stop(); }

void LocalLoop::stop() {
  std::unique_ptr<Poller> poller;
  {
    const MutexLock lock(mutex_);
    poller = std::move(poller_);
  }
  if (!poller) return;
  poller.reset();
  queue_->end();
}

bool LocalLoop::add(const std::shared_ptr<EventSource>& source) { return queue_->add(source); }
void LocalLoop::arm(const EventSource& source, bool wants_to_write) {
  queue_->arm(source, wants_to_write);
}
void LocalLoop::remove(const EventSource& source) { queue_->remove(source); }

HandlingTime& LocalLoop::time_of(std::string_view what) {
  const MutexLock lock(mutex_);
  const auto found = times_.find(what);
  return found != times_.end() ? found->second : times_[std::string(what)];
}

void LocalLoop::post(HandlingTime& time, std::function<void()> run) {
  queue_->post(time, std::move(run));
}
LocalLoop::Timer LocalLoop::at(Clock::time_point time, std::function<void()> run) {
  return queue_->at(time, std::move(run));
}
void LocalLoop::cancel(Timer timer) { queue_->cancel(timer); }

}  // namespace tandem::distribute
