// Images as bytes.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/codec/jpeg_encode.h"
#include "tandem/kernels/cpu/codec/png_encode.h"

namespace tandem::cpu {
namespace {

ImageSize size_of(const Array& image) {
  if (image.rank() != 3) {
    throw InvalidArgumentError(cat("image must be 3-dimensional, got shape ", image.shape()));
  }
  return {image.dim(0), image.dim(1), image.dim(2)};
}

void set_bytes(KernelContext& c, std::string bytes) {
  c.allocate_output(0, {}).data<std::string>()[0] = std::move(bytes);
}

void check_format(const std::string& format, std::int64_t channels) {
  if (!format.empty() && format != "grayscale" && format != "rgb") {
    throw InvalidArgumentError(cat("format must be '', grayscale or rgb, got ", format));
  }
  if ((format == "grayscale" && channels != 1) || (format == "rgb" && channels != 3)) {
    throw InvalidArgumentError(cat("format '", format, "' expects ", format == "rgb" ? 3 : 1,
                                   " channels, got ", channels));
  }
}

void encode_jpeg_op(KernelContext& c) {
  const Array& image = c.input(0);
  const ImageSize size = size_of(image);
  check_format(c.attr<std::string>("format"), size.channels);
  const auto& unit = c.attr<std::string>("density_unit");
  if (unit != "in" && unit != "cm") {
    throw InvalidArgumentError(cat("density_unit must be 'in' or 'cm', got ", unit));
  }
  const JpegEncodeOptions options{.quality = c.attr<std::int64_t>("quality"),
                                  .progressive = c.attr<bool>("progressive"),
                                  .optimize_size = c.attr<bool>("optimize_size"),
                                  .chroma_downsampling = c.attr<bool>("chroma_downsampling"),
                                  .density_in_cm = unit == "cm",
                                  .x_density = c.attr<std::int64_t>("x_density"),
                                  .y_density = c.attr<std::int64_t>("y_density"),
                                  .xmp_metadata = c.attr<std::string>("xmp_metadata")};
  set_bytes(c, encode_jpeg(image.data<std::uint8_t>(), size, options));
}

void encode_jpeg_variable_quality(KernelContext& c) {
  const Array& image = c.input(0);
  const ImageSize size = size_of(image);
  if (c.input(1).rank() != 0) {
    throw InvalidArgumentError(cat("quality must be scalar, got shape ", c.input(1).shape()));
  }
  const JpegEncodeOptions options{.quality = c.input(1).data<std::int32_t>()[0]};
  set_bytes(c, encode_jpeg(image.data<std::uint8_t>(), size, options));
}

// One image, or any number in leading axes.
void encode_png_op(KernelContext& c) {
  const Array& images = c.input(0);
  const int batch_rank = images.rank() - 3;
  if (batch_rank < 0) {
    throw InvalidArgumentError(
        cat("images must be at least rank 3 but has shape ", images.shape()));
  }
  const ImageSize size{images.dim(batch_rank), images.dim(batch_rank + 1),
                       images.dim(batch_rank + 2)};
  const std::vector<std::int64_t> dims = images.shape().to_vector();
  const std::span<const std::int64_t> batch(dims.data(), static_cast<std::size_t>(batch_rank));
  Array& out = c.allocate_output(0, Shape(batch));
  const int bytes = images.dtype() == DType::kUint16 ? 2 : 1;
  const auto compression = c.attr<std::int64_t>("compression");
  const std::int64_t stride = size.height * size.width * size.channels * bytes;
  for (std::int64_t i = 0; i < out.num_elements(); ++i) {
    out.data<std::string>()[i] = encode_png(
        static_cast<const char*>(images.raw_data()) + i * stride, size, bytes, compression);
  }
}

const KernelRegistration kJpeg{{.op = "EncodeJpeg", .run = encode_jpeg_op}};
const KernelRegistration kJpegQuality{
    {.op = "EncodeJpegVariableQuality", .run = encode_jpeg_variable_quality}};
const KernelRegistration kPng{{.op = "EncodePng", .run = encode_png_op}};

}  // namespace
}  // namespace tandem::cpu
