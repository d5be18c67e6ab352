#include "tandem/kernels/cpu/state/queue.h"

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

std::exception_ptr cancelled(const char* what) {
  return std::make_exception_ptr(CancelledError(cat(what, " operation was cancelled")));
}

}  // namespace

QueueStore::~QueueStore() = default;

Queue::Queue(Kind kind, std::unique_ptr<QueueStore> store)
    : kind_(std::move(kind)), store_(std::move(store)) {}

std::string Queue::debug_string() const { return cat("queue of kind ", kind_.type); }

std::int64_t Queue::size() const {
  std::lock_guard lock(mutex_);
  return store_->size();
}

bool Queue::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

// Callbacks run when the lock is gone: they go on with other kernels, perhaps of this queue.
void Queue::put(std::vector<Tuple> elements, const Cancellation* cancellation, PutDone done) {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    if (closed_) {
      ready.push_back([this, done] {
        done(std::make_exception_ptr(CancelledError(cat("The ", kind_.type, " is closed."))));
      });
    } else {
      puts_.push_back({std::move(elements), 0, cancellation, std::move(done)});
      match(ready);
      if (!puts_.empty() && cancellation != nullptr) watch_cancellation();
    }
  }
  for (const auto& callback : ready) callback();
}

void Queue::take(std::int64_t count, bool fewer, const Cancellation* cancellation, TakeDone done) {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    takes_.push_back({count, fewer, {}, cancellation, std::move(done)});
    match(ready);
    if (!takes_.empty() && cancellation != nullptr) watch_cancellation();
  }
  for (const auto& callback : ready) callback();
}

void Queue::close(bool cancel_waiting_puts) {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    if (cancel_waiting_puts) {
      for (Put& put : puts_) {
        ready.push_back([done = std::move(put.done)] { done(cancelled("Enqueue")); });
      }
      puts_.clear();
    }
    match(ready);
  }
  for (const auto& callback : ready) callback();
}

bool Queue::drop_cancelled() {
  Callbacks ready;
  bool some_left = false;
  {
    std::lock_guard lock(mutex_);
    const auto is_cancelled = [&](const Cancellation* c) {
      if (c == nullptr) return false;
      some_left = some_left || !c->cancelled();
      return c->cancelled();
    };
    for (auto put = puts_.begin(); put != puts_.end();) {
      if (!is_cancelled(put->cancellation)) {
        ++put;
        continue;
      }
      ready.push_back([done = std::move(put->done)] { done(cancelled("Enqueue")); });
      put = puts_.erase(put);
    }
    for (auto take = takes_.begin(); take != takes_.end();) {
      if (!is_cancelled(take->cancellation)) {
        ++take;
        continue;
      }
      undo(*take);
      ready.push_back([done = std::move(take->done)] { done(cancelled("Dequeue"), {}); });
      take = takes_.erase(take);
    }
    match(ready);
  }
  for (const auto& callback : ready) callback();
  return some_left;
}

void Queue::undo(Take& take) {
  while (!take.got.empty()) {
    store_->put_back(std::move(take.got.back()));
    take.got.pop_back();
  }
}

// Serves the oldest requests of both kinds until neither can go on.
void Queue::match(Callbacks& ready) {
  for (bool moved = true; moved;) {
    moved = false;
    while (!puts_.empty() && serve(puts_.front(), ready)) {
      puts_.pop_front();
      moved = true;
    }
    while (!takes_.empty()) {
      const std::int64_t before = store_->size();
      const bool served = serve(takes_.front(), ready);
      moved = moved || store_->size() != before;
      if (!served) break;
      takes_.pop_front();
      moved = true;
    }
  }
}

bool Queue::serve(Put& put, Callbacks& ready) {
  while (put.next < put.elements.size()) {
    if (kind_.capacity >= 0 && store_->size() >= kind_.capacity) return false;
    store_->put(std::move(put.elements[put.next++]));
  }
  ready.push_back([done = std::move(put.done)] { done(nullptr); });
  return true;
}

bool Queue::serve(Take& take, Callbacks& ready) {
  const auto have = [&] { return static_cast<std::int64_t>(take.got.size()); };
  const bool over = closed_ && puts_.empty();  // nothing will come any more
  if (over && have() + store_->size() < take.count) {
    const std::int64_t left = have() + store_->size();
    if (take.fewer && kind_.gives_fewer && left > 0) {
      take.count = left;
    } else {
      undo(take);
      ready.push_back([this, left, count = take.count, done = std::move(take.done)] {
        done(std::make_exception_ptr(OutOfRangeError(
                 cat("The ", kind_.type, " is closed and has insufficient elements (requested ",
                     count, ", current size ", left, ")"))),
             {});
      });
      return true;
    }
  }
  const std::int64_t stays = closed_ ? 0 : kind_.stays;
  while (have() < take.count && store_->size() > stays) take.got.push_back(store_->take());
  if (have() < take.count) return false;
  ready.push_back([done = std::move(take.done), got = std::move(take.got)]() mutable {
    done(nullptr, std::move(got));
  });
  return true;
}

}  // namespace tandem::cpu
