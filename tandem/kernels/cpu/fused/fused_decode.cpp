// _FusedDecodeJpeg: of an image that is being decoded only the lines that a row needs are kept.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/codec/bmp_decode.h"
#include "tandem/kernels/cpu/codec/gif_decode.h"
#include "tandem/kernels/cpu/codec/jpeg_decode.h"
#include "tandem/kernels/cpu/codec/png_decode.h"
#include "tandem/kernels/cpu/fused/fused_rows.h"
#include "tandem/kernels/cpu/image/decode_attrs.h"
#include "tandem/kernels/cpu/image/resize_methods.h"

namespace tandem::cpu {
namespace {

int args_of(const KernelContext& c) {
  return 2 + static_cast<int>(c.attr<std::int64_t>("num_windows"));
}
int rank_of(const KernelContext& c) { return c.attr<bool>("batch") ? 4 : 3; }

Shape shape_of(const ImageSize& size) { return {size.height, size.width, size.channels}; }

Resize resize_of(const KernelContext& c, const ImageSize& size) {
  Resize r{1, size.channels, size.height, size.width, 0, 0};
  set_new_size(r, c.input(1));
  return r;
}

// Lines as floats, after the node's program for lines.
class FloatLines {
 public:
  FloatLines(KernelContext& c, const ImageSize& size)
      : size_(size.width * size.channels),
        program_(c, RowProgram::Which::kLines, args_of(c), shape_of(size)),
        run_(program_) {}
  FloatLines(const FloatLines&) = delete;
  FloatLines& operator=(const FloatLines&) = delete;
  void make(std::int64_t y, const std::uint8_t* from, float* to) {
    row_steps().lerp_bytes(from, from, 0.0f, size_, to);  // as they are
    run_(y, to);
  }

 private:
  std::int64_t size_;
  RowProgram program_;
  RowProgram::Run run_;
};

// T is the type of the lines that rows are made of: bytes as they are decoded, or float.
template <class Method, class T>
class ResizedLines final : public ImageLines {
 public:
  explicit ResizedLines(KernelContext& c) : context_(c), placement_(c) {}

  void begin(const ImageSize& size) override {
    const Resize r = resize_of(context_, size);
    const std::int64_t line = size.width * size.channels;
    out_height_ = r.out_height;
    rows_.emplace(context_, r, rank_of(context_), args_of(context_));
    method_.emplace(placement_, r);
    kept_ = std::max<std::int64_t>(2, kFloats ? 0 : method_->lines());
    stride_ = (line + 2 * kOff - 1) / (2 * kOff) * (2 * kOff);
    lines_ = context_.allocate_temp(DType::kUint8, Shape{kOff + kept_ * stride_});
    if constexpr (kFloats) {
      kept_floats_ = method_->lines();
      floats_ = context_.allocate_temp(DType::kFloat, Shape{kept_floats_ * line});
      line_size_ = line;
      float_lines_.emplace(context_, size);
    }
    maker_.emplace(method_->template maker<T>(context_, r));
    writer_.emplace(context_, *rows_);
  }
  std::uint8_t* place(std::int64_t y) override {
    return lines_.data<std::uint8_t>() + kOff + y % kept_ * stride_;
  }
  void take(std::int64_t y) override {
    if constexpr (kFloats) {
      // Nothing reads what lies between the lines of two rows.
      if (next_ < out_height_ && method_->first_line(next_) <= y)
        float_lines_->make(y, place(y), line(y));
    }
    const auto at = [this](std::int64_t number) { return line(number); };
    for (; next_ < out_height_ && method_->last_line(next_) <= y; ++next_) {
      maker_->make(0, next_, at, writer_->place(next_));
      writer_->finish(next_);
    }
  }

 private:
  static constexpr bool kFloats = std::is_same_v<T, float>;
  // The JPEG library writes past the caches to memory that is aligned for its vectors, which lines
  // that are read at once must not be.
  static constexpr std::int64_t kOff = 8;

  T* line(std::int64_t y) {
    if constexpr (kFloats) {
      return floats_.data<float>() + y % kept_floats_ * line_size_;
    } else {
      return place(y);
    }
  }

  KernelContext& context_;
  Placement placement_;
  std::int64_t kept_ = 0;  // lines
  std::int64_t stride_ = 0;
  std::int64_t kept_floats_ = 0;  // lines
  std::int64_t line_size_ = 0;
  std::int64_t out_height_ = 0;
  std::int64_t next_ = 0;  // row to be made
  Array lines_;
  Array floats_;
  std::optional<FloatLines> float_lines_;
  std::optional<FusedRows> rows_;
  std::optional<Method> method_;
  std::optional<decltype(std::declval<const Method&>().template maker<T>(
      std::declval<const KernelContext&>(), std::declval<const Resize&>()))>
      maker_;
  std::optional<FusedRows::Writer> writer_;
};

void decode_lines(KernelContext& c, const std::string& bytes, const JpegDecodeOptions& options) {
  with_method(c, [&]<class Method>() {
    const auto decode = [&](auto&& lines) { decode_jpeg(bytes, options, lines); };
    if (c.attr<bool>("float_lines")) {
      decode(ResizedLines<Method, float>(c));
    } else {
      decode(ResizedLines<Method, std::uint8_t>(c));
    }
  });
}

Array as_floats(KernelContext& c, const Array& image, const ImageSize& size) {
  Array floats = c.allocate_temp(DType::kFloat, image.shape());
  FloatLines lines(c, size);
  const std::int64_t line = size.width * size.channels;
  for (std::int64_t y = 0; y < size.height; ++y)
    lines.make(y, image.data<std::uint8_t>() + y * line, floats.data<float>() + y * line);
  return floats;
}

void fused_decode_jpeg(KernelContext& c) {
  JpegDecodeOptions options = jpeg_options(c);
  const std::string& bytes = image_contents(c);
  const auto& decoder = c.attr<std::string>("decoder");
  if (decoder == "DecodeAndCropJpeg") {
    require_jpeg(bytes);
    options.crop = crop_window(c.input(2));
  } else if (decoder != "DecodeImage") {
    refuse_bmp(bytes, decoder == "DecodePng" ? decoder : "DecodeJpeg");
  }
  const std::int64_t channels = image_channels(c);
  const Format format = format_of(bytes);
  if (format == Format::kJpeg) {
    options = with_channels(options, channels);
    return decode_lines(c, bytes, options);
  }
  Array image;
  ImageSize size;
  const PixelMemory<std::uint8_t> memory = [&](const ImageSize& s) {
    size = s;
    image = c.allocate_temp(DType::kUint8, shape_of(s));
    return image.data<std::uint8_t>();
  };
  if (format == Format::kPng) {
    decode_png(bytes, channels, memory);
  } else if (format == Format::kGif) {
    decode_gif(bytes, channels, decoder == "DecodeImage" ? GifFrames::kFirst : GifFrames::kOnly,
               memory);
  } else {
    decode_bmp(bytes, channels, memory);
  }
  const Resize r = resize_of(c, size);
  if (c.attr<bool>("float_lines")) image = as_floats(c, image, size);
  resize_images(c, r, rank_of(c), args_of(c), image);
}

const KernelRegistration kDecode{{.op = "_FusedDecodeJpeg",
                                  .name = "lines",
                                  .types = {{"Tout", kFloatTypes}},
                                  .run = fused_decode_jpeg}};

}  // namespace
}  // namespace tandem::cpu
