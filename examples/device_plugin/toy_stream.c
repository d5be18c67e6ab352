/* Streams: a queue and one thread each. Events are entries of the queue, so they are over when the
 * thread has come to them. */
#include <stdlib.h>
#include <string.h>

#include "toy.h"

struct TandemEvent {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int done;
  int users; /* the handle, and each queue that it stands in */
};

typedef enum EntryKind { ENTRY_WORK, ENTRY_COPY, ENTRY_RECORD, ENTRY_WAIT } EntryKind;

typedef struct Entry {
  EntryKind kind;
  TandemWork work;
  TandemCopy copy;
  TandemEvent* event;
  struct Entry* next;
} Entry;

struct TandemStream {
  Toy* toy;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  Entry* first;
  Entry** last;
  int ending;
};

static void event_release(TandemEvent* event) {
  int users;
  pthread_mutex_lock(&event->mutex);
  users = --event->users;
  pthread_mutex_unlock(&event->mutex);
  if (users > 0) return;
  pthread_cond_destroy(&event->changed);
  pthread_mutex_destroy(&event->mutex);
  free(event);
}

static void event_set(TandemEvent* event) {
  pthread_mutex_lock(&event->mutex);
  event->done = 1;
  pthread_cond_broadcast(&event->changed);
  pthread_mutex_unlock(&event->mutex);
}

static const char* source_of(const TandemCopy* copy) {
  return copy->from_device ? toy_address(copy->from_device->toy, copy->from)
                           : (const char*)copy->from;
}

static char* target_of(const TandemCopy* copy) {
  return copy->to_device ? toy_address(copy->to_device->toy, copy->to) : (char*)copy->to;
}

static void handle(Toy* toy, Entry* entry) {
  TandemStatus status;
  memset(&status, 0, sizeof(status));
  status.size = sizeof(status);
  switch (entry->kind) {
    case ENTRY_WORK:
      if (!toy_is_lost(toy, &status)) entry->work.run(entry->work.arg);
      entry->work.done(entry->work.arg, &status);
      break;
    case ENTRY_COPY:
      if (!toy_is_lost(toy, &status) && entry->copy.bytes != 0) {
        memcpy(target_of(&entry->copy), source_of(&entry->copy), (size_t)entry->copy.bytes);
      }
      entry->copy.done(entry->copy.arg, &status);
      break;
    case ENTRY_RECORD:
      event_set(entry->event);
      event_release(entry->event);
      break;
    case ENTRY_WAIT:
      toy_event_wait(entry->event);
      event_release(entry->event);
      break;
  }
}

static void* work_off(void* arg) {
  TandemStream* stream = arg;
  for (;;) {
    Entry* entry;
    pthread_mutex_lock(&stream->mutex);
    while (!stream->first && !stream->ending) {
      pthread_cond_wait(&stream->changed, &stream->mutex);
    }
    entry = stream->first;
    if (entry) {
      stream->first = entry->next;
      if (!stream->first) stream->last = &stream->first;
    }
    pthread_mutex_unlock(&stream->mutex);
    if (!entry) return NULL;
    handle(stream->toy, entry);
    free(entry);
  }
}

TandemStream* toy_stream_create(TandemDevice* device, int32_t kind, int32_t index,
                                TandemStatus* status) {
  TandemStream* stream = calloc(1, sizeof(*stream));
  (void)kind; /* all kinds are alike here */
  (void)index;
  if (stream) {
    stream->toy = device->toy;
    stream->last = &stream->first;
    pthread_mutex_init(&stream->mutex, NULL);
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&stream->thread, NULL, work_off, stream) == 0) return stream;
    free(stream);
  }
  toy_fail(status, TANDEM_RESOURCE_EXHAUSTED, "no thread for a stream");
  return NULL;
}

void toy_stream_destroy(TandemStream* stream) {
  pthread_mutex_lock(&stream->mutex);
  stream->ending = 1;
  pthread_cond_signal(&stream->changed);
  pthread_mutex_unlock(&stream->mutex);
  pthread_join(stream->thread, NULL);
  pthread_cond_destroy(&stream->changed);
  pthread_mutex_destroy(&stream->mutex);
  free(stream);
}

/* Puts an entry at the end of the queue; on failure there is none. */
static int append(TandemStream* stream, const Entry* content, TandemStatus* status) {
  Entry* entry = malloc(sizeof(*entry));
  if (!entry) {
    toy_fail(status, TANDEM_RESOURCE_EXHAUSTED, "no host memory for an entry of a queue");
    return 0;
  }
  *entry = *content;
  entry->next = NULL;
  pthread_mutex_lock(&stream->mutex);
  *stream->last = entry;
  stream->last = &entry->next;
  pthread_cond_signal(&stream->changed);
  pthread_mutex_unlock(&stream->mutex);
  return 1;
}

void toy_stream_enqueue(TandemStream* stream, const TandemWork* work, TandemStatus* status) {
  Entry entry = {.kind = ENTRY_WORK, .work = *work};
  if (!toy_is_lost(stream->toy, status)) append(stream, &entry, status);
}

void toy_stream_copy(TandemStream* stream, const TandemCopy* copy, TandemStatus* status) {
  Entry entry = {.kind = ENTRY_COPY, .copy = *copy};
  if (!toy_is_lost(stream->toy, status)) append(stream, &entry, status);
}

void toy_stream_wait(TandemStream* stream, TandemEvent* event, TandemStatus* status) {
  Entry entry = {.kind = ENTRY_WAIT, .event = event};
  pthread_mutex_lock(&event->mutex);
  ++event->users;
  pthread_mutex_unlock(&event->mutex);
  if (!append(stream, &entry, status)) event_release(event);
}

TandemEvent* toy_event_record(TandemStream* stream, TandemStatus* status) {
  Entry entry = {.kind = ENTRY_RECORD};
  TandemEvent* event = calloc(1, sizeof(*event));
  if (!event) {
    toy_fail(status, TANDEM_RESOURCE_EXHAUSTED, "no host memory for an event");
    return NULL;
  }
  pthread_mutex_init(&event->mutex, NULL);
  pthread_cond_init(&event->changed, NULL);
  event->users = 2;
  entry.event = event;
  if (append(stream, &entry, status)) return event;
  event->users = 1;
  event_release(event);
  return NULL;
}

int32_t toy_event_done(TandemEvent* event) {
  int done;
  pthread_mutex_lock(&event->mutex);
  done = event->done;
  pthread_mutex_unlock(&event->mutex);
  return done;
}

void toy_event_wait(TandemEvent* event) {
  pthread_mutex_lock(&event->mutex);
  while (!event->done) pthread_cond_wait(&event->changed, &event->mutex);
  pthread_mutex_unlock(&event->mutex);
}

void toy_event_destroy(TandemEvent* event) { event_release(event); }
