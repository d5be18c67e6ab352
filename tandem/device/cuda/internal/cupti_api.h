#pragma once

#include <cstddef>
#include <cstdint>

// The part of CUPTI's binary interface that Tandem uses, so that it compiles where no toolkit is
// installed. Names and values are those of NVIDIA's cupti_activity.h and cupti_result.h (CUDA 12
// and 13); the functions themselves are looked up in the library at run time.

extern "C" {

using CUptiResult = int;  // 0: success
constexpr CUptiResult CUPTI_SUCCESS = 0;
constexpr std::uint32_t CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1;

enum CUpti_ActivityKind : std::uint32_t {
  CUPTI_ACTIVITY_KIND_MEMCPY = 1,
  CUPTI_ACTIVITY_KIND_MEMSET = 2,
  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10
};

enum CUpti_ActivityMemcpyKind : std::uint8_t {
  CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
  CUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2
};

/// What all records begin with.
struct CUpti_Activity {
  CUpti_ActivityKind kind;
};

/// What the records of kernels of all versions begin with (CUpti_ActivityKernel4 and later).
struct CuptiKernelRecord {
  CUpti_ActivityKind kind;
  std::uint8_t cache_config, shared_memory_config;
  std::uint16_t registers_per_thread;
  std::uint32_t partitioned_cache_requested, partitioned_cache_executed;
  std::uint64_t start, end, completed;
  std::uint32_t device_id, context_id, stream_id;
  std::int32_t grid[3], block[3];
  std::int32_t static_shared_memory, dynamic_shared_memory;
  std::uint32_t local_memory_per_thread, local_memory_total;
  std::uint32_t correlation_id;
  std::int64_t grid_id;
  const char* name;
};

/// CUpti_ActivityMemcpy and later.
struct CuptiMemcpyRecord {
  CUpti_ActivityKind kind;
  std::uint8_t copy_kind, source_kind, target_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device_id, context_id, stream_id;
};

/// CUpti_ActivityMemset and later.
struct CuptiMemsetRecord {
  CUpti_ActivityKind kind;
  std::uint32_t value;
  std::uint64_t bytes, start, end;
  std::uint32_t device_id, context_id, stream_id;
};

using CUpti_BuffersCallbackRequestFunc = void (*)(std::uint8_t** buffer, std::size_t* size,
                                                  std::size_t* max_records);
using CUpti_BuffersCallbackCompleteFunc = void (*)(void* context, std::uint32_t stream,
                                                   std::uint8_t* buffer, std::size_t size,
                                                   std::size_t valid_size);
using CUpti_TimestampCallbackFunc = std::uint64_t (*)();
}
