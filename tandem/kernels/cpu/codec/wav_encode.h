#pragma once

#include <cstdint>
#include <string>

namespace tandem::cpu {

/// The bytes of a WAV file of 16-bit PCM: `frames` rows of `channels` samples each, from -1 to 1;
/// what lies beyond is clipped, and NaN is silence. Throws InvalidArgumentError for sizes that the
/// format does not hold.
std::string encode_wav(const float* samples, std::int64_t frames, std::int64_t channels,
                       std::int64_t sample_rate);

}  // namespace tandem::cpu
