#pragma once

#include <cstdint>

#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// A stream that also runs segments: several kernels, and small copies between them, as one piece
/// of work, which the host launches without waiting for the device in between.
class TANDEM_EXPORT SegmentStream {
 public:
  virtual ~SegmentStream();
  /// Like Stream::enqueue. Pieces of one number, which is not 0, tend to launch the same kernels,
  /// so that the device may keep them in a form that is quick to launch again.
  virtual void enqueue_segment(Work work, std::uint64_t number) = 0;
  /// Within the `run` of a segment, on its thread: a copy between the host and this device becomes
  /// part of it, in the order of its kernels. Its buffers stay until the piece is over; its `done`
  /// is not called.
  virtual void add_copy(const Copy& copy) = 0;
  virtual bool runs_segments() const = 0;
};

/// That of a device with one compute stream; null if it runs no segments.
TANDEM_EXPORT SegmentStream* segment_stream(Device& device);

}  // namespace tandem
