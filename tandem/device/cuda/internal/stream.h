#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tandem/device/cuda/internal/gpu.h"

namespace tandem::cuda {

/// A point in a stream: first the stream's launcher issues it to the GPU, then it is over there.
class EventState {
 public:
  explicit EventState(Gpu& gpu) : gpu_(gpu) {}
  ~EventState();
  EventState(const EventState&) = delete;
  EventState& operator=(const EventState&) = delete;

  /// Puts it into the stream; without effect on a lost GPU.
  void issue(CUstream stream);
  /// Blocks until the launcher of its stream has come to it. Null if there is nothing on the GPU to
  /// wait for.
  CUevent issued();
  /// Blocks until the GPU has come to it.
  void wait_on_gpu();
  void set_over();
  bool over() const;
  void wait();

 private:
  Gpu& gpu_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  CUevent event_ = nullptr;
  bool issued_ = false;
  bool over_ = false;
};

/// A CUDA stream with two threads: the launcher runs what is enqueued, in order, which hands work
/// to the GPU; the completer waits for the GPU and reports that it is over. So `run` may launch and
/// return, `done` comes when the GPU is done, and the GPU always has the next work at hand.
class StreamState {
 public:
  explicit StreamState(TandemDevice* device);
  ~StreamState();
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  void enqueue(const TandemWork& work);
  void enqueue(const TandemCopy& copy);
  std::shared_ptr<EventState> record();
  void wait_for(std::shared_ptr<EventState> event);

  /// The CUDA stream that the calling thread launches into, for kernels; null outside of them.
  static CUstream current();
  /// Device memory of the stream that the calling thread launches into, for what is launched until
  /// the next call. Only within a kernel. Throws Failure.
  static void* scratch(std::size_t bytes);

 private:
  enum class Kind { kWork, kCopy, kRecord, kWait };
  struct Entry {
    Kind kind = Kind::kWork;
    TandemWork work = {};
    TandemCopy copy = {};
    std::shared_ptr<EventState> event;
  };
  // What the launcher has handed to the GPU: over when the marker is.
  struct Issued {
    void (*done)(void*, const TandemStatus*) = nullptr;
    void* arg = nullptr;
    TandemStatus status;
    CUevent marker = nullptr;
    std::shared_ptr<EventState> recorded;  // over when the GPU has come to it
    std::shared_ptr<EventState> awaited;   // kept until the GPU has come past it
  };

  void refuse_if_lost() const;
  void append(Entry entry);
  void launch_all();
  void complete_all();
  Issued launch(Entry& entry);
  void copy(const TandemCopy& copy);
  void complete(Issued& issued);
  CUevent take_marker();
  void* own_scratch(std::size_t bytes);

  Gpu& gpu_;
  CUstream stream_ = nullptr;
  CUdeviceptr scratch_ = 0;  // the launcher's, as its size
  std::size_t scratch_bytes_ = 0;

  std::mutex mutex_;  // for the queues, the markers and the ends
  std::condition_variable entered_;
  std::condition_variable issued_;
  std::deque<Entry> entries_;
  std::deque<Issued> issues_;
  std::vector<CUevent> markers_;  // unused
  bool ending_ = false;
  bool launched_all_ = false;
  std::thread launcher_;
  std::thread completer_;
};

}  // namespace tandem::cuda

struct TandemStream {
  explicit TandemStream(TandemDevice* device) : state(device) {}
  tandem::cuda::StreamState state;
};

struct TandemEvent {
  std::shared_ptr<tandem::cuda::EventState> state;
};
