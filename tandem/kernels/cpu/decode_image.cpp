// Images from bytes. What an image is, its first bytes say: DecodeJpeg and DecodePng take either.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/codec/bmp_decode.h"
#include "tandem/kernels/cpu/codec/jpeg_decode.h"
#include "tandem/kernels/cpu/codec/png_decode.h"

namespace tandem::cpu {
namespace {

using namespace std::string_view_literals;

enum class Format { kJpeg, kPng, kBmp };

Format format_of(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff"sv)) return Format::kJpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv)) return Format::kPng;
  if (bytes.starts_with("BM"sv)) return Format::kBmp;
  const bool known = bytes.starts_with("GIF8"sv) || bytes.starts_with("RIFF"sv);
  throw InvalidArgumentError(
      cat(known ? "GIF and WebP images are not supported." : "Unknown image file format.",
          " One of JPEG, PNG, BMP required."));
}

const std::string& contents(const KernelContext& c) {
  const Array& input = c.input(0);
  if (input.rank() != 0) {
    throw InvalidArgumentError(cat("`contents` must be scalar but got shape ", input.shape()));
  }
  const std::string& bytes = input.data<std::string>()[0];
  if (bytes.empty()) throw InvalidArgumentError("Input is empty.");
  return bytes;
}

bool accurate_dct(const KernelContext& c) {
  const auto& method = c.attr<std::string>("dct_method");
  if (!method.empty() && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE") {
    throw InvalidArgumentError(
        "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
  }
  return method == "INTEGER_ACCURATE";
}

JpegDecodeOptions jpeg_options(const KernelContext& c) {
  JpegDecodeOptions o;
  o.ratio = c.attr<std::int64_t>("ratio");
  if (o.ratio != 1 && o.ratio != 2 && o.ratio != 4 && o.ratio != 8) {
    throw InvalidArgumentError(cat("ratio must be 1, 2, 4, or 8, got ", o.ratio));
  }
  o.fancy_upscaling = c.attr<bool>("fancy_upscaling");
  o.try_recover_truncated = c.attr<bool>("try_recover_truncated");
  o.acceptable_fraction = c.attr<float>("acceptable_fraction");
  o.accurate_dct = accurate_dct(c);
  return o;
}

std::int64_t channels_of(const KernelContext& c) {
  const auto channels = c.attr<std::int64_t>("channels");
  if (channels != 0 && channels != 1 && channels != 3 && channels != 4) {
    throw InvalidArgumentError(cat("`channels` must be 0, 1, 3 or 4 but got ", channels));
  }
  return channels;
}

template <class T>
PixelMemory<T> output_of(KernelContext& c) {
  return [&c](const ImageSize& s) {
    return c.allocate_output(0, {s.height, s.width, s.channels}).template data<T>();
  };
}

JpegDecodeOptions with_channels(JpegDecodeOptions options, std::int64_t channels) {
  if (channels == 4) throw InvalidArgumentError("JPEG does not support 4 channels");
  options.channels = channels;
  return options;
}

// Decodes 8 bits a sample and makes the output of them: out = in · factor.
template <class T, class Decode>
void scaled(KernelContext& c, T factor, Decode decode) {
  std::vector<std::uint8_t> pixels;
  ImageSize size;
  decode(PixelMemory<std::uint8_t>([&](const ImageSize& s) {
    size = s;
    pixels.resize(static_cast<std::size_t>(s.height * s.width * s.channels));
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
               pixels.resize(static_cast<std::size_t>(s.height * s.width * s.channels));
               return pixels.data();
             }));
  float* out = output_of<float>(c)(size);
  constexpr auto kScale = static_cast<float>(1.0 / 65535);
  for (std::size_t i = 0; i < pixels.size(); ++i) out[i] = static_cast<float>(pixels[i]) * kScale;
}

void decode(KernelContext& c, std::string_view bytes, const JpegDecodeOptions& jpeg, DType dtype) {
  const std::int64_t channels = channels_of(c);
  switch (format_of(bytes)) {
    case Format::kJpeg: {
      const JpegDecodeOptions options = with_channels(jpeg, channels);
      return as_dtype(c, dtype, [&](const PixelMemory<std::uint8_t>& memory) {
        decode_jpeg(bytes, options, memory);
      });
    }
    case Format::kPng: return png_as_dtype(c, bytes, channels, dtype);
    case Format::kBmp:
      return as_dtype(c, dtype, [&](const PixelMemory<std::uint8_t>& memory) {
        decode_bmp(bytes, channels, memory);
      });
  }
}

void refuse_bmp(const KernelContext& c, std::string_view bytes) {
  if (format_of(bytes) != Format::kBmp) return;
  throw InvalidArgumentError(
      cat("Trying to decode BMP format using a wrong op. Use `decode_bmp` "
          "or `decode_image` instead. Op used: ",
          c.op().name));
}

void decode_jpeg_op(KernelContext& c) {
  const JpegDecodeOptions options = jpeg_options(c);
  const std::string& bytes = contents(c);
  refuse_bmp(c, bytes);
  decode(c, bytes, options, DType::kUint8);
}

void decode_and_crop_jpeg(KernelContext& c) {
  JpegDecodeOptions options = jpeg_options(c);
  const std::string& bytes = contents(c);
  if (format_of(bytes) != Format::kJpeg) {
    throw InvalidArgumentError(
        "DecodeAndCropJpeg operation can run on JPEG only, but detected another format.");
  }
  const Array& window = c.input(1);
  if (window.rank() != 1 || window.dim(0) != 4) {
    throw InvalidArgumentError(
        cat("crop_window must have four elements, got shape ", window.shape()));
  }
  const auto* w = window.data<std::int32_t>();
  options.crop = JpegCrop{w[0], w[1], w[2], w[3]};
  decode(c, bytes, options, DType::kUint8);
}

void decode_png_op(KernelContext& c) {
  const std::string& bytes = contents(c);
  refuse_bmp(c, bytes);
  decode(c, bytes, {}, c.output_dtype(0));
}

void decode_bmp_op(KernelContext& c) {
  const std::string& bytes = contents(c);
  const Format format = format_of(bytes);
  if (format != Format::kBmp) {
    throw InvalidArgumentError(cat("Trying to decode ", format == Format::kJpeg ? "JPEG" : "PNG",
                                   " format using DecodeBmp op. Use `decode_image` instead."));
  }
  decode(c, bytes, {}, DType::kUint8);
}

void decode_image(KernelContext& c) { decode(c, contents(c), {}, c.output_dtype(0)); }

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
const KernelRegistration kCrop{{.op = "DecodeAndCropJpeg", .run = decode_and_crop_jpeg}};
const KernelRegistration kPng{{.op = "DecodePng", .run = decode_png_op}};
const KernelRegistration kBmp{{.op = "DecodeBmp", .run = decode_bmp_op}};
const KernelRegistration kImage{{.op = "DecodeImage", .run = decode_image}};
const KernelRegistration kShape{{.op = "ExtractJpegShape", .run = extract_jpeg_shape}};

}  // namespace
}  // namespace tandem::cpu
