#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tandem/device/cuda/internal/driver.h"

namespace tandem::cuda {

/// A point in a stream, by an event of the driver's: over once the GPU has come to it. Shared by
/// all that wait for that point. Thread-safe.
class Marker {
 public:
  Marker(CUevent event, CUstream stream) : event_(event), stream_(stream) {}
  CUevent event() const { return event_; }
  /// The stream that it is a point of.
  CUstream stream() const { return stream_; }
  bool over() const { return over_.load(std::memory_order_acquire); }
  /// Blocks until the GPU has come to it. False if that cannot be known.
  bool wait();

 private:
  const CUevent event_;
  const CUstream stream_;
  std::atomic<bool> over_{false};
};

/// Events of the driver's for markers, used again when a marker is gone. Thread-safe; markers keep
/// the pool.
class MarkerPool : public std::enable_shared_from_this<MarkerPool> {
 public:
  MarkerPool() = default;
  ~MarkerPool();
  MarkerPool(const MarkerPool&) = delete;
  MarkerPool& operator=(const MarkerPool&) = delete;

  /// A marker after what was issued to the stream so far; null where the driver makes none.
  std::shared_ptr<Marker> record(CUstream stream);

 private:
  CUevent take();

  std::mutex mutex_;
  std::vector<CUevent> unused_;
};

}  // namespace tandem::cuda
