#include "tandem/ops/image_codec_ops.h"

#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/string_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

using internal::kUnknown;

std::int64_t wanted_channels(const InferenceContext& c) {
  const auto channels = c.attr<std::int64_t>("channels");
  if (channels < 0) c.fail(cat("channels must be non-negative, got ", channels));
  return channels == 0 ? kUnknown : channels;
}

void decoded_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.set_output(0, PartialShape({kUnknown, kUnknown, wanted_channels(c)}));
}

void cropped_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.require_rank(1, 1);
  c.merge_dim(c.input(1).dim(0), 4, "crop_window");
  std::int64_t height = kUnknown, width = kUnknown;
  if (const auto window = c.input_ints(1)) {
    height = (*window)[2];
    width = (*window)[3];
    if (height <= 0 || width <= 0) c.fail("crop_window must have a positive height and width");
  }
  c.set_output(0, PartialShape({height, width, wanted_channels(c)}));
}

// Animations have an axis more.
void image_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  const std::int64_t channels = wanted_channels(c);
  c.set_output(0, c.attr<bool>("expand_animations") ? PartialShape()
                                                    : PartialShape({kUnknown, kUnknown, channels}));
}

void frames_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.set_output(0, PartialShape({kUnknown, kUnknown, kUnknown, 3}));
}

void size_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.set_output(0, PartialShape({3}));
}

void encoded_shape(InferenceContext& c) {
  c.require_rank(0, 3);
  if (c.num_inputs() > 1) c.require_rank(1, 0);
  c.set_output(0, PartialShape::scalar());
}

void encoded_batch_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 3);
  const PartialShape& in = c.input(0);
  if (in.has_rank()) c.set_output(0, PartialShape(internal::dims_between(in, 0, in.rank() - 3)));
}

#define TANDEM_JPEG                                                                     \
  "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; "                   \
  "try_recover_truncated: bool = false; acceptable_fraction: float = 1.0; dct_method: " \
  "string = ''"

const OpRegistration kDecodeJpeg{{.name = "DecodeJpeg",
                                  .inputs = "contents: string",
                                  .outputs = "image: uint8",
                                  .attrs = TANDEM_JPEG,
                                  .shape = decoded_shape,
                                  .gradient = not_differentiable,
                                  .doc = "The pixels of a JPEG (or PNG) image."}};
const OpRegistration kDecodeJpegOfSize{
    {.name = "_DecodeJpegOfSize",
     .inputs = "contents: string",
     .outputs = "image: uint8",
     .attrs = "least_size: list(int); " TANDEM_JPEG,
     .shape = decoded_shape,
     .gradient = not_differentiable,
     .doc = "DecodeJpeg with the largest ratio, from 1, 2, 4 and 8, that leaves a JPEG image at "
            "least of least_size: height and width. With 1 if none does."}};
const OpRegistration kDecodeAndCropJpeg{{.name = "DecodeAndCropJpeg",
                                         .inputs = "contents: string, crop_window: int32",
                                         .outputs = "image: uint8",
                                         .attrs = TANDEM_JPEG,
                                         .shape = cropped_shape,
                                         .gradient = not_differentiable,
                                         .traits = {.host_inputs = 0b10},
                                         .doc = "A window of a JPEG image: y, x, height, width."}};
const OpRegistration kExtractJpegShape{{.name = "ExtractJpegShape",
                                        .inputs = "contents: string",
                                        .outputs = "image_shape: output_type",
                                        .attrs = "output_type: {int32, int64} = int32",
                                        .shape = size_shape,
                                        .gradient = not_differentiable,
                                        .doc = "Height, width and channels of a JPEG image."}};
const OpRegistration kDecodePng{{.name = "DecodePng",
                                 .inputs = "contents: string",
                                 .outputs = "image: dtype",
                                 .attrs = "channels: int = 0; dtype: {uint8, uint16} = uint8",
                                 .shape = decoded_shape,
                                 .gradient = not_differentiable,
                                 .doc = "The pixels of a PNG (or JPEG) image."}};
const OpRegistration kDecodeBmp{{.name = "DecodeBmp",
                                 .inputs = "contents: string",
                                 .outputs = "image: uint8",
                                 .attrs = "channels: int = 0",
                                 .shape = decoded_shape,
                                 .gradient = not_differentiable,
                                 .doc = "The pixels of an uncompressed BMP image."}};
const OpRegistration kDecodeGif{{.name = "DecodeGif",
                                 .inputs = "contents: string",
                                 .outputs = "image: uint8",
                                 .shape = frames_shape,
                                 .gradient = not_differentiable,
                                 .doc = "The frames of a GIF (or JPEG, or PNG) image."}};
const OpRegistration kDecodeImage{
    {.name = "DecodeImage",
     .inputs = "contents: string",
     .outputs = "image: dtype",
     .attrs = "channels: int = 0; dtype: {uint8, uint16, float} = uint8; "
              "expand_animations: bool = true",
     .shape = image_shape,
     .gradient = not_differentiable,
     .doc = "The pixels of a JPEG, PNG, GIF or BMP image; the first bytes name the format."}};
const OpRegistration kEncodeJpeg{
    {.name = "EncodeJpeg",
     .inputs = "image: uint8",
     .outputs = "contents: string",
     .attrs = "format: {'', 'grayscale', 'rgb'} = ''; quality: int = 95; progressive: bool = "
              "false; optimize_size: bool = false; chroma_downsampling: bool = true; "
              "density_unit: {'in', 'cm'} = 'in'; x_density: int = 300; y_density: int = 300; "
              "xmp_metadata: string = ''",
     .shape = encoded_shape,
     .gradient = not_differentiable,
     .doc = "An image of 1 or 3 channels as JPEG."}};
const OpRegistration kEncodeJpegQuality{{.name = "EncodeJpegVariableQuality",
                                         .inputs = "images: uint8, quality: int32",
                                         .outputs = "contents: string",
                                         .shape = encoded_shape,
                                         .gradient = not_differentiable,
                                         .doc = "An image as JPEG, of computed quality."}};
const OpRegistration kEncodePng{{.name = "EncodePng",
                                 .inputs = "image: T",
                                 .outputs = "contents: string",
                                 .attrs = "compression: int = -1; T: {uint8, uint16} = uint8",
                                 .shape = encoded_batch_shape,
                                 .gradient = not_differentiable,
                                 .doc = "Images of 1 to 4 channels as PNG."}};

AttrMap attributes(const image::DecodeJpegOptions& o) {
  return {{"channels", o.channels},
          {"ratio", o.ratio},
          {"fancy_upscaling", o.fancy_upscaling},
          {"try_recover_truncated", o.try_recover_truncated},
          {"acceptable_fraction", o.acceptable_fraction},
          {"dct_method", o.dct_method}};
}

}  // namespace

namespace image {

Tensor decode_jpeg(Tensor contents, const DecodeJpegOptions& options) {
  if (options.least_size != DecodeJpegOptions().least_size) {
    const auto [height, width] = options.least_size;
    if (height <= 0 || width <= 0 || options.ratio != 1) {
      throw InvalidArgumentError(
          cat("td::image::decode_jpeg: least_size must be a positive height and width, and ratio "
              "be left at 1; they are ",
              height, ", ", width, " and ", options.ratio, "."));
    }
    AttrMap attrs = attributes(options);
    attrs.set("least_size", std::vector<std::int64_t>{height, width});
    return call1(kDecodeJpegOfSize, {std::move(contents)}, attrs);
  }
  return call1(kDecodeJpeg, {std::move(contents)}, attributes(options));
}
Tensor decode_and_crop_jpeg(Tensor contents, Tensor crop_window, const DecodeJpegOptions& options) {
  if (options.least_size != DecodeJpegOptions().least_size) {
    throw InvalidArgumentError(
        "td::image::decode_and_crop_jpeg: the window would be another one in an image of another "
        "size; least_size is for decode_jpeg.");
  }
  return call1(kDecodeAndCropJpeg, {std::move(contents), std::move(crop_window)},
               attributes(options));
}
Tensor extract_jpeg_shape(Tensor contents, DType output_type) {
  return call1(kExtractJpegShape, {std::move(contents)}, {{"output_type", output_type}});
}
Tensor decode_png(Tensor contents, std::int64_t channels, DType dtype) {
  return call1(kDecodePng, {std::move(contents)}, {{"channels", channels}, {"dtype", dtype}});
}
Tensor decode_bmp(Tensor contents, std::int64_t channels) {
  return call1(kDecodeBmp, {std::move(contents)}, {{"channels", channels}});
}
Tensor decode_gif(Tensor contents) { return call1(kDecodeGif, {std::move(contents)}); }
Tensor decode_image(Tensor contents, std::int64_t channels, DType dtype, bool expand_animations) {
  const bool direct = dtype == DType::kUint8 || dtype == DType::kUint16 || dtype == DType::kFloat;
  return convert_image_dtype(call1(kDecodeImage, {std::move(contents)},
                                   {{"channels", channels},
                                    {"dtype", direct ? dtype : DType::kUint16},
                                    {"expand_animations", expand_animations}}),
                             dtype);
}
Tensor is_jpeg(Tensor contents) {
  return equal(strings::substr(std::move(contents), Tensor(0), Tensor(3)), "\xff\xd8\xff");
}
Tensor encode_jpeg(Tensor image, const EncodeJpegOptions& o) {
  return call1(kEncodeJpeg, {std::move(image)},
               {{"format", o.format},
                {"quality", o.quality},
                {"progressive", o.progressive},
                {"optimize_size", o.optimize_size},
                {"chroma_downsampling", o.chroma_downsampling},
                {"density_unit", o.density_unit},
                {"x_density", o.x_density},
                {"y_density", o.y_density},
                {"xmp_metadata", o.xmp_metadata}});
}
Tensor encode_jpeg_variable_quality(Tensor image, Tensor quality) {
  return call1(kEncodeJpegQuality, {std::move(image), std::move(quality)});
}
Tensor encode_png(Tensor image, std::int64_t compression) {
  return call1(kEncodePng, {std::move(image)}, {{"compression", compression}});
}

}  // namespace image
}  // namespace tandem
