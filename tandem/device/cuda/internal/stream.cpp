#include "tandem/device/cuda/internal/stream.h"

#include <algorithm>
#include <utility>

namespace tandem::cuda {
namespace {

constexpr unsigned kEventFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;

StreamState*& launching_into() {
  thread_local StreamState* stream = nullptr;
  return stream;
}

TandemStatus no_error() {
  TandemStatus status;
  status.size = sizeof(status);
  status.code = TANDEM_OK;
  status.message[0] = '\0';
  return status;
}

CUdeviceptr on_gpu(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

}  // namespace

// ---- Events ----

EventState::~EventState() {
  if (event_) driver().p_cuEventDestroy(event_);
}

void EventState::issue(CUstream stream) {
  TandemStatus ignored = no_error();
  CUevent event = nullptr;
  if (gpu_.lost().empty()) {
    guarded(&ignored, [&] {
      gpu_.check(driver().p_cuEventCreate(&event, kEventFlags), "cuEventCreate");
      gpu_.check(driver().p_cuEventRecord(event, stream), "cuEventRecord");
    });
  }
  std::lock_guard lock(mutex_);
  event_ = event;
  issued_ = true;
  changed_.notify_all();
}

CUevent EventState::issued() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return issued_; });
  return over_ ? nullptr : event_;
}

void EventState::wait_on_gpu() {
  CUevent event = issued();
  TandemStatus ignored = no_error();
  if (event) {
    guarded(&ignored,
            [&] { gpu_.check(driver().p_cuEventSynchronize(event), "cuEventSynchronize"); });
  }
}

void EventState::set_over() {
  std::lock_guard lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

bool EventState::over() const {
  std::lock_guard lock(mutex_);
  return over_;
}

void EventState::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_; });
}

// ---- Streams ----

StreamState::StreamState(TandemDevice* device) : gpu_(*device->gpu) {
  {
    const ContextScope context(gpu_);
    gpu_.check(driver().p_cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  launcher_ = std::thread([this] { launch_all(); });
  completer_ = std::thread([this] { complete_all(); });
}

StreamState::~StreamState() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  entered_.notify_all();
  launcher_.join();
  completer_.join();
  for (CUevent marker : markers_) driver().p_cuEventDestroy(marker);
  if (scratch_) {
    TandemStatus ignored = no_error();
    guarded(&ignored, [&] {
      const ContextScope context(gpu_);
      gpu_.check(driver().p_cuMemFree(scratch_), "cuMemFree");
    });
  }
  driver().p_cuStreamDestroy(stream_);
}

CUstream StreamState::current() { return launching_into() ? launching_into()->stream_ : nullptr; }

void* StreamState::scratch(std::size_t bytes) {
  if (!launching_into()) throw Failure(TANDEM_INTERNAL, "scratch memory outside of a kernel");
  return launching_into()->own_scratch(bytes);
}

// What was launched before may still use the old memory, so growing waits for it; sizes double, so
// that it happens seldom.
void* StreamState::own_scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    const std::size_t old = scratch_bytes_;
    gpu_.check(driver().p_cuStreamSynchronize(stream_), "cuStreamSynchronize");
    if (scratch_) driver().p_cuMemFree(scratch_);
    scratch_ = 0;
    scratch_bytes_ = 0;
    const std::size_t wanted = std::max({bytes, 2 * old, std::size_t{1} << 16});
    gpu_.check(driver().p_cuMemAlloc(&scratch_, wanted), "cuMemAlloc");
    scratch_bytes_ = wanted;
  }
  return reinterpret_cast<void*>(scratch_);
}

void StreamState::refuse_if_lost() const {
  const std::string why = gpu_.lost();
  if (!why.empty()) throw Failure(TANDEM_UNAVAILABLE, why);
}

void StreamState::append(Entry entry) {
  std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  entered_.notify_one();
}

void StreamState::enqueue(const TandemWork& work) {
  refuse_if_lost();
  append({.kind = Kind::kWork, .work = work, .copy = {}, .event = nullptr});
}

void StreamState::enqueue(const TandemCopy& copy) {
  refuse_if_lost();
  append({.kind = Kind::kCopy, .work = {}, .copy = copy, .event = nullptr});
}

std::shared_ptr<EventState> StreamState::record() {
  auto event = std::make_shared<EventState>(gpu_);
  append({.kind = Kind::kRecord, .work = {}, .copy = {}, .event = event});
  return event;
}

void StreamState::wait_for(std::shared_ptr<EventState> event) {
  append({.kind = Kind::kWait, .work = {}, .copy = {}, .event = std::move(event)});
}

CUevent StreamState::take_marker() {
  {
    std::lock_guard lock(mutex_);
    if (!markers_.empty()) {
      CUevent marker = markers_.back();
      markers_.pop_back();
      return marker;
    }
  }
  CUevent marker = nullptr;
  gpu_.check(driver().p_cuEventCreate(&marker, kEventFlags), "cuEventCreate");
  return marker;
}

void StreamState::copy(const TandemCopy& copy) {
  if (copy.bytes == 0) return;
  const Driver& d = driver();
  const auto bytes = static_cast<std::size_t>(copy.bytes);
  if (copy.kind == TANDEM_COPY_TO_DEVICE) {
    gpu_.check(d.p_cuMemcpyHtoDAsync(on_gpu(copy.to), copy.from, bytes, stream_),
               "a copy to the GPU");
  } else if (copy.kind == TANDEM_COPY_TO_HOST) {
    gpu_.check(d.p_cuMemcpyDtoHAsync(copy.to, on_gpu(copy.from), bytes, stream_),
               "a copy from the GPU");
  } else if (copy.from_device->gpu == copy.to_device->gpu) {
    gpu_.check(d.p_cuMemcpyDtoDAsync(on_gpu(copy.to), on_gpu(copy.from), bytes, stream_),
               "a copy on the GPU");
  } else {
    gpu_.check(
        d.p_cuMemcpyPeerAsync(on_gpu(copy.to), copy.to_device->gpu->context(), on_gpu(copy.from),
                              copy.from_device->gpu->context(), bytes, stream_),
        "a copy between GPUs");
  }
}

StreamState::Issued StreamState::launch(Entry& entry) {
  Issued issued{.status = no_error()};
  switch (entry.kind) {
    case Kind::kRecord:
      entry.event->issue(stream_);
      issued.recorded = std::move(entry.event);
      return issued;
    case Kind::kWait: {
      CUevent event = entry.event->issued();
      if (!event || !gpu_.lost().empty()) return issued;
      TandemStatus ignored = no_error();
      guarded(&ignored, [&] {
        gpu_.check(driver().p_cuStreamWaitEvent(stream_, event, CU_EVENT_WAIT_DEFAULT),
                   "cuStreamWaitEvent");
      });
      issued.awaited = std::move(entry.event);
      return issued;
    }
    case Kind::kWork:
    case Kind::kCopy: break;
  }
  const bool works = entry.kind == Kind::kWork;
  issued.done = works ? entry.work.done : entry.copy.done;
  issued.arg = works ? entry.work.arg : entry.copy.arg;
  guarded(&issued.status, [&] {
    refuse_if_lost();
    if (works) {
      if (entry.work.on_host != 0) {
        gpu_.check(driver().p_cuStreamSynchronize(stream_), "cuStreamSynchronize");
      }
      entry.work.run(entry.work.arg);
      if (entry.work.on_host != 0) return;
    } else {
      copy(entry.copy);
    }
    issued.marker = take_marker();
    gpu_.check(driver().p_cuEventRecord(issued.marker, stream_), "cuEventRecord");
  });
  return issued;
}

void StreamState::launch_all() {
  driver().p_cuCtxSetCurrent(gpu_.context());
  launching_into() = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    entered_.wait(lock, [&] { return ending_ || !entries_.empty(); });
    if (entries_.empty()) break;
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    lock.unlock();
    Issued issued = launch(entry);
    lock.lock();
    issues_.push_back(std::move(issued));
    issued_.notify_one();
  }
  launched_all_ = true;
  issued_.notify_one();
}

void StreamState::complete(Issued& issued) {
  if (issued.marker && issued.status.code == TANDEM_OK) {
    guarded(&issued.status,
            [&] { gpu_.check(driver().p_cuEventSynchronize(issued.marker), "work on the GPU"); });
  }
  if (issued.done) issued.done(issued.arg, &issued.status);
  if (issued.recorded) {
    issued.recorded->wait_on_gpu();
    issued.recorded->set_over();
  }
}

void StreamState::complete_all() {
  driver().p_cuCtxSetCurrent(gpu_.context());
  std::unique_lock lock(mutex_);
  for (;;) {
    issued_.wait(lock, [&] { return launched_all_ || !issues_.empty(); });
    if (issues_.empty()) return;
    Issued issued = std::move(issues_.front());
    issues_.pop_front();
    lock.unlock();
    complete(issued);
    lock.lock();
    if (issued.marker) markers_.push_back(issued.marker);
  }
}

}  // namespace tandem::cuda
