#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/device/cuda/internal/cupti_api.h"
#include "tandem/device/cuda/internal/nvidia_library.h"

namespace tandem::cuda {

/// When the GPUs ran the kernels and transfers that they were given, by CUPTI. Thread-safe.
class ActivityTrace {
 public:
  struct Event {
    std::string name;
    std::uint32_t device = 0, stream = 0;
    std::int64_t begin_ns = 0, end_ns = 0;  ///< of the steady clock
    std::uint64_t bytes = 0;
  };

  /// The process' one, opened at the first call.
  static ActivityTrace& get();

  const NvidiaLibrary& library() const { return library_; }
  /// Keeps what this GPU, by the driver's number, does from now on. Throws Failure.
  void begin(int gpu) TANDEM_EXCLUDES(mutex_, events_mutex_);
  /// What the GPU did since. None if it is not traced (any more).
  std::vector<Event> end(int gpu) TANDEM_EXCLUDES(mutex_, events_mutex_);

 private:
  ActivityTrace();
  void check(CUptiResult result, const char* call) const;
  static void give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records);
  static void take_buffer(void* context, std::uint32_t stream, std::uint8_t* buffer,
                          std::size_t size, std::size_t valid_size);
  void read(std::uint8_t* buffer, std::size_t bytes) TANDEM_EXCLUDES(events_mutex_);

  NvidiaLibrary library_;
  CUptiResult (*cuptiGetVersion_)(std::uint32_t* version) = nullptr;
  CUptiResult (*cuptiGetResultString_)(CUptiResult result, const char** text) = nullptr;
  CUptiResult (*cuptiActivityRegisterCallbacks_)(CUpti_BuffersCallbackRequestFunc request,
                                                 CUpti_BuffersCallbackCompleteFunc complete) =
      nullptr;
  CUptiResult (*cuptiActivityRegisterTimestampCallback_)(CUpti_TimestampCallbackFunc now) = nullptr;
  CUptiResult (*cuptiActivityEnable_)(CUpti_ActivityKind kind) = nullptr;
  CUptiResult (*cuptiActivityDisable_)(CUpti_ActivityKind kind) = nullptr;
  CUptiResult (*cuptiActivityFlushAll_)(std::uint32_t flags) = nullptr;
  CUptiResult (*cuptiActivityGetNextRecord_)(std::uint8_t* buffer, std::size_t valid_size,
                                             CUpti_Activity** record) = nullptr;

  Mutex mutex_;
  bool registered_ TANDEM_GUARDED_BY(mutex_) = false;
  std::set<int> traced_ TANDEM_GUARDED_BY(mutex_);
  Mutex events_mutex_;  // CUPTI hands buffers over on its own thread, or within a flush
  std::vector<Event> events_ TANDEM_GUARDED_BY(events_mutex_);
};

}  // namespace tandem::cuda
