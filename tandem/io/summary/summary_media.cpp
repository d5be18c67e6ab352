// Images and audio of TensorFlow 1's summaries.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/summary_values.h"
#include "tandem/kernels/cpu/codec/png_encode.h"
#include "tandem/kernels/cpu/codec/wav_encode.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::io {
namespace {

std::string numbered(const std::string& tag, const char* what, std::int64_t most, std::int64_t i) {
  return most > 1 ? cat(tag, "/", what, "/", i) : cat(tag, "/", what);
}

// Scales the pixels of one image so that they fill 0..255.
template <class T>
std::vector<std::uint8_t> scaled(const T* pixels, const cpu::ImageSize& size,
                                 const std::uint8_t* bad_color) {
  constexpr float kZero = 1e-6f;
  const std::int64_t samples = size.samples();
  float least = 0, greatest = 0;
  bool any = false;
  const auto bad = [&](std::int64_t pixel) {
    for (std::int64_t c = 0; c < size.channels; ++c) {
      if (!std::isfinite(static_cast<float>(pixels[pixel + c]))) return true;
    }
    return false;
  };
  for (std::int64_t p = 0; p < samples; p += size.channels) {
    if (bad(p)) continue;
    for (std::int64_t c = 0; c < size.channels; ++c) {
      const auto value = static_cast<float>(pixels[p + c]);
      least = any ? std::min(least, value) : value;
      greatest = any ? std::max(greatest, value) : value;
      any = true;
    }
  }
  const bool centred = least < 0;
  const float extent = centred ? std::max(std::abs(least), std::abs(greatest)) : greatest;
  const float scale = extent < kZero ? 0 : (centred ? 127.0f : 255.0f) / extent;
  const float offset = centred ? 128.0f : 0.0f;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(samples));
  for (std::int64_t p = 0; p < samples; p += size.channels) {
    const bool is_bad = bad(p);
    for (std::int64_t c = 0; c < size.channels; ++c) {
      bytes[static_cast<std::size_t>(p + c)] =
          is_bad ? bad_color[c]
                 : static_cast<std::uint8_t>(static_cast<float>(pixels[p + c]) * scale + offset);
    }
  }
  return bytes;
}

std::string encode_image(const Array& images, std::int64_t i, const cpu::ImageSize& size,
                         const std::uint8_t* bad_color) {
  const std::int64_t at = i * size.samples();
  if (images.dtype() == DType::kUint8)
    return cpu::encode_png(images.data<std::uint8_t>() + at, size, 1, -1);
  std::vector<std::uint8_t> bytes;
  cpu::with_type<float, Half, double>(
      images.dtype(), [&]<class T>() { bytes = scaled(images.data<T>() + at, size, bad_color); });
  return cpu::encode_png(bytes.data(), size, 1, -1);
}

}  // namespace

void add_images(const std::string& tag, const Array& images, std::int64_t max_images,
                const Array& bad_color, proto::Summary& summary) {
  const bool four = images.rank() == 4;
  const std::int64_t channels = four ? images.dim(3) : 0;
  if (channels != 1 && channels != 3 && channels != 4) {
    throw InvalidArgumentError(
        cat("Tensor must be 4-D with last dim 1, 3, or 4, not ", images.shape()));
  }
  if (bad_color.dtype() != DType::kUint8 || bad_color.rank() != 1 ||
      bad_color.num_elements() < channels) {
    throw InvalidArgumentError(cat("expected bad_color to be a vector of at least ", channels,
                                   " uint8, got ", bad_color.dtype(), " ", bad_color.shape()));
  }
  const cpu::ImageSize size{images.dim(1), images.dim(2), channels};
  const std::int64_t count = std::min(max_images, images.dim(0));
  for (std::int64_t i = 0; i < count; ++i) {
    proto::Summary::Value& value = summary.value.emplace_back();
    value.tag = numbered(tag, "image", max_images, i);
    value.which_value = proto::Summary::Value::Case::kImage;
    proto::Summary::Image& image = value.image.make();
    image.height = static_cast<std::int32_t>(size.height);
    image.width = static_cast<std::int32_t>(size.width);
    image.colorspace = static_cast<std::int32_t>(channels);
    image.encoded_image_string = encode_image(images, i, size, bad_color.data<std::uint8_t>());
  }
}

void add_audio(const std::string& tag, const Array& audio, float sample_rate,
               std::int64_t max_outputs, proto::Summary& summary) {
  if (audio.rank() != 2 && audio.rank() != 3) {
    throw InvalidArgumentError(cat("Tensor must be 3-D or 2-D, got: ", audio.shape()));
  }
  if (!(sample_rate > 0)) throw InvalidArgumentError("sample_rate must be > 0");
  const std::int64_t frames = audio.dim(1), channels = audio.rank() == 3 ? audio.dim(2) : 1;
  const std::int64_t count = std::min(max_outputs, audio.dim(0));
  for (std::int64_t i = 0; i < count; ++i) {
    proto::Summary::Value& value = summary.value.emplace_back();
    value.tag = numbered(tag, "audio", max_outputs, i);
    value.which_value = proto::Summary::Value::Case::kAudio;
    proto::Summary::Audio& clip = value.audio.make();
    clip.sample_rate = sample_rate;
    clip.num_channels = channels;
    clip.length_frames = frames;
    clip.content_type = "audio/wav";
    clip.encoded_audio_string = cpu::encode_wav(audio.data<float>() + i * frames * channels, frames,
                                                channels, static_cast<std::int64_t>(sample_rate));
  }
}

}  // namespace tandem::io
