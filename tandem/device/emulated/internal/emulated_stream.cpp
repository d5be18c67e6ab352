#include "tandem/device/emulated/internal/emulated_stream.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/emulated/internal/emulated_core.h"

namespace tandem {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds: a shorter copy is not worth a cancellation's callback.
constexpr double kLongCopy = 0.005;

// While a device with modelled time calls `done`: how late that is by the device's clock. What is
// enqueued meanwhile counts as enqueued that much earlier.
thread_local Clock::duration t_lateness{0};

EmulatedTime enqueue_time() { return Clock::now() - t_lateness; }

void name_this_thread(const EmulatedCore& core, StreamKind kind) {
  const std::size_t at = core.name().rfind("device:");
  std::string name = core.name().substr(at == std::string::npos ? 0 : at + 7);
  name.resize(std::min<std::size_t>(name.size(), 11));
  name += kind == StreamKind::kCompute ? "" : kind == StreamKind::kCopyIn ? " in" : " out";
  pthread_setname_np(pthread_self(), name.c_str());
}

// One end of a copy: where the bytes are, and whose they are.
struct End {
  std::byte* at = nullptr;
  EmulatedCore* core = nullptr;  // null: the host
};

End end_of(const Ref<Buffer>& buffer, std::size_t offset, std::size_t bytes, const char* side) {
  if (!buffer) throw InvalidArgumentError(cat("A copy has nothing to copy ", side, '.'));
  if (offset > buffer->size() || bytes > buffer->size() - offset) {
    throw InvalidArgumentError(cat("A copy of ", bytes, " bytes at offset ", offset,
                                   " does not lie in the ", buffer->size(),
                                   " bytes of memory that it copies ", side, '.'));
  }
  auto* at = static_cast<std::byte*>(buffer->data()) + offset;
  if (buffer->space() == nullptr) return {at, nullptr};
  auto* device = dynamic_cast<EmulatedDevice*>(buffer->space()->device);
  if (!device) {
    throw InvalidArgumentError(cat("A copy between an emulated device and memory ", side,
                                   " another kind of device has to pass through the host."));
  }
  return {at + buffer->space()->kernel_offset, device->core().get()};
}

std::exception_ptr stopped_by(const Cancellation& cancellation, const std::string& what) {
  if (cancellation.reason() == Code::kDeadlineExceeded)
    return std::make_exception_ptr(
        DeadlineExceededError(cat(what, " had not ended when its deadline passed.")));
  return std::make_exception_ptr(CancelledError(cat(what, " was cancelled.")));
}

}  // namespace

EmulatedStream::EmulatedStream(EmulatedCore& core, StreamKind kind, int index)
    : core_(core), kind_(kind), index_(index) {}

EmulatedStream::~EmulatedStream() = default;

void EmulatedStream::enqueue(Work work) {
  lose_on_request();
  push(Op{enqueue_time(), std::move(work)});
}

void EmulatedStream::enqueue(Copy copy) {
  const End from = end_of(copy.from, copy.from_offset, copy.bytes, "from");
  const End to = end_of(copy.to, copy.to_offset, copy.bytes, "to");
  if (from.core != &core_ && to.core != &core_) {
    throw InvalidArgumentError(
        cat("A copy on a stream of ", core_.name(), " has neither side in its memory."));
  }
  const std::uint64_t backend = core_.physical()->backend();
  for (const End& end : {from, to}) {
    if (end.core && end.core->physical()->backend() != backend) {
      throw InvalidArgumentError(cat("A copy between ", core_.name(), " and ", end.core->name(),
                                     " of another runtime has to pass through the host."));
    }
  }
  lose_on_request();
  Transfer transfer{.copy = std::move(copy), .from = from.at, .to = to.at};
  if (from.core) transfer.source = from.core->physical();
  if (to.core) transfer.target = to.core->physical();
  transfer.stalled = core_.physical()->stalls_this_copy();
  const double seconds = core_.physical()->link_seconds(static_cast<double>(transfer.copy.bytes));
  if (transfer.stalled || seconds > kLongCopy) transfer.cancellation = copy_cancellation();
  push(Op{enqueue_time(), std::move(transfer)});
}

Ref<Event> EmulatedStream::record() {
  Ref<EmulatedEvent> event = make_ref<EmulatedEvent>(core_.reports(), &core_);
  {
    Lock lock(mutex_);
    if (thread_.joinable() && !core_.closing()) {
      queue_.push_back(Op{enqueue_time(), event});
      pushed_.notify_one();
      return event;
    }
  }
  // Nothing was ever enqueued, or nothing is taken any more.
  std::shared_ptr<EmulatedFailure> failure;
  if (core_.stopped()) {
    failure =
        std::make_shared<EmulatedFailure>(core_.lost() ? core_.lost_error() : core_.closed_error());
  }
  event->finish(EmulatedTime{}, std::move(failure));
  return event;
}

void EmulatedStream::wait_for(Ref<Event> event) {
  if (!event) throw InvalidArgumentError("A stream cannot wait for no event.");
  if (core_.stopped()) return;
  push(Op{enqueue_time(), Waiting{std::move(event)}});
}

void EmulatedStream::synchronize() {
  Lock lock(mutex_);
  if (thread_.get_id() == std::this_thread::get_id()) {
    throw FailedPreconditionError(
        cat("Work on ", core_.name(), " cannot wait for its own stream."));
  }
  idle_.wait(lock, [this] { return queue_.empty() && !busy_; });
  const std::shared_ptr<EmulatedFailure> failure = unreported_failure();
  lock.unlock();
  if (failure && !failure->reported.exchange(true)) std::rethrow_exception(failure->error);
  core_.reports()->raise();
}

void EmulatedStream::wake() {
  std::lock_guard lock(mutex_);
  pushed_.notify_all();
  interrupt_.notify_all();
}

bool EmulatedStream::is_this_thread() const {
  std::lock_guard lock(mutex_);
  return thread_.get_id() == std::this_thread::get_id();
}

void EmulatedStream::finish(bool join) {
  if (!thread_.joinable()) return;
  if (join) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

StreamUsage EmulatedStream::usage() const {
  std::lock_guard lock(mutex_);
  return usage_;
}

void EmulatedStream::reset_usage() {
  std::lock_guard lock(mutex_);
  usage_ = {};
}

// What is enqueued when the device is lost is still taken, and fails as all that is pending.
void EmulatedStream::lose_on_request() {
  if (core_.count_enqueue()) core_.physical()->lose("it failed on request (fault=lost)");
}

void EmulatedStream::push(Op op) {
  std::lock_guard lock(mutex_);
  if (core_.closing()) std::rethrow_exception(core_.closed_error());
  queue_.push_back(std::move(op));
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread(
          [this, keep = core_.shared_from_this()]() mutable { serve(std::move(keep)); });
    } catch (const std::system_error& error) {
      queue_.pop_back();
      throw ResourceExhaustedError(
          cat("The host has no thread left for a stream of ", core_.name(), ": ", error.what()));
    }
  }
  pushed_.notify_one();
}

void EmulatedStream::serve(std::shared_ptr<EmulatedCore> /*keep*/) {
  prctl(PR_SET_TIMERSLACK, 1UL);
  name_this_thread(core_, kind_);
  Lock lock(mutex_);
  for (;;) {
    pushed_.wait(lock, [this] { return !queue_.empty() || core_.closing(); });
    if (queue_.empty()) return;
    busy_ = true;
    {
      Op op = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      std::visit([&](auto& what) { execute(what, op.ready); }, op.what);
    }  // what the work held is released before anybody learns that the stream is idle
    lock.lock();
    busy_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

std::exception_ptr EmulatedStream::refusal() const {
  if (core_.lost()) return core_.lost_error();
  return abandoned_ ? core_.closed_error() : nullptr;
}

void EmulatedStream::execute(Work& work, EmulatedTime ready) {
  std::exception_ptr error = refusal();
  if (!error) {
    const EmulatedSpec& spec = core_.spec();
    const EmulatedTime real_begin = Clock::now();
    EmulatedTime begin = std::max(due_, ready);
    try {
      if (work.run) work.run();
    } catch (...) {
      error = std::current_exception();
    }
    if (!spec.timed) {
      begin = real_begin;
      due_ = Clock::now();
    } else if (work.on_host) {
      due_ = begin;
    } else {
      due_ =
          begin + emulated_duration(std::max(work.flops / spec.flops, work.bytes / spec.bandwidth));
      sleep_until(due_);
    }
    account(begin, due_, false, work.bytes);
    if (core_.lost()) error = core_.lost_error();
  }
  work.run = nullptr;
  report(std::move(work.done), error);
}

void EmulatedStream::execute(Transfer& transfer, EmulatedTime ready) {
  std::exception_ptr error = refusal();
  if (!error && transfer.stalled) error = hang(transfer);
  if (!error) error = move(transfer, ready);
  if (core_.lost()) error = core_.lost_error();
  transfer.copy.from = nullptr;
  transfer.copy.to = nullptr;
  report(std::move(transfer.copy.done), error);
}

std::exception_ptr EmulatedStream::hang(const Transfer& transfer) {
  const CancellationCallback watch(transfer.cancellation, [this] { wake(); });
  Lock lock(mutex_);
  interrupt_.wait(lock, [&] {
    return core_.stopped() || (transfer.cancellation && transfer.cancellation->cancelled());
  });
  if (core_.lost()) return core_.lost_error();
  if (core_.closing()) return core_.closed_error();
  return stopped_by(*transfer.cancellation,
                    cat("A copy on ", core_.name(), " that made no way (fault=stall)"));
}

// A cancellation ends the time that the copy takes, and then it has failed.
std::exception_ptr EmulatedStream::move(const Transfer& transfer, EmulatedTime ready) {
  EmulatedPhysical* const source = transfer.source.get();
  EmulatedPhysical* const target = transfer.target.get();
  const auto bytes = static_cast<double>(transfer.copy.bytes);
  EmulatedTime begin = std::max(due_, ready);
  double seconds = 0;
  if (source == target) {
    seconds = bytes / source->spec().bandwidth;
  } else if (!source) {
    seconds = target->link_seconds(bytes);
    begin = EmulatedPhysical::reserve_in(*target, begin, seconds);
  } else if (!target) {
    seconds = source->link_seconds(bytes);
    begin = EmulatedPhysical::reserve_out(*source, begin, seconds);
  } else {
    seconds = std::max(source->link_seconds(bytes), target->link_seconds(bytes));
    begin = EmulatedPhysical::reserve_between(*source, *target, begin, seconds);
  }
  due_ = begin + emulated_duration(seconds);
  if (transfer.copy.bytes != 0) {
    std::memmove(transfer.to, transfer.from, transfer.copy.bytes);
  }
  sleep_until(due_, transfer.cancellation.get());
  const bool cancelled =
      transfer.cancellation && transfer.cancellation->cancelled() && Clock::now() < due_;
  if (cancelled) due_ = std::max(begin, Clock::now());
  account(begin, due_, true, bytes);
  if (!cancelled) return nullptr;
  return stopped_by(*transfer.cancellation,
                    cat("A copy of ", transfer.copy.bytes, " bytes on ", core_.name()));
}

void EmulatedStream::execute(Ref<EmulatedEvent>& marker, EmulatedTime /*ready*/) {
  std::shared_ptr<EmulatedFailure> failure;
  {
    std::lock_guard lock(mutex_);
    failure = unreported_failure();
  }
  if (!failure) {
    if (std::exception_ptr error = refusal()) {
      failure = std::make_shared<EmulatedFailure>(std::move(error));
    }
  }
  marker->finish(due_, std::move(failure));
}

void EmulatedStream::execute(Waiting& waiting, EmulatedTime /*ready*/) {
  if (refusal()) return;
  Event& event = *waiting.event;
  auto* own_kind = dynamic_cast<EmulatedEvent*>(&event);
  if (own_kind && !event.done()) {
    own_kind->notify([this, keep = core_.shared_from_this()] { wake(); });
  }
  Lock lock(mutex_);
  const auto over = [&] {
    return event.done() || core_.lost() ||
           (core_.closing() && !(own_kind && own_event_comes(*own_kind)));
  };
  if (own_kind) {
    interrupt_.wait(lock, over);
  } else {
    // An event of another backend has no callback: poll it, less and less often.
    auto pause = std::chrono::microseconds(20);
    while (!over()) {
      interrupt_.wait_for(lock, pause);
      pause = std::min(pause * 2, std::chrono::microseconds(1000));
    }
  }
  if (event.done()) {
    if (own_kind) due_ = std::max(due_, own_kind->at());
  } else {
    abandoned_ = true;
  }
}

// While the device closes, its own streams still get to their events; other devices' may not.
bool EmulatedStream::own_event_comes(const EmulatedEvent& event) const {
  return event.owner() == &core_;
}

void EmulatedStream::sleep_until(EmulatedTime due, const Cancellation* cancellation) {
  if (Clock::now() >= due) return;
  Cancellation::Token token = 0;
  if (cancellation) {
    token = cancellation->register_callback([this] { wake(); });
    if (token == 0) return;
  }
  {
    Lock lock(mutex_);
    interrupt_.wait_until(
        lock, due, [&] { return core_.stopped() || (cancellation && cancellation->cancelled()); });
  }
  if (cancellation) cancellation->deregister_callback(token);
}

void EmulatedStream::account(EmulatedTime begin, EmulatedTime end, bool copy, double bytes) {
  {
    std::lock_guard lock(mutex_);
    usage_.busy_seconds += std::chrono::duration<double>(end - begin).count();
    usage_.works += 1;
    usage_.bytes += bytes;
  }
  core_.record({kind_, index_, copy, bytes, begin, end});
}

void EmulatedStream::report(std::function<void(std::exception_ptr)> done,
                            const std::exception_ptr& error) {
  if (!done) {
    if (error) keep_failure(error);
    return;
  }
  if (core_.spec().timed) t_lateness = std::max(Clock::duration{0}, Clock::now() - due_);
  try {
    done(error);
  } catch (...) {
    keep_failure(std::current_exception());
  }
  t_lateness = Clock::duration{0};
}

void EmulatedStream::keep_failure(const std::exception_ptr& error) {
  std::lock_guard lock(mutex_);
  if (!unreported_failure()) failure_ = std::make_shared<EmulatedFailure>(error);
}

// With the lock held.
std::shared_ptr<EmulatedFailure> EmulatedStream::unreported_failure() const {
  return failure_ && !failure_->reported ? failure_ : nullptr;
}

}  // namespace tandem
