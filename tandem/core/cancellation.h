#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/export.h"

namespace tandem {

/// Stops work in progress: who starts the work cancels, long loops ask now and then, and what waits
/// registers a callback that wakes it. Thread-safe.
///
///     auto stop = std::make_shared<td::Cancellation>();
///     auto token = stop->register_callback([&] { queue.drop(request); });
///     …                                   // `stop->cancel()` calls back on the cancelling thread
///     stop->deregister_callback(token);   // from here on the callback does not run
class TANDEM_EXPORT Cancellation {
 public:
  /// Names a registered callback; 0 names none.
  using Token = std::uint64_t;

  Cancellation();
  /// Is cancelled, for the same reason, with either of the two as well; null joins nothing.
  Cancellation(std::shared_ptr<const Cancellation> one, std::shared_ptr<const Cancellation> other);
  ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  /// Calls the callbacks that are registered, one after the other; nothing happens the second time.
  /// `reason` is what `check` throws: kCancelled or kDeadlineExceeded.
  void cancel(Code reason = Code::kCancelled);
  bool cancelled() const { return state_->reason.load(std::memory_order_acquire) != Code::kOk; }
  /// kOk while nothing has been cancelled.
  Code reason() const { return state_->reason.load(std::memory_order_acquire); }
  /// Whether this was made of `one`.
  bool joins(const std::shared_ptr<const Cancellation>& one) const {
    return one_ == one || other_ == one;
  }
  /// Throws CancelledError, or DeadlineExceededError, if cancelled; long loops call it now and
  /// then.
  void check() const {
    if (cancelled()) throw_cancelled();
  }

  /// `callback` runs once when this is cancelled, on the thread that cancels, without a lock held.
  /// Returns 0, and never calls it, if that has happened already.
  Token register_callback(std::function<void()> callback) const;
  /// Afterwards the callback neither runs nor will run: waits for one that does, unless it is
  /// called from within it. True if the callback has been kept from running. 0 is no callback.
  bool deregister_callback(Token token) const;

 private:
  // What `cancel` uses outlives the object: a callback may end whatever owns it.
  struct State {
    std::atomic<Code> reason{Code::kOk};
    struct Callbacks;
    std::unique_ptr<Callbacks> callbacks;
    State();
    ~State();
    void cancel(Code why);
  };
  [[noreturn]] void throw_cancelled() const;

  const std::shared_ptr<State> state_;
  const std::shared_ptr<const Cancellation> one_, other_;
  Token of_one_ = 0, of_other_ = 0;
};

/// Keeps a callback registered for as long as it lives. Where the work was cancelled before,
/// `registered` is false and the callback never runs.
class TANDEM_EXPORT CancellationCallback {
 public:
  CancellationCallback() = default;
  /// Null never calls back.
  CancellationCallback(std::shared_ptr<const Cancellation> cancellation,
                       std::function<void()> callback)
      : cancellation_(std::move(cancellation)),
        token_(cancellation_ ? cancellation_->register_callback(std::move(callback)) : 0) {}
  CancellationCallback(CancellationCallback&& other) noexcept
      : cancellation_(std::move(other.cancellation_)), token_(std::exchange(other.token_, 0)) {}
  CancellationCallback& operator=(CancellationCallback&& other) noexcept {
    std::swap(cancellation_, other.cancellation_);
    std::swap(token_, other.token_);
    return *this;
  }
  ~CancellationCallback() { reset(); }

  bool registered() const { return token_ != 0; }
  void reset() {
    if (token_ != 0) cancellation_->deregister_callback(std::exchange(token_, 0));
    cancellation_.reset();
  }

 private:
  std::shared_ptr<const Cancellation> cancellation_;
  Cancellation::Token token_ = 0;
};

}  // namespace tandem
