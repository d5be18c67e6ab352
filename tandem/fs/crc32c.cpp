#include "tandem/fs/crc32c.h"

#include <algorithm>
#include <cstddef>

#include <isa-l/crc.h>

namespace tandem::fs {

std::uint32_t crc32c(std::string_view bytes, std::uint32_t so_far) {
  constexpr std::size_t kMaxAtOnce = std::size_t{1} << 30;  // ISA-L counts in an int
  std::uint32_t state = ~so_far;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), kMaxAtOnce);
    // ISA-L only reads the bytes, though it does not say so.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(size), state);
    bytes.remove_prefix(size);
  }
  return ~state;
}

}  // namespace tandem::fs
