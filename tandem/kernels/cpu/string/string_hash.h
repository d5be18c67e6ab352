#pragma once

#include <cstdint>
#include <string_view>

namespace tandem::cpu {

/// FarmHash's fingerprint, which TensorFlow hashes strings by where speed counts.
std::uint64_t fingerprint(std::string_view text);

/// MurmurHash64A with TensorFlow's seed.
std::uint64_t murmur(std::string_view text);

/// SipHash-2-4, which cannot be predicted without the key.
std::uint64_t keyed_hash(std::uint64_t key0, std::uint64_t key1, std::string_view text);

}  // namespace tandem::cpu
