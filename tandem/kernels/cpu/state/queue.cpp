#include "tandem/kernels/cpu/state/queue.h"

#include <algorithm>

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
      const std::uint64_t request = ++requests_;
      puts_.push_back({request, std::move(elements), 0, std::move(done)});
      match(ready);
      const bool waits = !puts_.empty() && puts_.back().request == request;
      if (waits && !watch(request, cancellation, puts_.back().watch)) drop(request, ready);
    }
  }
  for (const auto& callback : ready) callback();
}

void Queue::take(std::int64_t count, bool fewer, const Cancellation* cancellation, TakeDone done) {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    const std::uint64_t request = ++requests_;
    takes_.push_back({request, count, fewer, {}, std::move(done)});
    match(ready);
    const bool waits = !takes_.empty() && takes_.back().request == request;
    if (waits && !watch(request, cancellation, takes_.back().watch)) drop(request, ready);
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
        ready.push_back([done = std::move(put.done), watch = put.watch] {
          watch.end();
          done(cancelled("Enqueue"));
        });
      }
      puts_.clear();
    }
    match(ready);
  }
  for (const auto& callback : ready) callback();
}

void Queue::cancel_request(std::uint64_t request) {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    drop(request, ready);
  }
  for (const auto& callback : ready) callback();
}

// Called with the lock held, as the request's cancellation calls back or instead of it.
void Queue::drop(std::uint64_t request, Callbacks& ready) {
  const auto is_it = [&](const auto& waiting) { return waiting.request == request; };
  if (const auto put = std::find_if(puts_.begin(), puts_.end(), is_it); put != puts_.end()) {
    ready.push_back([done = std::move(put->done)] { done(cancelled("Enqueue")); });
    puts_.erase(put);
  }
  if (const auto take = std::find_if(takes_.begin(), takes_.end(), is_it); take != takes_.end()) {
    undo(*take);
    ready.push_back([done = std::move(take->done)] { done(cancelled("Dequeue"), {}); });
    takes_.erase(take);
  }
  match(ready);
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
  ready.push_back([done = std::move(put.done), watch = put.watch] {
    watch.end();
    done(nullptr);
  });
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
      ready.push_back(
          [this, left, count = take.count, done = std::move(take.done), watch = take.watch] {
            watch.end();
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
  ready.push_back(
      [done = std::move(take.done), got = std::move(take.got), watch = take.watch]() mutable {
        watch.end();
        done(nullptr, std::move(got));
      });
  return true;
}

}  // namespace tandem::cpu
