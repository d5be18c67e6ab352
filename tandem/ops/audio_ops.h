#pragma once

#include <cstdint>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

/// Sound from bytes and as bytes: WAV files of 16-bit PCM.
namespace tandem::audio {

struct DecodedWav {
  Tensor audio;        ///< float [samples, channels], from -1 to 1
  Tensor sample_rate;  ///< int32, samples a second
};
/// The samples of a WAV file, a string scalar. desired_channels: so many, where the file's first
/// one is repeated if it has fewer; desired_samples: so many, cut or filled up with zeros; -1: as
/// the file has. Bytes that are no such file throw InvalidArgumentError.
TANDEM_EXPORT DecodedWav decode_wav(Tensor contents, std::int64_t desired_channels = -1,
                                    std::int64_t desired_samples = -1);
/// The bytes of a WAV file of float [samples, channels]; values beyond -1 and 1 are clipped.
/// sample_rate: an int32 scalar above 0.
TANDEM_EXPORT Tensor encode_wav(Tensor audio, Tensor sample_rate);

}  // namespace tandem::audio
