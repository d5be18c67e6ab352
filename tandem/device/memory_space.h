#pragma once

#include <cstddef>

#include "tandem/core/array.h"
#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// The device whose memory holds the elements; null for the host's.
inline Device* device_of(const Array& array) {
  return array.on_host() ? nullptr : array.buffer()->space()->device;
}

/// False for a value that was never computed (Buffer::computed).
inline bool is_computed(const Array& array) {
  return !array.buffer() || array.buffer()->computed();
}

/// A view of the elements as the device's kernels address them. Takes arrays of either form, and
/// host arrays as they are.
TANDEM_EXPORT Array kernel_view(Array array);
/// A view of the elements as all other code names them: the reverse of kernel_view.
TANDEM_EXPORT Array token_view(Array array);

/// Copies a value to the host's memory; host arrays as they are. Blocks until it is there. Throws
/// the error of the device, and FailedPreconditionError for a value that was never computed.
TANDEM_EXPORT Array copy_to_host(const Array& array);
/// Like copy_to_host, but what was never computed is copied too, and stays so.
TANDEM_EXPORT Array copy_to_host_unchecked(const Array& array);
/// Copies a value to the device's memory, as a token; blocks. Arrays of objects, and arrays that
/// are there already, as they are. From one device to another directly where they can.
TANDEM_EXPORT Array copy_to_device(const Array& array, Device& device);
/// What copy_to_device does, in parts: memory for the value (a token), and the transfer as work for
/// a copy stream, `copy_stream`.
TANDEM_EXPORT Array allocate_on(Device& device, DType dtype, const Shape& shape);
/// An array in the host memory that the device copies fastest with.
TANDEM_EXPORT Array allocate_staging(Device& device, DType dtype, const Shape& shape);
TANDEM_EXPORT Copy transfer(const Array& from, const Array& to);
/// The stream on which a copy to `to` (null: the host) belongs.
TANDEM_EXPORT Stream& copy_stream(Device* from, Device* to);

}  // namespace tandem
