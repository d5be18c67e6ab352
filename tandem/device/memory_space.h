#pragma once

#include <cstddef>

#include "tandem/core/array.h"
#include "tandem/core/export.h"

namespace tandem {

class Device;

/// The memory of one device, apart from the host's. Buffers of it point to their space; it lives
/// as long as the device, which outlives its buffers.
///
/// Outside of kernels an address in it is a token, which nobody may follow. The device's kernels
/// see the same byte `kernel_offset` further on (0 where kernels use tokens as they are).
struct MemorySpace {
  Device* device = nullptr;
  std::ptrdiff_t kernel_offset = 0;
};

/// The device whose memory holds the elements; null for the host's.
inline Device* device_of(const Array& array) {
  return array.on_host() ? nullptr : array.buffer()->space()->device;
}

/// The same elements as the device's kernels see them. Takes arrays of either form, and host arrays
/// as they are.
TANDEM_EXPORT Array kernel_view(Array array);
/// The same elements as everyone else may name them: the reverse of kernel_view.
TANDEM_EXPORT Array token_view(Array array);

}  // namespace tandem
