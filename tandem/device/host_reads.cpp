#include "tandem/device/host_reads.h"

namespace tandem {

HostMemoryReader::~HostMemoryReader() = default;

HostMemoryReader* host_memory_reader(Device& device) {
  auto* reader = dynamic_cast<HostMemoryReader*>(&device);
  return reader && reader->host_read_limit() != 0 ? reader : nullptr;
}

}  // namespace tandem
