// A plugin as a later minor version of the interface would have it: each of its structs is longer
// than this Tandem knows. The rest of it is the example plugin.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "tandem/device/plugin.h"

extern "C" void toy_plugin_init(const TandemHostApi* host, TandemPluginApi* plugin,
                                TandemStatus* status);

namespace {

constexpr std::uint64_t kMark = 0x5fa7e12bd4c38690;

template <class Struct>
struct Longer {
  Struct known;
  std::uint64_t more[60];

  void mark() { std::fill(std::begin(more), std::end(more), kMark); }
  bool is_marked() const {
    return std::all_of(std::begin(more), std::end(more), [](auto m) { return m == kMark; });
  }
};

const TandemHostApi* tandem_host;
TandemPluginApi toy;

void fail(TandemStatus* status, const char* text) {
  status->code = TANDEM_INTERNAL;
  std::strncpy(status->message, text, sizeof(status->message) - 1);
}

void device_properties(std::int32_t physical, TandemDeviceProperties* properties,
                       TandemStatus* status) {
  if (properties->size != sizeof(*properties)) return fail(status, "properties of another size");
  toy.device_properties(physical, properties, status);
}

TandemDevice* device_open(const TandemDeviceOptions* options, TandemDeviceTraits* traits,
                          TandemStatus* status) {
  if (options->size != sizeof(*options) || traits->size != sizeof(*traits)) {
    fail(status, "options or traits of another size");
    return nullptr;
  }
  return toy.device_open(options, traits, status);
}

void stream_enqueue(TandemStream* stream, const TandemWork* work, TandemStatus* status) {
  if (work->size != sizeof(*work)) return fail(status, "work of another size");
  toy.stream_enqueue(stream, work, status);
}

void stream_copy(TandemStream* stream, const TandemCopy* copy, TandemStatus* status) {
  if (copy->size != sizeof(*copy)) return fail(status, "a copy of another size");
  toy.stream_copy(stream, copy, status);
}

void negate(TandemKernelContext* context, TandemStatus* status) {
  Longer<TandemTensor> in = {}, out = {};
  in.known.size = out.known.size = sizeof(in);
  in.mark();
  out.mark();
  tandem_host->kernel_input(context, 0, &in.known, status);
  if (status->code != TANDEM_OK) return;
  tandem_host->kernel_allocate_output(context, 0, in.known.rank, in.known.dims, &out.known, status);
  if (status->code != TANDEM_OK) return;
  if (!in.is_marked() || !out.is_marked()) return fail(status, "members it cannot know were set");
  const auto* from = static_cast<const float*>(in.known.data);
  std::transform(from, from + in.known.bytes / sizeof(float), static_cast<float*>(out.known.data),
                 [](float x) { return -x; });
}

Longer<TandemKernel> kernel;
const TandemKernel* const kernels[] = {&kernel.known};
const std::int32_t types[] = {1};  // TensorFlow's number of float

}  // namespace

extern "C" TANDEM_EXPORT_PLUGIN void tandem_plugin_init(const TandemHostApi* host,
                                                        TandemPluginApi* plugin,
                                                        TandemStatus* status) {
  tandem_host = host;
  toy_plugin_init(host, plugin, status);
  if (status->code != TANDEM_OK) return;
  toy = *plugin;
  auto* later = reinterpret_cast<Longer<TandemPluginApi>*>(plugin);
  later->mark();
  plugin->size = sizeof(*later);
  plugin->version_minor = TANDEM_PLUGIN_VERSION_MINOR + 1;
  plugin->name = "later";
  plugin->device_type = "LATER";
  plugin->kernel_class = "later";
  kernel.known.size = sizeof(kernel);
  kernel.known.op = "Neg";
  kernel.known.name = "later";
  kernel.known.type_attr = "T";
  kernel.known.types = types;
  kernel.known.num_types = 1;
  kernel.known.run = negate;
  kernel.mark();
  plugin->kernels = kernels;
  plugin->num_kernels = 1;
  plugin->device_properties = device_properties;
  plugin->device_open = device_open;
  plugin->stream_enqueue = stream_enqueue;
  plugin->stream_copy = stream_copy;
}
