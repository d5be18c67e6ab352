/* A device type of its own, "TOY": two pieces of make-believe hardware with 32 MiB each. It shows
 * every function of the plugin interface; only the memory and the threads are real. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "toy.h"

#define TOY_COUNT 2
#define TOY_BYTES ((size_t)32 << 20)

static Toy toys[TOY_COUNT];
const TandemHostApi* toy_host;

void toy_fail(TandemStatus* status, int32_t code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(status->message, sizeof(status->message), format, args);
  va_end(args);
  status->code = code;
}

int toy_is_lost(Toy* toy, TandemStatus* status) {
  int lost;
  pthread_mutex_lock(&toy->mutex);
  lost = toy->lost;
  pthread_mutex_unlock(&toy->mutex);
  if (lost) toy_fail(status, TANDEM_UNAVAILABLE, "somebody unplugged the toy");
  return lost;
}

char* toy_address(const Toy* toy, const void* token) {
  return toy->memory + ((const char*)token - toy->tokens);
}

static int32_t device_count(void) { return TOY_COUNT; }

static void device_properties(int32_t physical, TandemDeviceProperties* properties,
                              TandemStatus* status) {
  if (physical < 0 || physical >= TOY_COUNT) {
    toy_fail(status, TANDEM_INVALID_ARGUMENT, "there is no toy %d", (int)physical);
    return;
  }
  snprintf(properties->description, sizeof(properties->description),
           "toy %d, made of host memory and threads", (int)physical);
  properties->memory_bytes = TOY_BYTES;
  properties->compute_streams = 1;
  properties->emulated = 1;
}

static TandemDevice* device_open(const TandemDeviceOptions* options, TandemDeviceTraits* traits,
                                 TandemStatus* status) {
  TandemDevice* device = malloc(sizeof(*device));
  if (!device) {
    toy_fail(status, TANDEM_RESOURCE_EXHAUSTED, "no host memory for a handle");
    return NULL;
  }
  device->toy = &toys[options->physical];
  snprintf(device->name, sizeof(device->name), "%s", options->name);
  /* A device plugged in again begins anew. */
  pthread_mutex_lock(&device->toy->mutex);
  if (device->toy->used_count == 0) device->toy->lost = 0;
  pthread_mutex_unlock(&device->toy->mutex);
  traits->kernel_offset = device->toy->memory - device->toy->tokens;
  return device;
}

static void device_close(TandemDevice* device) { free(device); }

static void device_lost(TandemDevice* device, TandemStatus* status) {
  toy_is_lost(device->toy, status);
}

static void device_lose(TandemDevice* device) {
  pthread_mutex_lock(&device->toy->mutex);
  device->toy->lost = 1;
  pthread_mutex_unlock(&device->toy->mutex);
}

/* The first gap that is large enough. */
static void* memory_allocate(TandemDevice* device, uint64_t bytes, TandemStatus* status) {
  Toy* toy = device->toy;
  size_t begin = 0;
  size_t i = 0;
  pthread_mutex_lock(&toy->mutex);
  while (i < toy->used_count && toy->used[i].begin - begin < bytes) begin = toy->used[i++].end;
  if (bytes > TOY_BYTES - begin ||
      toy->used_count == sizeof(toy->used) / sizeof(toy->used[0])) {
    pthread_mutex_unlock(&toy->mutex);
    toy_fail(status, TANDEM_RESOURCE_EXHAUSTED, "the toy has no %llu bytes in a row left",
             (unsigned long long)bytes);
    return NULL;
  }
  memmove(&toy->used[i + 1], &toy->used[i], (toy->used_count - i) * sizeof(toy->used[0]));
  toy->used[i].begin = begin;
  toy->used[i].end = begin + (size_t)bytes;
  ++toy->used_count;
  pthread_mutex_unlock(&toy->mutex);
  return toy->tokens + begin;
}

static void memory_free(TandemDevice* device, void* address, uint64_t bytes) {
  Toy* toy = device->toy;
  const size_t begin = (size_t)((char*)address - toy->tokens);
  size_t i = 0;
  (void)bytes;
  pthread_mutex_lock(&toy->mutex);
  while (toy->used[i].begin != begin) ++i;
  --toy->used_count;
  memmove(&toy->used[i], &toy->used[i + 1], (toy->used_count - i) * sizeof(toy->used[0]));
  pthread_mutex_unlock(&toy->mutex);
}

static int build_toys(TandemStatus* status) {
  for (int i = 0; i < TOY_COUNT; ++i) {
    Toy* toy = &toys[i];
    pthread_mutex_init(&toy->mutex, NULL);
    toy->tokens = mmap(NULL, TOY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    toy->memory =
        mmap(NULL, TOY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (toy->tokens == MAP_FAILED || toy->memory == MAP_FAILED) {
      toy_fail(status, TANDEM_RESOURCE_EXHAUSTED, "no host memory for the toys");
      return 0;
    }
  }
  return 1;
}

TANDEM_EXPORT_PLUGIN void tandem_plugin_init(const TandemHostApi* host, TandemPluginApi* plugin,
                                             TandemStatus* status) {
  plugin->version_major = TANDEM_PLUGIN_VERSION_MAJOR;
  plugin->version_minor = TANDEM_PLUGIN_VERSION_MINOR;
  plugin->size = sizeof(*plugin);
  if (host->version_major != TANDEM_PLUGIN_VERSION_MAJOR) return; /* Tandem will say it */
  if (!build_toys(status)) return;
  toy_host = host;
#ifdef TOY_HOST_KERNELS
  plugin->name = "toy_memory";
  plugin->device_type = "TOYMEM";
  plugin->kernel_class = "cpu";
#else
  plugin->name = "toy";
  plugin->device_type = "TOY";
  plugin->kernel_class = "toy";
  plugin->kernels = toy_kernels;
  plugin->num_kernels = toy_num_kernels;
#endif
  plugin->device_count = device_count;
  plugin->device_properties = device_properties;
  plugin->device_open = device_open;
  plugin->device_close = device_close;
  plugin->device_lost = device_lost;
  plugin->device_lose = device_lose;
  plugin->memory_allocate = memory_allocate;
  plugin->memory_free = memory_free;
  plugin->stream_create = toy_stream_create;
  plugin->stream_destroy = toy_stream_destroy;
  plugin->stream_enqueue = toy_stream_enqueue;
  plugin->stream_copy = toy_stream_copy;
  plugin->stream_wait = toy_stream_wait;
  plugin->event_record = toy_event_record;
  plugin->event_done = toy_event_done;
  plugin->event_wait = toy_event_wait;
  plugin->event_destroy = toy_event_destroy;
}
