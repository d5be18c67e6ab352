#include "tandem/kernels/cpu/state/staging_area.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

// Like TensorFlow counts: a string is 24 bytes and what it holds.
std::int64_t bytes_of(const Array& array) {
  if (array.dtype() != DType::kString) return static_cast<std::int64_t>(array.num_bytes());
  std::int64_t bytes = 24 * array.num_elements();
  for (const std::string& text : array.values<std::string>()) {
    bytes += static_cast<std::int64_t>(text.size());
  }
  return bytes;
}

std::int64_t bytes_of(const StagingArea::Tuple& tuple) {
  std::int64_t bytes = 0;
  for (const Array& array : tuple) bytes += bytes_of(array);
  return bytes;
}

std::exception_ptr cancelled(const char* what) {
  return std::make_exception_ptr(CancelledError(cat(what, " operation was cancelled")));
}

}  // namespace

StagingArea::StagingArea(std::int64_t capacity, std::int64_t memory_limit)
    : capacity_(capacity), memory_limit_(memory_limit) {}

std::string StagingArea::debug_string() const { return cat("staging area of ", size()); }

std::int64_t StagingArea::size() const {
  std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(tuples_.size());
}

void StagingArea::put(Tuple tuple, const Cancellation* cancellation, PutDone done) {
  const std::int64_t bytes = bytes_of(tuple);
  if (memory_limit_ > 0 && bytes > memory_limit_) {
    throw ResourceExhaustedError(cat("Attempted to insert tensors with combined size of '", bytes,
                                     "' bytes into Staging Area with a memory limit of '",
                                     memory_limit_, "'."));
  }
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    const std::uint64_t request = ++requests_;
    puts_.push_back({std::move(tuple), bytes, std::move(done), request});
    match(ready);
    const bool waits = !puts_.empty() && puts_.back().request == request;
    if (waits && !watch(request, cancellation, puts_.back().watch)) drop(request, ready);
  }
  // When the lock is gone: they go on with other kernels, perhaps of this area.
  for (const auto& callback : ready) callback();
}

void StagingArea::take(const Cancellation* cancellation, TakeDone done) {
  wait({-1, std::move(done)}, cancellation);
}

void StagingArea::peek(std::int64_t index, const Cancellation* cancellation, TakeDone done) {
  wait({index, std::move(done)}, cancellation);
}

void StagingArea::wait(Take take, const Cancellation* cancellation) {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    const std::uint64_t request = take.request = ++requests_;
    takes_.push_back(std::move(take));
    match(ready);
    const bool waits = !takes_.empty() && takes_.back().request == request;
    if (waits && !watch(request, cancellation, takes_.back().watch)) drop(request, ready);
  }
  for (const auto& callback : ready) callback();
}

void StagingArea::clear() {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    tuples_.clear();
    bytes_ = 0;
    match(ready);
  }
  for (const auto& callback : ready) callback();
}

bool StagingArea::has_room(std::int64_t bytes) const {
  return (capacity_ == 0 || static_cast<std::int64_t>(tuples_.size()) < capacity_) &&
         (memory_limit_ == 0 || bytes <= memory_limit_ - bytes_);
}

bool StagingArea::serve(Take& take, Callbacks& ready) {
  const bool removes = take.index < 0;
  const auto at = static_cast<std::size_t>(removes ? 0 : take.index);
  if (at >= tuples_.size()) return false;
  Tuple tuple = tuples_[at];
  if (removes) {
    bytes_ -= bytes_of(tuple);
    tuples_.pop_front();
  }
  ready.push_back(
      [done = std::move(take.done), tuple = std::move(tuple), watch = take.watch]() mutable {
        watch.end();
        done(nullptr, std::move(tuple));
      });
  return true;
}

// Puts go on in their order; of those who take or look, each that can.
void StagingArea::match(Callbacks& ready) {
  for (bool moved = true; moved;) {
    moved = false;
    while (!puts_.empty() && has_room(puts_.front().bytes)) {
      Put& put = puts_.front();
      bytes_ += put.bytes;
      tuples_.push_back(std::move(put.tuple));
      ready.push_back([done = std::move(put.done), watch = put.watch] {
        watch.end();
        done(nullptr);
      });
      puts_.pop_front();
      moved = true;
    }
    for (auto take = takes_.begin(); take != takes_.end();) {
      if (serve(*take, ready)) {
        take = takes_.erase(take);
        moved = true;
      } else {
        ++take;
      }
    }
  }
}

void StagingArea::cancel_request(std::uint64_t request) {
  Callbacks ready;
  {
    std::lock_guard lock(mutex_);
    drop(request, ready);
  }
  for (const auto& callback : ready) callback();
}

// Called with the lock held, as the request's cancellation calls back or instead of it.
void StagingArea::drop(std::uint64_t request, Callbacks& ready) {
  const auto is_it = [&](const auto& waiting) { return waiting.request == request; };
  if (const auto put = std::find_if(puts_.begin(), puts_.end(), is_it); put != puts_.end()) {
    ready.push_back([done = std::move(put->done)] { done(cancelled("Stage")); });
    puts_.erase(put);
  }
  if (const auto take = std::find_if(takes_.begin(), takes_.end(), is_it); take != takes_.end()) {
    const char* const what = take->index >= 0 ? "StagePeek" : "Unstage";
    ready.push_back([done = std::move(take->done), what] { done(cancelled(what), {}); });
    takes_.erase(take);
  }
  match(ready);
}

}  // namespace tandem::cpu
