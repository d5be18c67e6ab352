#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/keras/logs.h"

namespace tandem::data {
class StateArchive;  // tandem/data/state_archive.h
}

namespace tandem::keras {

class Model;

/// The logs in the middle of an epoch: computed when somebody asks, because that reads variables.
class BatchLogs {
 public:
  explicit BatchLogs(std::function<Logs()> compute) : compute_(std::move(compute)) {}
  const Logs& get() const {
    if (!done_) logs_ = compute_();
    done_ = true;
    return logs_;
  }
  /// One of them; throws as Logs does.
  double operator[](std::string_view name) const { return get()[name]; }
  /// For fit: a new batch, so new logs.
  void renew() const { done_ = false; }

 private:
  std::function<Logs()> compute_;
  mutable Logs logs_;
  mutable bool done_ = false;
};

namespace internal {

/// Shows whether the object that it is a member of still exists. Copies of that object are other
/// objects, so a copy has a mark of its own.
class LifetimeMark {
 public:
  LifetimeMark() = default;
  LifetimeMark(const LifetimeMark&) {}
  LifetimeMark& operator=(const LifetimeMark&) { return *this; }
  std::weak_ptr<const bool> get() const { return alive_; }

 private:
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace internal

/// Is notified of the progress of training, and may change its course. Override what is of
/// interest.
///
/// Numbers of epochs and batches begin with 0. What a callback throws ends the training and is
/// thrown by fit.
class TANDEM_EXPORT Callback {
 public:
  virtual ~Callback();

  virtual void on_train_begin() {}
  virtual void on_train_end(const Logs&) {}
  virtual void on_epoch_begin(int /*epoch*/) {}
  /// Logs of the epoch, val_… included; what is added here comes into the History.
  virtual void on_epoch_end(int /*epoch*/, Logs&) {}
  virtual void on_train_batch_begin(std::int64_t /*batch*/) {}
  virtual void on_train_batch_end(std::int64_t /*batch*/, const BatchLogs&) {}

  virtual void on_test_begin() {}
  virtual void on_test_end(const Logs&) {}
  virtual void on_test_batch_begin(std::int64_t /*batch*/) {}
  virtual void on_test_batch_end(std::int64_t /*batch*/, const BatchLogs&) {}

  /// What a callback remembers between events, for fits that go on after an interruption
  /// (callbacks::BackupAndRestore): one function saves and restores.
  virtual void visit_state(data::StateArchive& state);

  virtual void on_predict_begin() {}
  virtual void on_predict_end() {}
  virtual void on_predict_batch_begin(std::int64_t /*batch*/) {}
  virtual void on_predict_batch_end(std::int64_t /*batch*/) {}

  /// Epochs asked for, as fit was called.
  struct Params {
    int epochs = 1;
    std::int64_t steps = -1;  ///< batches an epoch; -1: not known
    int verbose = 0;          ///< 0: silent, 1: a bar that moves, 2: a line an epoch
  };
  const Params& params() const { return params_; }

 protected:
  /// The model that is trained; valid between on_…_begin and on_…_end.
  /// Throws FailedPreconditionError elsewhere.
  Model& model() const;
  /// fit ends after this batch: `model().stop_training = true`.
  void stop_training() const;

 private:
  friend class CallbackList;
  friend class CallbackRef;
  Model* model_ = nullptr;
  Params params_;
  internal::LifetimeMark lifetime_;
};

/// A callback of any kind: an object of yours, a temporary, or a shared one.
///
///     td::keras::callbacks::EarlyStopping stop({.patience = 3});
///     model.fit(x, y, {.callbacks = {stop, td::keras::callbacks::TerminateOnNaN()}});
///     int epoch = stop.stopped_epoch();
///
/// An object with a name is called itself, so that it has its results afterwards. If it has been
/// destroyed by the time of the call, as in a function that returns FitOptions, a copy that was
/// made here takes its place.
class CallbackRef {
 public:
  template <std::derived_from<Callback> C>
  CallbackRef(C& callback)
      : named_(&callback), named_lifetime_(static_cast<const Callback&>(callback).lifetime_.get()) {
    if constexpr (std::is_copy_constructible_v<C>) owned_ = std::make_shared<C>(callback);
  }
  template <std::derived_from<Callback> C>
  CallbackRef(const C& callback) : owned_(std::make_shared<C>(callback)) {}
  template <std::derived_from<Callback> C>
  requires(!std::is_lvalue_reference_v<C> && !std::is_const_v<C>) CallbackRef(C&& callback)
      : owned_(std::make_shared<C>(std::move(callback))) {}
  template <std::derived_from<Callback> C>
  CallbackRef(std::shared_ptr<C> callback) : owned_(std::move(callback)) {}

  /// Null where a null pointer was given.
  std::shared_ptr<Callback> get() const {
    return named_lifetime_.expired() ? owned_ : std::shared_ptr<Callback>(owned_, named_);
  }

 private:
  std::shared_ptr<Callback> owned_;
  Callback* named_ = nullptr;
  std::weak_ptr<const bool> named_lifetime_;
};

/// The callbacks of one call of fit, evaluate or predict.
class TANDEM_EXPORT CallbackList {
 public:
  CallbackList(const std::vector<CallbackRef>& callbacks, Model& model,
               const Callback::Params& params);
  ~CallbackList();
  CallbackList(const CallbackList&) = delete;
  CallbackList& operator=(const CallbackList&) = delete;

  bool empty() const { return callbacks_.empty(); }
  template <class Event>
  void notify(const Event& event) const {
    for (const auto& callback : callbacks_) event(*callback);
  }

 private:
  std::vector<std::shared_ptr<Callback>> callbacks_;
};

}  // namespace tandem::keras
