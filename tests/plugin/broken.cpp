// Plugins that are wrong in one way each; BROKEN says which.

#include <cstring>

#include "tandem/device/plugin.h"

#define BROKEN_ENTRY 1
#define BROKEN_VERSION 2
#define BROKEN_SIZE 3
#define BROKEN_FUNCTION 4
#define BROKEN_TYPE 5
#define BROKEN_START 6
#define BROKEN_COUNT 7
#define BROKEN_STREAMS 8
#define BROKEN_MEMORY 9
#define BROKEN_FIGURE 10
#define BROKEN_COLLECTIVES 11

#if BROKEN == BROKEN_ENTRY

extern "C" TANDEM_EXPORT_PLUGIN void tandem_plugin_start() {}

#else

extern "C" TANDEM_EXPORT_PLUGIN void tandem_plugin_init(const TandemHostApi*,
                                                        TandemPluginApi* plugin,
                                                        TandemStatus* status) {
  plugin->size = BROKEN == BROKEN_SIZE ? 16 : sizeof(*plugin);
  plugin->version_major = BROKEN == BROKEN_VERSION ? 2 : TANDEM_PLUGIN_VERSION_MAJOR;
  plugin->version_minor = BROKEN == BROKEN_VERSION ? 7 : TANDEM_PLUGIN_VERSION_MINOR;
  if (BROKEN == BROKEN_START) {
    status->code = TANDEM_FAILED_PRECONDITION;
    std::strcpy(status->message, "no such hardware in this machine");
    return;
  }
  plugin->name = "broken";
  plugin->device_type = BROKEN == BROKEN_TYPE ? "CPU" : "BROKEN";
  plugin->kernel_class = "broken";
  plugin->device_count = [] { return std::int32_t{BROKEN == BROKEN_COUNT ? 1000000 : 1}; };
  plugin->device_properties = [](std::int32_t, TandemDeviceProperties* properties, TandemStatus*) {
    if (BROKEN == BROKEN_STREAMS) properties->compute_streams = -3;
    if (BROKEN == BROKEN_MEMORY) properties->memory_bytes = ~std::uint64_t{0};
    if (BROKEN == BROKEN_FIGURE) properties->link_bandwidth = -1;
  };
  plugin->device_open = [](const TandemDeviceOptions*, TandemDeviceTraits*,
                           TandemStatus*) -> TandemDevice* { return nullptr; };
  plugin->device_close = [](TandemDevice*) {};
  plugin->memory_allocate = [](TandemDevice*, std::uint64_t, TandemStatus*) -> void* {
    return nullptr;
  };
  plugin->memory_free = [](TandemDevice*, void*, std::uint64_t) {};
  plugin->stream_create = [](TandemDevice*, std::int32_t, std::int32_t,
                             TandemStatus*) -> TandemStream* { return nullptr; };
  plugin->stream_destroy = [](TandemStream*) {};
  plugin->stream_enqueue = [](TandemStream*, const TandemWork*, TandemStatus*) {};
  plugin->stream_copy = [](TandemStream*, const TandemCopy*, TandemStatus*) {};
  plugin->stream_wait = [](TandemStream*, TandemEvent*, TandemStatus*) {};
  plugin->event_record = [](TandemStream*, TandemStatus*) -> TandemEvent* { return nullptr; };
  plugin->event_done = [](TandemEvent*) { return std::int32_t{1}; };
  plugin->event_destroy = [](TandemEvent*) {};
  if (BROKEN == BROKEN_COLLECTIVES) plugin->communicator_destroy = [](TandemCommunicator*) {};
  if (BROKEN != BROKEN_FUNCTION) plugin->event_wait = [](TandemEvent*) {};
}

#endif
