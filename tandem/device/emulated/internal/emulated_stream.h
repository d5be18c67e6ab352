#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>

#include "tandem/device/copy_cancellation.h"
#include "tandem/device/device.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/device/emulated/internal/emulated_event.h"
#include "tandem/device/emulated/internal/emulated_physical.h"

namespace tandem {

class EmulatedCore;

/// A queue and the thread that works it off, started with the first piece of work.
///
/// It keeps a clock of its own, `due_`: when the last piece of modelled work was over. What was
/// enqueued before begins exactly then, however late the thread woke up, so that no time is lost
/// between pieces of work and no error adds up.
class EmulatedStream final : public Stream {
 public:
  EmulatedStream(EmulatedCore& core, StreamKind kind, int index);
  ~EmulatedStream() override;

  void enqueue(Work work) override;
  void enqueue(Copy copy) override;
  Ref<Event> record() override;
  void wait_for(Ref<Event> event) override;
  void synchronize() override;

  /// Looks again whether the device is lost or closing.
  void wake();
  /// The thread ends once the queue is empty; called when the device is closing.
  void finish(bool join);
  bool is_this_thread() const;

  StreamUsage usage() const;
  void reset_usage();

 private:
  struct Transfer {
    Copy copy;
    void* from = nullptr;
    void* to = nullptr;
    std::shared_ptr<EmulatedPhysical> source;  // null: the host
    std::shared_ptr<EmulatedPhysical> target;
    bool stalled = false;
    std::shared_ptr<const Cancellation> cancellation = nullptr;  // of one that takes long
  };
  struct Waiting {
    Ref<Event> event;
  };
  struct Op {
    EmulatedTime ready;  // when it was enqueued
    std::variant<Work, Transfer, Ref<EmulatedEvent>, Waiting> what;
  };
  using Lock = std::unique_lock<std::mutex>;

  void lose_on_request();
  void push(Op op);
  void serve(std::shared_ptr<EmulatedCore> keep);
  void execute(Work& work, EmulatedTime ready);
  void execute(Transfer& transfer, EmulatedTime ready);
  void execute(Ref<EmulatedEvent>& marker, EmulatedTime ready);
  void execute(Waiting& waiting, EmulatedTime ready);
  bool own_event_comes(const EmulatedEvent& event) const;
  std::exception_ptr hang(const Transfer& transfer);
  std::exception_ptr move(const Transfer& transfer, EmulatedTime ready);
  std::exception_ptr refusal() const;
  void sleep_until(EmulatedTime due, const Cancellation* cancellation = nullptr);
  void account(EmulatedTime begin, EmulatedTime end, bool copy, double bytes);
  void report(std::function<void(std::exception_ptr)> done, const std::exception_ptr& error);
  void keep_failure(const std::exception_ptr& error);
  std::shared_ptr<EmulatedFailure> unreported_failure() const;

  EmulatedCore& core_;
  const StreamKind kind_;
  const int index_;

  mutable std::mutex mutex_;           // of all below but what says otherwise
  std::condition_variable pushed_;     // or closing
  std::condition_variable interrupt_;  // an event is done, or the device lost or closing
  std::condition_variable idle_;
  std::deque<Op> queue_;
  bool busy_ = false;
  std::thread thread_;
  std::shared_ptr<EmulatedFailure> failure_;
  StreamUsage usage_;
  EmulatedTime due_{};      // the thread's alone
  bool abandoned_ = false;  // the thread's alone: what it waited for never comes
};

}  // namespace tandem
