// Streams, what they do in order, and events in them.

#include "tests/plugin/cuda_stand_in/streams.h"

#include <atomic>
#include <chrono>
#include <shared_mutex>
#include <utility>

#include "tests/plugin/cuda_stand_in/contexts.h"
#include "tests/plugin/cuda_stand_in/memory.h"
#include "tests/plugin/cuda_stand_in/transfers.h"

using namespace stand_in;

namespace stand_in {
namespace {

Worker next_worker() {
  static std::atomic<unsigned> streams{0};
  return {contexts().empty() ? 0 : static_cast<int>(gpu_of(contexts().back())), ++streams};
}

}  // namespace

Queue::Queue() : worker_(next_worker()), thread_([this] { work(); }) {}

Queue::~Queue() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Queue::add(std::function<void()> task) {
  std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void Queue::work() {
  worker() = worker_;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace stand_in

void CUstream_st::add_work(std::function<void()> work) {
  if (capturing) return capturing->work.push_back(std::move(work));
  queue.add([work = std::move(work)] {
    std::shared_lock lock(failures().working);
    if (failures().stuck == CUDA_SUCCESS) work();
  });
}

namespace {

CUresult copy(CUstream stream, StandInActivity::Kind kind, void* to, const void* from,
              std::size_t bytes) {
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  stream->add_work([=] { transfer(kind, to, from, bytes); });
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

STAND_IN cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  ENTER();
  counts.bytes_to_gpu += static_cast<long long>(bytes);
  if (!known(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, StandInActivity::kToGpu, host(to), from, bytes);
}
STAND_IN cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  ENTER();
  counts.bytes_from_gpu += static_cast<long long>(bytes);
  if (!known(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, StandInActivity::kToHost, to, host(from), bytes);
}
STAND_IN cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  ENTER();
  if (!known(to, bytes) || !known(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, StandInActivity::kCopy, host(to), host(from), bytes);
}
STAND_IN cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                           std::size_t bytes, CUstream stream) {
  return cuMemcpyDtoDAsync(to, from, bytes, stream);
}

STAND_IN cuStreamCreate(CUstream* stream, unsigned) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = new CUstream_st;
  return CUDA_SUCCESS;
}
STAND_IN cuStreamDestroy(CUstream stream) {
  delete stream;
  return CUDA_SUCCESS;
}
STAND_IN cuStreamSynchronize(CUstream stream) {
  ENTER();
  Progress end;
  stream->queue.add([&] { end.reach(1); });
  end.wait(1);
  return CUDA_SUCCESS;
}
STAND_IN cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  ENTER();
  if (stream->capturing) return CUDA_ERROR_INVALID_VALUE;
  stream->capturing = std::make_unique<CUgraph_st>();
  return CUDA_SUCCESS;
}
STAND_IN cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  *graph = nullptr;
  if (!stream->capturing) return CUDA_ERROR_INVALID_VALUE;
  std::unique_ptr<CUgraph_st> captured = std::move(stream->capturing);
  ENTER();
  *graph = captured.release();
  return CUDA_SUCCESS;
}
STAND_IN cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream stream) {
  ENTER();
  if (!known(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  stream->add_work([=] { fill(host(to), value, bytes); });
  return CUDA_SUCCESS;
}
STAND_IN cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  ENTER();
  stream->queue.add(
      [progress = event->progress, place = event->progress->latest()] { progress->wait(place); });
  return CUDA_SUCCESS;
}
STAND_IN cuEventCreate(CUevent* event, unsigned) {
  ENTER();
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *event = new CUevent_st;
  return CUDA_SUCCESS;
}
STAND_IN cuEventDestroy(CUevent event) {
  delete event;
  return enter(__func__);
}
STAND_IN cuEventRecord(CUevent event, CUstream stream) {
  ENTER();
  stream->queue.add(
      [progress = event->progress, place = event->progress->record(), at = event->reached_at] {
        *at = std::chrono::steady_clock::now().time_since_epoch().count();
        progress->reach(place);
      });
  return CUDA_SUCCESS;
}
STAND_IN cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  ENTER();
  using Ticks = std::chrono::steady_clock::duration;
  const Ticks passed(end->reached_at->load() - begin->reached_at->load());
  *milliseconds = std::chrono::duration<float, std::milli>(passed).count();
  return CUDA_SUCCESS;
}
STAND_IN cuEventSynchronize(CUevent event) {
  ENTER();
  event->progress->wait(event->progress->latest());
  return CUDA_SUCCESS;
}
}
