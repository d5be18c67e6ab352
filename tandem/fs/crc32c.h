#pragma once

#include <cstdint>
#include <string_view>

#include "tandem/core/export.h"

namespace tandem::fs {

/// The checksum of record files, checkpoints and tables (Castagnoli's polynomial). Of several
/// pieces: the checksum so far is given with each further one.
TANDEM_EXPORT std::uint32_t crc32c(std::string_view bytes, std::uint32_t so_far = 0);

/// The checksum of two pieces one after the other from those of each; `second_bytes` is the length
/// of the second one. So threads can sum parts of one value.
TANDEM_EXPORT std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second,
                                          std::uint64_t second_bytes);

/// The form in which a checksum is stored beside its bytes, so that a checksum over bytes that hold
/// checksums stays good.
constexpr std::uint32_t mask_crc32c(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
constexpr std::uint32_t unmask_crc32c(std::uint32_t masked) {
  const std::uint32_t turned = masked - 0xa282ead8u;
  return (turned >> 17) | (turned << 15);
}

}  // namespace tandem::fs
