#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/ref.h"

namespace tandem {

class Device;  // tandem/device/device.h

/// The memory of one device, apart from the host's. Buffers of it point to their space; it lives
/// as long as the device, which outlives its buffers.
///
/// Outside of kernels an address in it is a token, which nothing may follow. The device's kernels
/// see the same byte `kernel_offset` further on (0 where kernels use tokens as they are).
struct MemorySpace {
  Device* device = nullptr;
  std::ptrdiff_t kernel_offset = 0;
};

/// Memory that arrays share: a pointer, a size in bytes, and an owner that is notified when the
/// last user is gone.
///
/// For host memory `data()` is an address; for a device it is a token that only that device's
/// kernels may use. Buffers are immutable while shared: a writer must hold the only
/// reference.
class TANDEM_EXPORT Buffer : public RefCounted {
 public:
  void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  /// False if other code may write to the memory (wrapped outside memory): then it is never taken
  /// over.
  bool owned() const noexcept { return owned_; }
  /// True for memory that an execution plan reuses: nothing may hold on to it beyond what the plan
  /// knows.
  bool planned() const noexcept { return planned_; }
  void mark_planned() noexcept { planned_ = true; }
  /// The device memory that this is part of; null for the host's.
  const MemorySpace* space() const noexcept { return space_; }
  /// False for memory to which no value was written: of a device that computes nothing or only
  /// takes the time that computing would, and of the host for what is made of such. Reading it is
  /// an error.
  bool computed() const noexcept { return computed_; }
  void mark_unmaterialized() noexcept { computed_ = false; }
  /// New memory of the same kind: the host's, or of the same device.
  virtual Ref<Buffer> allocate_like(std::size_t bytes) const;
  /// Who holds the memory (a node, "variable 'w'"), for reports of memory that ran out. Kept by
  /// memory that is accounted for; others forget it.
  virtual void set_holder(std::string_view) {}

 protected:
  Buffer(void* data, std::size_t size, bool owned = true, const MemorySpace* space = nullptr)
      : data_(data), size_(size), space_(space), owned_(owned) {}

  void* data_;
  std::size_t size_;
  const MemorySpace* space_;
  bool owned_;
  bool planned_ = false;
  bool computed_ = true;
};

/// Uninitialised host memory, 64-byte aligned.
TANDEM_EXPORT Ref<Buffer> allocate_host_buffer(std::size_t bytes);
/// What one of that size adds to HostMemoryStats::current.
TANDEM_EXPORT std::size_t counted_host_buffer_bytes(std::size_t bytes) noexcept;

/// Host memory holding `count` default-constructed objects of an `is_object` dtype, destroyed with
/// the buffer.
TANDEM_EXPORT Ref<Buffer> allocate_object_buffer(DType dtype, std::size_t count);

/// Outside memory, used without a copy. `release` (may be empty) is called once, when the last user
/// is gone.
TANDEM_EXPORT Ref<Buffer> wrap_memory(void* data, std::size_t bytes, std::function<void()> release);

}  // namespace tandem
