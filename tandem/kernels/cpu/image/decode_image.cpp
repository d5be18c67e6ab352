// Images from bytes. What an image is, its first bytes say: DecodeJpeg and DecodePng take either.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/codec/bmp_decode.h"
#include "tandem/kernels/cpu/codec/gif_decode.h"
#include "tandem/kernels/cpu/codec/jpeg_decode.h"
#include "tandem/kernels/cpu/codec/png_decode.h"
#include "tandem/kernels/cpu/image/decode_attrs.h"

namespace tandem::cpu {
namespace {

template <class T>
PixelMemory<T> output_of(KernelContext& c) {
  return [&c](const ImageSize& s) {
    const Shape shape = s.frames > 0 ? Shape{s.frames, s.height, s.width, s.channels}
                                     : Shape{s.height, s.width, s.channels};
    return c.allocate_output(0, shape).template data<T>();
  };
}

// Decodes 8 bits a sample and makes the output of them: out = in · factor.
template <class T, class Decode>
void scaled(KernelContext& c, T factor, Decode decode) {
  std::vector<std::uint8_t> pixels;
  ImageSize size;
  decode(PixelMemory<std::uint8_t>([&](const ImageSize& s) {
    size = s;
    pixels.resize(static_cast<std::size_t>(s.samples()));
    return pixels.data();
  }));
  T* out = output_of<T>(c)(size);
  for (std::size_t i = 0; i < pixels.size(); ++i) out[i] = static_cast<T>(pixels[i] * factor);
}

template <class Decode>
void as_dtype(KernelContext& c, DType dtype, Decode decode) {
  if (dtype == DType::kUint8) return decode(output_of<std::uint8_t>(c));
  if (dtype == DType::kUint16) return scaled<std::uint16_t>(c, 256, decode);
  scaled<float>(c, static_cast<float>(1.0 / 255), decode);
}

void png_as_dtype(KernelContext& c, std::string_view bytes, std::int64_t channels, DType dtype) {
  if (dtype == DType::kUint8) return decode_png(bytes, channels, output_of<std::uint8_t>(c));
  if (dtype == DType::kUint16) return decode_png(bytes, channels, output_of<std::uint16_t>(c));
  std::vector<std::uint16_t> pixels;
  ImageSize size;
  decode_png(bytes, channels, PixelMemory<std::uint16_t>([&](const ImageSize& s) {
               size = s;
               pixels.resize(static_cast<std::size_t>(s.samples()));
               return pixels.data();
             }));
  float* out = output_of<float>(c)(size);
  constexpr auto kScale = static_cast<float>(1.0 / 65535);
  for (std::size_t i = 0; i < pixels.size(); ++i) out[i] = static_cast<float>(pixels[i]) * kScale;
}

void decode(KernelContext& c, std::string_view bytes, const JpegDecodeOptions& jpeg, DType dtype,
            GifFrames frames = GifFrames::kOnly) {
  const std::int64_t channels = image_channels(c);
  switch (format_of(bytes)) {
    case Format::kJpeg: {
      const JpegDecodeOptions options = with_channels(jpeg, channels);
      return as_dtype(c, dtype, [&](const PixelMemory<std::uint8_t>& memory) {
        decode_jpeg(bytes, options, memory);
      });
    }
    case Format::kPng: return png_as_dtype(c, bytes, channels, dtype);
    case Format::kGif:
      return as_dtype(c, dtype, [&](const PixelMemory<std::uint8_t>& memory) {
        decode_gif(bytes, channels, frames, memory);
      });
    case Format::kBmp:
      return as_dtype(c, dtype, [&](const PixelMemory<std::uint8_t>& memory) {
        decode_bmp(bytes, channels, memory);
      });
  }
}

void decode_jpeg_op(KernelContext& c) {
  const JpegDecodeOptions options = jpeg_options(c);
  const std::string& bytes = image_contents(c);
  refuse_bmp(bytes, "DecodeJpeg");
  decode(c, bytes, options, DType::kUint8);
}

void decode_and_crop_jpeg(KernelContext& c) {
  JpegDecodeOptions options = jpeg_options(c);
  const std::string& bytes = image_contents(c);
  require_jpeg(bytes);
  options.crop = crop_window(c.input(1));
  decode(c, bytes, options, DType::kUint8);
}

void decode_png_op(KernelContext& c) {
  const std::string& bytes = image_contents(c);
  refuse_bmp(bytes, c.op().name);
  decode(c, bytes, {}, c.output_dtype(0));
}

void decode_bmp_op(KernelContext& c) {
  const std::string& bytes = image_contents(c);
  const Format format = format_of(bytes);
  if (format != Format::kBmp) {
    throw InvalidArgumentError(cat("Trying to decode ", name_of(format),
                                   " format using DecodeBmp op. Use `decode_image` instead."));
  }
  decode(c, bytes, {}, DType::kUint8);
}

// Other images are animations of one frame.
void decode_gif_op(KernelContext& c) {
  const std::string& bytes = image_contents(c);
  refuse_bmp(bytes, "DecodeGif");
  const PixelMemory<std::uint8_t> memory = [&](ImageSize size) {
    size.frames = std::max<std::int64_t>(size.frames, 1);
    return output_of<std::uint8_t>(c)(size);
  };
  switch (format_of(bytes)) {
    case Format::kJpeg: return decode_jpeg(bytes, with_channels({}, 3), memory);
    case Format::kPng: return decode_png(bytes, 3, memory);
    default: return decode_gif(bytes, 3, GifFrames::kAll, memory);
  }
}

void decode_image(KernelContext& c) {
  decode(c, image_contents(c), {}, c.output_dtype(0),
         c.attr<bool>("expand_animations") ? GifFrames::kAll : GifFrames::kFirst);
}

void extract_jpeg_shape(KernelContext& c) {
  const Array& input = c.input(0);
  if (input.rank() != 0) {
    throw InvalidArgumentError(cat("contents must be scalar, got shape ", input.shape()));
  }
  const ImageSize size = jpeg_size(input.data<std::string>()[0]);
  Array& out = c.allocate_output(0, {3});
  const std::int64_t sizes[] = {size.height, size.width, size.channels};
  for (int i = 0; i < 3; ++i) {
    if (out.dtype() == DType::kInt32) {
      out.data<std::int32_t>()[i] = static_cast<std::int32_t>(sizes[i]);
    } else {
      out.data<std::int64_t>()[i] = sizes[i];
    }
  }
}

const KernelRegistration kJpeg{{.op = "DecodeJpeg", .run = decode_jpeg_op}};
const KernelRegistration kMin{{.op = "_DecodeJpegOfSize", .run = decode_jpeg_op}};
const KernelRegistration kCrop{{.op = "DecodeAndCropJpeg", .run = decode_and_crop_jpeg}};
const KernelRegistration kPng{{.op = "DecodePng", .run = decode_png_op}};
const KernelRegistration kGif{{.op = "DecodeGif", .run = decode_gif_op}};
const KernelRegistration kBmp{{.op = "DecodeBmp", .run = decode_bmp_op}};
const KernelRegistration kImage{{.op = "DecodeImage", .run = decode_image}};
const KernelRegistration kShape{{.op = "ExtractJpegShape", .run = extract_jpeg_shape}};

}  // namespace
}  // namespace tandem::cpu
