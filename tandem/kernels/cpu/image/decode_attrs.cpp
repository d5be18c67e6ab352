#include "tandem/kernels/cpu/image/decode_attrs.h"

#include <vector>

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

using namespace std::string_view_literals;

bool accurate_dct(const KernelContext& c) {
  const auto& method = c.attr<std::string>("dct_method");
  if (!method.empty() && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE") {
    throw InvalidArgumentError(
        "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
  }
  return method == "INTEGER_ACCURATE";
}

}  // namespace

Format format_of(std::string_view bytes) {
  if (bytes.starts_with("\xff\xd8\xff"sv)) return Format::kJpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv)) return Format::kPng;
  if (bytes.starts_with("GIF8"sv)) return Format::kGif;
  if (bytes.starts_with("BM"sv)) return Format::kBmp;
  // TensorFlow's ops decode no WebP either; it is named since it is often met.
  throw InvalidArgumentError(cat(
      bytes.starts_with("RIFF"sv) ? "WebP images are not supported." : "Unknown image file format.",
      " One of JPEG, PNG, GIF, BMP required."));
}

std::string_view name_of(Format format) {
  switch (format) {
    case Format::kJpeg: return "JPEG";
    case Format::kPng: return "PNG";
    case Format::kGif: return "GIF";
    case Format::kBmp: return "BMP";
  }
  return "";
}

const std::string& image_contents(const KernelContext& c) {
  const Array& input = c.input(0);
  if (input.rank() != 0) {
    throw InvalidArgumentError(cat("`contents` must be scalar but got shape ", input.shape()));
  }
  const std::string& bytes = input.data<std::string>()[0];
  if (bytes.empty()) throw InvalidArgumentError("Input is empty.");
  return bytes;
}

JpegDecodeOptions jpeg_options(const KernelContext& c) {
  JpegDecodeOptions o;
  const AttrValue* least = c.find_attr("least_size");
  if (const auto* sizes = least ? least->get_if<std::vector<std::int64_t>>() : nullptr;
      sizes != nullptr && !sizes->empty()) {
    if (sizes->size() != 2 || (*sizes)[0] <= 0 || (*sizes)[1] <= 0) {
      throw InvalidArgumentError("least_size must be a positive height and width");
    }
    o.least_height = (*sizes)[0];
    o.least_width = (*sizes)[1];
  }
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

std::int64_t image_channels(const KernelContext& c) {
  const auto channels = c.attr<std::int64_t>("channels");
  if (channels != 0 && channels != 1 && channels != 3 && channels != 4) {
    throw InvalidArgumentError(cat("`channels` must be 0, 1, 3 or 4 but got ", channels));
  }
  return channels;
}

JpegDecodeOptions with_channels(JpegDecodeOptions options, std::int64_t channels) {
  if (channels == 4) throw InvalidArgumentError("JPEG does not support 4 channels");
  options.channels = channels;
  return options;
}

void refuse_bmp(std::string_view bytes, std::string_view op) {
  if (format_of(bytes) != Format::kBmp) return;
  throw InvalidArgumentError(
      cat("Trying to decode BMP format using a wrong op. Use `decode_bmp` "
          "or `decode_image` instead. Op used: ",
          op));
}

JpegCrop crop_window(const Array& window) {
  if (window.rank() != 1 || window.dim(0) != 4) {
    throw InvalidArgumentError(
        cat("crop_window must have four elements, got shape ", window.shape()));
  }
  const auto* w = window.data<std::int32_t>();
  return {w[0], w[1], w[2], w[3]};
}

void require_jpeg(std::string_view bytes) {
  if (format_of(bytes) != Format::kJpeg) {
    throw InvalidArgumentError(
        "DecodeAndCropJpeg operation can run on JPEG only, but detected another format.");
  }
}

}  // namespace tandem::cpu
