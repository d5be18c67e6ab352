#pragma once

// Streams of the stand-in's GPUs: a thread each, on which all that a GPU does comes one after the
// other.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/plugin/cuda_stand_in/activity.h"
#include "tests/plugin/cuda_stand_in/calls.h"
#include "tests/plugin/cuda_stand_in/graphs.h"

namespace stand_in {

/// How far a stream has come with what is recorded in it.
struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;

  std::uint64_t record() {
    std::lock_guard lock(mutex);
    return ++recorded;
  }
  void reach(std::uint64_t place) {
    std::lock_guard lock(mutex);
    reached = std::max(reached, place);
    changed.notify_all();
  }
  std::uint64_t latest() {
    std::lock_guard lock(mutex);
    return recorded;
  }
  void wait(std::uint64_t place) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= place; });
  }
};

/// The thread of a stream, and its tasks.
class Queue {
 public:
  Queue();
  ~Queue();
  void add(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  const Worker worker_;
  std::thread thread_;
};

}  // namespace stand_in

struct CUstream_st {
  CUstream_st() { ++stand_in::objects.streams; }
  ~CUstream_st() { --stand_in::objects.streams; }
  /// Something that a GPU whose error has stuck does not do any more. Captured where the stream is
  /// capturing.
  void add_work(std::function<void()> work);

  stand_in::Queue queue;
  std::unique_ptr<CUgraph_st> capturing;
};

struct CUevent_st {
  CUevent_st() { ++stand_in::objects.events; }
  ~CUevent_st() { --stand_in::objects.events; }
  std::shared_ptr<stand_in::Progress> progress = std::make_shared<stand_in::Progress>();
  /// When it was last come to, for events that were made to measure time.
  const std::shared_ptr<std::atomic<std::int64_t>> reached_at =
      std::make_shared<std::atomic<std::int64_t>>(0);
};
