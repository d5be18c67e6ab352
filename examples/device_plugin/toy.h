/* What the files of the toy device share. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <tandem/device/plugin.h>

/* "Hardware": memory that is reached by tokens. A token is an address in a range that nothing may
 * touch; the byte that it stands for lies `offset` further on. */
typedef struct Toy {
  pthread_mutex_t mutex;
  char* tokens;
  char* memory;
  size_t used_count; /* pieces in use, by address */
  struct {
    size_t begin;
    size_t end;
  } used[256];
  int lost;
} Toy;

struct TandemDevice {
  Toy* toy;
  char name[128];
};

/* Writes a printf text to the status. */
void toy_fail(TandemStatus* status, int32_t code, const char* format, ...);
/* 1, and the status says so, if the device is lost. */
int toy_is_lost(Toy* toy, TandemStatus* status);
/* Where the byte of a token lies. */
char* toy_address(const Toy* toy, const void* token);

TandemStream* toy_stream_create(TandemDevice* device, int32_t kind, int32_t index,
                                TandemStatus* status);
void toy_stream_destroy(TandemStream* stream);
void toy_stream_enqueue(TandemStream* stream, const TandemWork* work, TandemStatus* status);
void toy_stream_copy(TandemStream* stream, const TandemCopy* copy, TandemStatus* status);
void toy_stream_wait(TandemStream* stream, TandemEvent* event, TandemStatus* status);
TandemEvent* toy_event_record(TandemStream* stream, TandemStatus* status);
int32_t toy_event_done(TandemEvent* event);
void toy_event_wait(TandemEvent* event);
void toy_event_destroy(TandemEvent* event);

/* The kernels, and how they reach Tandem. */
extern const TandemHostApi* toy_host;
extern const TandemKernel* const toy_kernels[];
extern const size_t toy_num_kernels;
