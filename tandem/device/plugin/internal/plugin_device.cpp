#include "tandem/device/plugin/internal/plugin_device.h"

#include <algorithm>
#include <utility>

#include "tandem/device/plugin/internal/plugin_communicator.h"
#include "tandem/device/plugin/internal/plugin_memory.h"
#include "tandem/device/plugin/internal/reaper.h"

namespace tandem {

PluginHandle::PluginHandle(const PluginLibrary& library, int physical,
                           const LogicalDeviceOptions& options, const std::string& name)
    : library_(library), physical_(physical) {
  TandemDeviceOptions given = {};
  given.size = sizeof(given);
  given.physical = physical;
  given.name = name.c_str();
  given.memory_limit = options.memory_limit.value_or(0);
  traits_.size = sizeof(traits_);
  TandemStatus status = no_error();
  device_ = library_.api.device_open(&given, &traits_, &status);
  check(status, cat("The plugin ", library_.api.name, " does not open device ", name));
  if (!device_) throw InternalError(cat("The plugin ", library_.api.name, " opens no device."));
}

PluginHandle::~PluginHandle() { library_.api.device_close(device_); }

PluginDevice::~PluginDevice() { drop_communicators_of(*this); }

void PluginDevice::retire(PluginDevice* device) {
  // Nothing holds a buffer any more, so the memory goes back at once; the streams may have to wait.
  if (on_device_thread()) device->allocator_ = nullptr;
  run_off_device_threads([device] { delete device; });
}

std::shared_ptr<PluginDevice> PluginDevice::make(const PluginLibrary& library, int physical,
                                                 const DeviceProperties& properties,
                                                 const LogicalDeviceOptions& options,
                                                 DeviceSpec spec) {
  return {new PluginDevice(library, physical, properties, options, std::move(spec)), retire};
}

PluginDevice::PluginDevice(const PluginLibrary& library, int physical,
                           const DeviceProperties& properties, const LogicalDeviceOptions& options,
                           DeviceSpec spec)
    : Device(std::move(spec)),
      kernel_class_(library.api.kernel_class),
      properties_(properties),
      handle_(std::make_shared<PluginHandle>(library, physical, options, name())) {
  space_ = {.device = this, .kernel_offset = handle_->traits().kernel_offset};
  if (options.memory_limit) properties_.memory_bytes = *options.memory_limit;
  allocator_ = make_plugin_allocator(*this, handle_, properties.memory_bytes, options);
  staging_ = make_staging_allocator(*this, handle_);
  const auto add = [&](StreamKind kind, int index) {
    streams_.push_back(
        std::make_unique<PluginStream>(library.api, handle_->get(), *this, kind, index));
  };
  for (int i = 0; i < properties_.compute_streams; ++i) add(StreamKind::kCompute, i);
  add(StreamKind::kCopyIn, 0);
  add(StreamKind::kCopyOut, 0);
}

int PluginDevice::num_streams(StreamKind kind) const {
  return kind == StreamKind::kCompute ? properties_.compute_streams : 1;
}

Stream& PluginDevice::stream(StreamKind kind, int index) {
  if (index < 0 || index >= num_streams(kind)) {
    throw InvalidArgumentError(cat("Device ", name(), " has ", num_streams(kind),
                                   " streams of this kind, and none of index ", index, '.'));
  }
  const auto compute = static_cast<std::size_t>(properties_.compute_streams);
  switch (kind) {
    case StreamKind::kCompute: return *streams_[static_cast<std::size_t>(index)];
    case StreamKind::kCopyIn: return *streams_[compute];
    case StreamKind::kCopyOut: break;
  }
  return *streams_[compute + 1];
}

bool PluginDevice::can_copy_to(const Device& other) const {
  if (!other.memory_space()) return true;
  const auto* same = dynamic_cast<const PluginDevice*>(&other);
  if (!same || &same->handle_->api() != &handle_->api()) return false;
  const auto ask = handle_->api().device_can_copy;
  return !ask || ask(handle_->get(), same->handle_->get()) != 0;
}

std::size_t PluginDevice::host_read_limit() {
  const TandemPluginApi& api = handle_->api();
  const bool readable =
      api.host_read_limit && api.staging_allocate && handle_->traits().kernel_offset == 0;
  return readable ? static_cast<std::size_t>(api.host_read_limit(handle_->get())) : 0;
}

Ref<Buffer> PluginDevice::allocate_host_readable(std::size_t bytes) {
  return host_readable(staging_->allocate(bytes), shared_from_this());
}

bool PluginDevice::can_trace() const { return handle_->api().trace_begin != nullptr; }

void PluginDevice::begin_trace() {
  TandemStatus status = no_error();
  handle_->api().trace_begin(handle_->get(), &status);
  check(status, cat("Device ", name(), " cannot trace what it does"));
}

void PluginDevice::end_trace(const std::function<void(const HardwareEvent&)>& report) {
  struct Event {
    std::string name;
    std::uint32_t stream;
    std::int64_t begin_ns, end_ns;
    double bytes;
  };
  const auto pass_on = [](void* arg, const TandemTraceEvent* event) noexcept {
    static_cast<std::vector<Event>*>(arg)->push_back({event->name, event->stream, event->begin_ns,
                                                      event->end_ns,
                                                      static_cast<double>(event->bytes)});
  };
  std::vector<Event> events;
  handle_->api().trace_end(handle_->get(), pass_on, &events);
  for (const Event& event : events)
    report({event.name, event.stream, event.begin_ns, event.end_ns, event.bytes});
}

std::string PluginDevice::lost() const {
  if (!handle_->api().device_lost) return {};
  TandemStatus status = no_error();
  handle_->api().device_lost(handle_->get(), &status);
  return status.code == TANDEM_OK ? std::string() : text_of_status(status);
}

}  // namespace tandem
