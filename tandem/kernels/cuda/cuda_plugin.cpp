// The table of the plugin interface, and the two functions by which libtandem.so checks that this
// library is of its build and says which driver to open.

#include <new>
#include <string>

#include "tandem/core/error.h"
#include "tandem/core/internal/sanitizers.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/device/cuda/internal/activity_trace.h"
#include "tandem/device/cuda/internal/build_id.h"
#include "tandem/device/cuda/internal/collective.h"
#include "tandem/device/cuda/internal/gpu.h"
#include "tandem/device/cuda/internal/gpu_memory.h"
#include "tandem/device/cuda/internal/host_reads.h"
#include "tandem/device/cuda/internal/nccl.h"
#include "tandem/device/cuda/internal/nvrtc.h"
#include "tandem/device/cuda/internal/room.h"
#include "tandem/device/cuda/internal/stream.h"
#include "tandem/device/plugin.h"
#include "tandem/kernels/cuda/cublaslt/cublaslt.h"
#include "tandem/kernels/cuda/cudnn/cudnn.h"
#include "tandem/kernels/cuda/kernel_table.h"
#include "tandem/kernels/cuda/support/kernel_call.h"

// The driver to open where no other is named: tests build the library for their stand-in.
#if !defined(TANDEM_CUDA_DRIVER)
#define TANDEM_CUDA_DRIVER "libcuda.so.1"
#endif

namespace tandem::cuda {
namespace {

std::string& driver_name() {
  static NeverDestroyed<std::string> name([] { return std::string(TANDEM_CUDA_DRIVER); });
  return *name;
}

Gpu& gpu_at(std::int32_t ordinal) {
  const auto& all = gpus();
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= all.size()) {
    throw Failure(TANDEM_INVALID_ARGUMENT, "there is no GPU " + std::to_string(ordinal));
  }
  return *all[static_cast<std::size_t>(ordinal)];
}

std::int32_t device_count() { return static_cast<std::int32_t>(gpus().size()); }

void device_properties(std::int32_t physical, TandemDeviceProperties* properties,
                       TandemStatus* status) {
  guarded(status, [&] { gpu_at(physical).describe(properties); });
}

TandemDevice* device_open(const TandemDeviceOptions* options, TandemDeviceTraits* traits,
                          TandemStatus* status) {
  TandemDevice* device = nullptr;
  guarded(status, [&] {
    Gpu& gpu = gpu_at(options->physical);
    gpu.context();
    traits->kernel_offset = 0;  // device addresses are what kernels use
    device = new TandemDevice{&gpu};
  });
  return device;
}

void device_close(TandemDevice* device) { delete device; }

void device_lost(TandemDevice* device, TandemStatus* status) {
  if (!device->gpu->is_lost()) return;
  const std::string why = device->gpu->lost();
  if (!why.empty()) set(status, TANDEM_UNAVAILABLE, why);
}

void device_lose(TandemDevice* device) { device->gpu->lose("lost on request"); }

std::int32_t device_can_copy(TandemDevice* from, TandemDevice* to) {
  if (from->gpu == to->gpu) return 1;
  int can = 0;
  const CUresult result =
      driver().p_cuDeviceCanAccessPeer(&can, to->gpu->device(), from->gpu->device());
  return result == CUDA_SUCCESS && can != 0 ? 1 : 0;
}

void* memory_allocate(TandemDevice* device, std::uint64_t bytes, TandemStatus* status) {
  void* address = nullptr;
  guarded(status,
          [&] { address = allocate_memory(*device->gpu, static_cast<std::size_t>(bytes)); });
  return address;
}

void memory_free(TandemDevice* device, void* address, std::uint64_t) {
  free_memory(*device->gpu, address);
}

std::uint64_t granularity(TandemDevice* device) { return memory_granularity(*device->gpu); }

void* memory_reserve(TandemDevice* device, std::uint64_t bytes, TandemStatus* status) {
  void* address = nullptr;
  guarded(status,
          [&] { address = reserve_addresses(*device->gpu, static_cast<std::size_t>(bytes)); });
  return address;
}

void memory_unreserve(TandemDevice* device, void* address, std::uint64_t bytes) {
  free_addresses(*device->gpu, address, static_cast<std::size_t>(bytes));
}

void memory_commit(TandemDevice* device, void* address, std::uint64_t bytes, TandemStatus* status) {
  guarded(status, [&] { commit_memory(*device->gpu, address, static_cast<std::size_t>(bytes)); });
}

void memory_decommit(TandemDevice* device, void* address, std::uint64_t bytes) {
  decommit_memory(*device->gpu, address, static_cast<std::size_t>(bytes));
}

void* staging_allocate(TandemDevice* device, std::uint64_t bytes, TandemStatus* status) {
  void* address = nullptr;
  guarded(status, [&] {
    const ContextScope context(*device->gpu);
    device->gpu->check(driver().p_cuMemHostAlloc(&address, static_cast<std::size_t>(bytes),
                                                 CU_MEMHOSTALLOC_PORTABLE),
                       "cuMemHostAlloc");
  });
  return address;
}

void staging_free(TandemDevice* device, void* address, std::uint64_t) {
  TandemStatus ignored;
  guarded(&ignored, [&] {
    const ContextScope context(*device->gpu);
    device->gpu->check(driver().p_cuMemFreeHost(address), "cuMemFreeHost");
  });
}

std::uint64_t read_limit(TandemDevice* device) { return host_read_limit(*device->gpu); }

TandemStream* stream_create(TandemDevice* device, std::int32_t, std::int32_t,
                            TandemStatus* status) {
  TandemStream* stream = nullptr;
  guarded(status, [&] { stream = new TandemStream(device); });
  return stream;
}

void stream_destroy(TandemStream* stream) { delete stream; }

void stream_enqueue(TandemStream* stream, const TandemWork* work, TandemStatus* status) {
  guarded(status, [&] { stream->state.enqueue(*work); });
}

void stream_copy(TandemStream* stream, const TandemCopy* copy, TandemStatus* status) {
  guarded(status, [&] { stream->state.enqueue(*copy); });
}

void stream_add_copy(TandemStream* stream, const TandemCopy* copy, TandemStatus* status) {
  guarded(status, [&] { stream->state.add(*copy); });
}

void stream_settle(TandemStream* stream, TandemStatus* status) {
  guarded(status, [&] { stream->state.synchronize(); });
}

void stream_wait(TandemStream* stream, TandemEvent* event, TandemStatus* status) {
  guarded(status, [&] { stream->state.wait_for(event->state); });
}

TandemEvent* event_record(TandemStream* stream, TandemStatus* status) {
  TandemEvent* event = nullptr;
  guarded(status, [&] { event = new TandemEvent{stream->state.record()}; });
  return event;
}

std::int32_t event_done(TandemEvent* event) { return event->state->over() ? 1 : 0; }
void event_wait(TandemEvent* event) { event->state->wait(); }
void event_destroy(TandemEvent* event) { delete event; }

// What NvidiaLibrary::report says of each.
const char* libraries() {
  static NeverDestroyed<std::string> lines([] {
    return cat(cublaslt().report(), '\n', cudnn().report(), '\n', Nvrtc::get().library().report(),
               '\n', ActivityTrace::get().library().report(), '\n', Nccl::get().report(), '\n');
  });
  return lines->c_str();
}

void trace_begin(TandemDevice* device, TandemStatus* status) {
  guarded(status, [&] { ActivityTrace::get().begin(device->gpu->device()); });
}

void trace_end(TandemDevice* device, void (*report)(void*, const TandemTraceEvent*), void* arg) {
  for (const ActivityTrace::Event& event : ActivityTrace::get().end(device->gpu->device())) {
    const TandemTraceEvent seen{.size = sizeof(seen),
                                .name = event.name.c_str(),
                                .stream = event.stream,
                                .begin_ns = event.begin_ns,
                                .end_ns = event.end_ns,
                                .bytes = event.bytes};
    report(arg, &seen);
  }
}

std::int32_t collective_supported(std::int32_t kind, std::int32_t reduction, std::int32_t dtype) {
  return nccl_supports(kind, reduction, dtype) ? 1 : 0;
}

TandemCommunicator* communicator_create(TandemStream* const* streams, std::size_t num_streams,
                                        TandemStatus* status) {
  TandemCommunicator* communicator = nullptr;
  guarded(status, [&] { communicator = create_communicator(streams, num_streams); });
  return communicator;
}

void communicator_destroy(TandemCommunicator* communicator) { delete communicator; }

void communicator_enqueue(TandemCommunicator* communicator, const TandemCollective* work,
                          TandemStatus* status) {
  guarded(status, [&] { enqueue_collective(*communicator, *work); });
}

void fill_in(TandemPluginApi* plugin) {
  plugin->size = sizeof(*plugin);
  plugin->version_major = TANDEM_PLUGIN_VERSION_MAJOR;
  plugin->version_minor = TANDEM_PLUGIN_VERSION_MINOR;
  plugin->name = "cuda";
  plugin->device_type = "GPU";
  plugin->kernel_class = "cuda";
  plugin->kernels = kernel_table().data();
  plugin->num_kernels = kernel_table().size();
  plugin->device_count = device_count;
  plugin->device_properties = device_properties;
  plugin->device_open = device_open;
  plugin->device_close = device_close;
  plugin->device_lost = device_lost;
  plugin->device_lose = device_lose;
  plugin->device_can_copy = device_can_copy;
  plugin->memory_allocate = memory_allocate;
  plugin->memory_free = memory_free;
  plugin->memory_granularity = granularity;
  plugin->memory_reserve = memory_reserve;
  plugin->memory_unreserve = memory_unreserve;
  plugin->memory_commit = memory_commit;
  plugin->memory_decommit = memory_decommit;
  plugin->staging_allocate = staging_allocate;
  plugin->staging_free = staging_free;
  plugin->stream_create = stream_create;
  plugin->stream_destroy = stream_destroy;
  plugin->stream_enqueue = stream_enqueue;
  plugin->stream_copy = stream_copy;
  plugin->stream_wait = stream_wait;
  plugin->event_record = event_record;
  plugin->event_done = event_done;
  plugin->event_wait = event_wait;
  plugin->event_destroy = event_destroy;
  plugin->stream_add_copy = stream_add_copy;
  plugin->stream_settle = stream_settle;
  plugin->libraries = libraries;
  plugin->host_read_limit = read_limit;
  plugin->collective_supported = collective_supported;
  plugin->communicator_create = communicator_create;
  plugin->communicator_destroy = communicator_destroy;
  plugin->communicator_enqueue = communicator_enqueue;
  if (ActivityTrace::get().library().usable()) {
    plugin->trace_begin = trace_begin;
    plugin->trace_end = trace_end;
  }
}

}  // namespace
}  // namespace tandem::cuda

extern "C" {

TANDEM_EXPORT_PLUGIN const char* tandem_cuda_build_id() { return tandem::kBuildId; }

TANDEM_EXPORT_PLUGIN void tandem_cuda_use_driver(const char* library) {
  tandem::cuda::driver_name() = library;
}

#if defined(TANDEM_CUDA_ON_HOST) && TANDEM_ADDRESS_SANITIZER
// The driver's stand-in has memory of the host: what is not handed out of it may be poisoned.
TANDEM_EXPORT_PLUGIN void tandem_plugin_memory_is_host() {}
#endif

TANDEM_EXPORT_PLUGIN void tandem_plugin_init(const TandemHostApi* host, TandemPluginApi* plugin,
                                             TandemStatus* status) {
  tandem::cuda::guarded(status, [&] {
    tandem::cuda::set_host_api(host);
    tandem::cuda::set_memory_release(host->release_memory);
    tandem::cuda::open_driver(tandem::cuda::driver_name());
    tandem::cuda::fill_in(plugin);
  });
}
}
