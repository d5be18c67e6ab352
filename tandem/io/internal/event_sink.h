#pragma once

#include <string>

#include "tandem/io/internal/event_encoding.h"

namespace tandem::io {

/// Where the thread of an EventWriter puts its events. Used by one thread at a time.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void write(const PendingEvent& event) = 0;
  /// What was written is where it shall be.
  virtual void flush() {}
  virtual void close() {}
};

}  // namespace tandem::io
