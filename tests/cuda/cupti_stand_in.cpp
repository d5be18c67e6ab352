// A stand-in for CUPTI: the part of it that the CUDA layer uses, of what the stand-in for the
// driver does. With CUPTI_STAND_IN_REFUSES in the environment it may not look, as on machines whose
// administrator keeps that to himself.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "tandem/device/cuda/internal/cupti_api.h"

#include "tests/cuda/library_stand_in.h"

namespace {

constexpr CUptiResult kInvalidParameter = 1, kMaxLimitReached = 12, kInsufficientPrivileges = 35;
constexpr std::size_t kRecordBytes = 128;  // all records take as much

struct Record {
  alignas(8) std::uint8_t bytes[kRecordBytes] = {};
};

struct State {
  std::mutex mutex;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_TimestampCallbackFunc now = nullptr;
  std::set<CUpti_ActivityKind> enabled;
  std::vector<Record> records;
};
State& state() {
  static auto* all = new State;  // streams' threads may outlive static objects
  return *all;
}

CUpti_ActivityKind kind_of(StandInActivity::Kind kind) {
  switch (kind) {
    case StandInActivity::kKernel: return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    case StandInActivity::kSet: return CUPTI_ACTIVITY_KIND_MEMSET;
    default: return CUPTI_ACTIVITY_KIND_MEMCPY;
  }
}

template <class T>
Record record_of(T record, const StandInActivity& a, std::uint64_t start, std::uint64_t end) {
  record.kind = kind_of(a.kind);
  record.start = start;
  record.end = end;
  record.device_id = static_cast<std::uint32_t>(a.gpu);
  record.stream_id = a.stream;
  static_assert(sizeof(T) <= kRecordBytes);
  Record made;
  std::memcpy(made.bytes, &record, sizeof(T));
  return made;
}

void seen(const StandInActivity& a) {
  thread_local std::uint64_t start = 0;
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!s.enabled.contains(kind_of(a.kind))) return;
  if (a.begins) {
    start = s.now();
    return;
  }
  if (start == 0) return;  // it began before
  const std::uint64_t end = s.now();
  if (a.kind == StandInActivity::kKernel) {
    CuptiKernelRecord kernel = {};
    kernel.name = a.name;
    s.records.push_back(record_of(kernel, a, start, end));
  } else if (a.kind == StandInActivity::kSet) {
    CuptiMemsetRecord set = {};
    set.bytes = a.bytes;
    s.records.push_back(record_of(set, a, start, end));
  } else {
    CuptiMemcpyRecord copy = {};
    copy.copy_kind = 8;  // on the device
    if (a.kind == StandInActivity::kToGpu) copy.copy_kind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    if (a.kind == StandInActivity::kToHost) copy.copy_kind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    copy.bytes = a.bytes;
    s.records.push_back(record_of(copy, a, start, end));
  }
  start = 0;
}

}  // namespace

#define STAND_IN extern "C" __attribute__((visibility("default")))

STAND_IN CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = 130001;
  return CUPTI_SUCCESS;
}

STAND_IN CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == kInsufficientPrivileges ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "an error";
  return CUPTI_SUCCESS;
}

STAND_IN CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  std::lock_guard lock(state().mutex);
  state().request = request;
  state().complete = complete;
  return CUPTI_SUCCESS;
}

// As the library's, not while something is enabled.
STAND_IN CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc now) {
  std::lock_guard lock(state().mutex);
  if (!state().enabled.empty() || !now) return kInvalidParameter;
  state().now = now;
  return CUPTI_SUCCESS;
}

STAND_IN CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  std::lock_guard lock(state().mutex);
  // The second kind, so that the first must be taken back.
  if (std::getenv("CUPTI_STAND_IN_REFUSES") && !state().enabled.empty())
    return kInsufficientPrivileges;
  if (!state().request || !state().now) return kInvalidParameter;
  state().enabled.insert(kind);
  stand_in::driver().observe(seen);
  return CUPTI_SUCCESS;
}

STAND_IN CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  std::lock_guard lock(state().mutex);
  state().enabled.erase(kind);
  if (state().enabled.empty()) stand_in::driver().observe(nullptr);
  return CUPTI_SUCCESS;
}

STAND_IN CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  State& s = state();
  std::vector<Record> records;
  {
    std::lock_guard lock(s.mutex);
    records.swap(s.records);
  }
  for (std::size_t next = 0; next < records.size();) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0, most = 0;
    s.request(&buffer, &size, &most);
    std::size_t used = 0;
    for (; next < records.size() && used + kRecordBytes <= size; ++next, used += kRecordBytes)
      std::memcpy(buffer + used, records[next].bytes, kRecordBytes);
    if (used == 0) return kMaxLimitReached;
    s.complete(nullptr, 0, buffer, size, used);
  }
  return CUPTI_SUCCESS;
}

STAND_IN CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_size,
                                                CUpti_Activity** record) {
  auto* const last = reinterpret_cast<std::uint8_t*>(*record);
  std::uint8_t* const next = last ? last + kRecordBytes : buffer;
  if (next + kRecordBytes > buffer + valid_size) return kMaxLimitReached;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
