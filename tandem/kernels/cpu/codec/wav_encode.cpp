#include "tandem/kernels/cpu/codec/wav_encode.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kSampleBytes = 2;
constexpr std::int64_t kHeaderBytes = 44;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (; bytes > 0; --bytes, value >>= 8) out += static_cast<char>(value & 0xff);
}

void put_sample(std::string& out, float sample) {
  constexpr float kScale = 32768;
  const float level = std::isnan(sample) ? 0 : std::round(sample * kScale);
  put(out,
      static_cast<std::uint16_t>(static_cast<std::int16_t>(std::clamp(level, -32768.0f, 32767.0f))),
      kSampleBytes);
}

}  // namespace

std::string encode_wav(const float* samples, std::int64_t frames, std::int64_t channels,
                       std::int64_t sample_rate) {
  constexpr std::int64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
  if (channels < 1 || channels > std::numeric_limits<std::uint16_t>::max() / kSampleBytes) {
    throw InvalidArgumentError(cat("WAV audio can't have ", channels, " channels."));
  }
  if (sample_rate < 1 || sample_rate > kMax32 / (channels * kSampleBytes)) {
    throw InvalidArgumentError(
        cat("WAV audio of ", channels, " channels can't have ", sample_rate, " samples a second."));
  }
  const std::int64_t frame_bytes = channels * kSampleBytes;
  if (frames > (kMax32 - kHeaderBytes) / frame_bytes) {
    throw InvalidArgumentError(cat("WAV audio can't have ", frames, " frames of ", channels,
                                   " samples: a file holds at most 4 GiB."));
  }
  const std::int64_t data_bytes = frames * frame_bytes;
  std::string out;
  out.reserve(static_cast<std::size_t>(kHeaderBytes + data_bytes));
  out += "RIFF";
  put(out, static_cast<std::uint64_t>(kHeaderBytes - 8 + data_bytes), 4);
  out += "WAVEfmt ";
  put(out, 16, 4);  // bytes of the format that follows
  put(out, 1, 2);   // PCM
  put(out, static_cast<std::uint64_t>(channels), 2);
  put(out, static_cast<std::uint64_t>(sample_rate), 4);
  put(out, static_cast<std::uint64_t>(sample_rate * frame_bytes), 4);
  put(out, static_cast<std::uint64_t>(frame_bytes), 2);
  put(out, 8 * kSampleBytes, 2);
  out += "data";
  put(out, static_cast<std::uint64_t>(data_bytes), 4);
  for (std::int64_t i = 0; i < frames * channels; ++i) put_sample(out, samples[i]);
  return out;
}

}  // namespace tandem::cpu
