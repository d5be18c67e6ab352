#pragma once

#include <cstddef>

#include "tandem/core/buffer.h"
#include "tandem/core/export.h"
#include "tandem/core/ref.h"
#include "tandem/device/device.h"

namespace tandem {

/// A device with memory of its own whose kernels can also read some of the host's, over the link.
/// A small value that is read there need not be copied. Thread-safe.
class TANDEM_EXPORT HostMemoryReader {
 public:
  virtual ~HostMemoryReader();
  /// As many bytes as kernels read over the link in the time that a copy takes to begin: reading
  /// fewer is quicker than copying them first. 0: kernels cannot read the host's memory.
  virtual std::size_t host_read_limit() = 0;
  /// Memory of the host that counts as the device's (Buffer::space): the host writes it, and the
  /// device's kernels read it, at the same address. The host writes only while no kernel reads.
  virtual Ref<Buffer> allocate_host_readable(std::size_t bytes) = 0;
};

/// The device, if its kernels can read the host's memory; else null.
TANDEM_EXPORT HostMemoryReader* host_memory_reader(Device& device);

}  // namespace tandem
