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

namespace {

// Polynomials over GF(2) modulo Castagnoli's, bits reversed as in the checksum: bit 31 is x^0.
constexpr std::uint32_t kPolynomial = 0x82f63b78;

std::uint32_t multiplied(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b & 1) ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

}  // namespace

// Zero bytes behind a piece multiply its checksum by x^8 each.
std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  std::uint32_t factor = 0x80000000u;  // x^0
  std::uint32_t power = 0x00800000u;   // x^8, then its squares
  for (std::uint64_t n = second_bytes; n != 0; n >>= 1) {
    if (n & 1) factor = multiplied(factor, power);
    power = multiplied(power, power);
  }
  return multiplied(first, factor) ^ second;
}

}  // namespace tandem::fs
