#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/codec/jpeg_decode.h"

// What the ops that decode images are asked for. All of it is checked, with InvalidArgumentError.

namespace tandem::cpu {

enum class Format { kJpeg, kPng, kGif, kBmp };
/// By the first bytes.
Format format_of(std::string_view bytes);

/// Input 0, a scalar that is not empty.
const std::string& image_contents(const KernelContext& c);
/// Attribute channels: 0, 1, 3 or 4.
std::int64_t image_channels(const KernelContext& c);
/// The attributes of DecodeJpeg but for channels.
JpegDecodeOptions jpeg_options(const KernelContext& c);
/// With what JPEG images can have as channels.
JpegDecodeOptions with_channels(JpegDecodeOptions options, std::int64_t channels);
/// y, x, height and width.
JpegCrop crop_window(const Array& window);

/// "JPEG".
std::string_view name_of(Format format);

/// `op` takes no BMP images.
void refuse_bmp(std::string_view bytes, std::string_view op);
/// For DecodeAndCropJpeg.
void require_jpeg(std::string_view bytes);

}  // namespace tandem::cpu
