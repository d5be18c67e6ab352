// What tests may ask of the stand-in (tests/plugin/cuda_stand_in.h).

#include <algorithm>
#include <mutex>
#include <utility>

#include "tests/plugin/cuda_stand_in.h"
#include "tests/plugin/cuda_stand_in/calls.h"
#include "tests/plugin/cuda_stand_in/memory.h"
#include "tests/plugin/cuda_stand_in/streams.h"

using namespace stand_in;

extern "C" {

__attribute__((visibility("default"))) const StandInControl* cuda_stand_in_control() {
  static const StandInControl control = {
      .calls = [] { return counts.driver_calls.load(); },
      .fail =
          [](long long nth, int result, int sticks) {
            failures().result = result;
            failures().sticks = sticks != 0;
            failures().left = nth;
          },
      .pending = [] { return failures().left.load() > 0 ? 1 : 0; },
      .used =
          [] {
            StandInUse use = {};
            for (std::size_t gpu = 0; gpu < kCount; ++gpu) {
              Memory& m = memory(gpu);
              std::lock_guard lock(m.mutex);
              use.device_bytes += static_cast<long long>(m.used);
            }
            use.streams = objects.streams;
            use.events = objects.events;
            use.graphs = objects.graphs;
            use.host_blocks = objects.host_blocks;
            use.reserved_ranges = stand_in::reserved_ranges();
            use.managed_blocks = counts.managed_blocks;
            return use;
          },
      .graph_launches = [] { return counts.graph_launches.load(); },
      .kernels = [] { return counts.kernels.load(); },
      .library_call = [](const char* name) { return static_cast<int>(enter(name)); },
      .add_kernel =
          [](CUstream_st* stream, std::function<void()> work) {
            if (stream->capturing) {
              ++stream->capturing->kernels;
            } else {
              ++counts.kernels;
            }
            stream->add_work(std::move(work));
          },
      .is_device_memory =
          [](const void* address, std::size_t bytes) {
            return known(reinterpret_cast<CUdeviceptr>(address), bytes) ? 1 : 0;
          },
      .counts =
          [] {
            return StandInCounts{counts.driver_calls, counts.kernels, counts.graph_launches,
                                 counts.bytes_to_gpu, counts.bytes_from_gpu};
          },
      .fail_function =
          [](const char* name, long long count, int result) {
            Failures& f = failures();
            std::lock_guard lock(f.naming);
            f.name = name;
            f.result_of_name = result;
            f.left_of_name = count;
          },
      .function_pending = [] { return failures().left_of_name.load(); },
      .leave_free =
          [](long long bytes) {
            for (std::size_t gpu = 0; gpu < kCount; ++gpu) {
              Memory& m = memory(gpu);
              std::lock_guard lock(m.mutex);
              m.others = 0;
              const auto left = static_cast<long long>(free_bytes(m));
              if (bytes >= 0) m.others = static_cast<std::size_t>(std::max(left - bytes, 0LL));
            }
          },
      .observe = [](void (*seen)(const StandInActivity&)) { stand_in::observe(seen); },
  };
  return &control;
}
}
