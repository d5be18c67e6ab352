#include "tandem/device/cuda/internal/activity_trace.h"

#include <cxxabi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>

#include "tandem/core/never_destroyed.h"
#include "tandem/device/cuda/internal/driver.h"

namespace tandem::cuda {
namespace {

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
constexpr std::size_t kBuffer = std::size_t{1} << 20, kBufferAlignment = 8;

std::uint64_t steady_now() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

// As it is written in the source, if the compiler has made a symbol of it.
std::string readable(const char* name) {
  if (!name) return "kernel";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return text ? std::string(text.get()) : std::string(name);
}

const char* name_of_copy(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "copy to the device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "copy to the host";
    default: return "copy on the device";
  }
}

template <class Record>
ActivityTrace::Event event_of(std::string name, const Record& record, std::uint64_t bytes) {
  return {.name = std::move(name),
          .device = record.device_id,
          .stream = record.stream_id,
          .begin_ns = static_cast<std::int64_t>(record.start),
          .end_ns = static_cast<std::int64_t>(record.end),
          .bytes = bytes};
}

ActivityTrace::Event event_of(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const CuptiKernelRecord&>(record);
      return event_of(readable(kernel.name), kernel, 0);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const CuptiMemcpyRecord&>(record);
      return event_of(name_of_copy(copy.copy_kind), copy, copy.bytes);
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& set = reinterpret_cast<const CuptiMemsetRecord&>(record);
      return event_of("setting of memory", set, set.bytes);
    }
  }
  return {};
}

}  // namespace

ActivityTrace& ActivityTrace::get() {
  static NeverDestroyed<ActivityTrace> one([] { return ActivityTrace(); });
  return *one;
}

ActivityTrace::ActivityTrace()
    : library_({.name = "CUPTI",
                .file = "libcupti.so.",
                .majors = toolkit_majors(),
                .without = "profiles lack the times at which the GPU ran kernels"}) {
#define TANDEM_CUPTI_FIND(NAME) library_.find(#NAME, NAME##_);
  TANDEM_CUPTI_FIND(cuptiGetVersion)
  TANDEM_CUPTI_FIND(cuptiGetResultString)
  TANDEM_CUPTI_FIND(cuptiActivityRegisterCallbacks)
  TANDEM_CUPTI_FIND(cuptiActivityRegisterTimestampCallback)
  TANDEM_CUPTI_FIND(cuptiActivityEnable)
  TANDEM_CUPTI_FIND(cuptiActivityDisable)
  TANDEM_CUPTI_FIND(cuptiActivityFlushAll)
  TANDEM_CUPTI_FIND(cuptiActivityGetNextRecord)
#undef TANDEM_CUPTI_FIND
  std::uint32_t version = 0;
  if (library_.usable() && cuptiGetVersion_(&version) == CUPTI_SUCCESS)
    library_.set_version(std::to_string(library_.major()) + ", interface " +
                         std::to_string(version));
}

void ActivityTrace::check(CUptiResult result, const char* call) const {
  if (result == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  cuptiGetResultString_(result, &text);
  throw Failure(TANDEM_INTERNAL, std::string(call) + " of CUPTI fails: " +
                                     (text ? text : std::to_string(result).c_str()));
}

void ActivityTrace::begin(int gpu) {
  const MutexLock lock(mutex_);
  if (!registered_) {
    check(cuptiActivityRegisterCallbacks_(give_buffer, take_buffer),
          "cuptiActivityRegisterCallbacks");
    check(cuptiActivityRegisterTimestampCallback_(steady_now),
          "cuptiActivityRegisterTimestampCallback");
    registered_ = true;
  }
  if (traced_.empty()) {
    const auto first = std::begin(kKinds);
    for (auto kind = first; kind != std::end(kKinds); ++kind) {
      const CUptiResult result = cuptiActivityEnable_(*kind);
      if (result == CUPTI_SUCCESS) continue;
      std::for_each(first, kind, cuptiActivityDisable_);
      check(result, "cuptiActivityEnable");
    }
  }
  traced_.insert(gpu);
}

std::vector<ActivityTrace::Event> ActivityTrace::end(int gpu) {
  const MutexLock lock(mutex_);
  if (traced_.erase(gpu) == 0) return {};
  cuptiActivityFlushAll_(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if (traced_.empty()) std::for_each(std::begin(kKinds), std::end(kKinds), cuptiActivityDisable_);
  const MutexLock events_lock(events_mutex_);
  const auto own = std::stable_partition(events_.begin(), events_.end(), [&](const Event& event) {
    return event.device != static_cast<std::uint32_t>(gpu);
  });
  std::vector<Event> events(std::make_move_iterator(own), std::make_move_iterator(events_.end()));
  events_.erase(own, events_.end());
  if (traced_.empty()) events_.clear();
  return events;
}

// Where there is no memory CUPTI drops its records.
void ActivityTrace::give_buffer(std::uint8_t** buffer, std::size_t* size,
                                std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBuffer));
  *size = *buffer ? kBuffer : 0;
  *max_records = 0;  // as many as fit
}

void ActivityTrace::take_buffer(void*, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                std::size_t valid_size) {
  TandemStatus ignored;
  guarded(&ignored, [&] { get().read(buffer, valid_size); });
  std::free(buffer);
}

// Those of kernels that are not over have no end.
void ActivityTrace::read(std::uint8_t* buffer, std::size_t bytes) {
  std::vector<Event> read;
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord_(buffer, bytes, &record) == CUPTI_SUCCESS) {
    Event event = event_of(*record);
    if (event.end_ns != 0) read.push_back(std::move(event));
  }
  const MutexLock lock(events_mutex_);
  events_.insert(events_.end(), std::make_move_iterator(read.begin()),
                 std::make_move_iterator(read.end()));
}

}  // namespace tandem::cuda
