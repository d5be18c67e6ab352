// _FusedResize and _FusedDecodeJpeg: images resized row by row, each row finished while it is in
// the nearest cache; of an image that is being decoded only the lines that a row needs are kept.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/codec/bmp_decode.h"
#include "tandem/kernels/cpu/codec/jpeg_decode.h"
#include "tandem/kernels/cpu/codec/png_decode.h"
#include "tandem/kernels/cpu/decode_attrs.h"
#include "tandem/kernels/cpu/fused_rows.h"
#include "tandem/kernels/cpu/number_types.h"
#include "tandem/kernels/cpu/resample_lines.h"
#include "tandem/kernels/cpu/resize.h"

namespace tandem::cpu {
namespace {

// ---- How rows are made of lines ----

template <Taps (*make_taps)(const Placement&, std::int64_t, std::int64_t), Mix mix>
struct Tapped {
  Taps y, x;
  NewWidth columns;

  Tapped(const Placement& place, const Resize& r)
      : y(make_taps(place, r.in_height, r.out_height)),
        x(make_taps(place, r.in_width, r.out_width)),
        columns(r, x, mix) {}
  Tapped(const Tapped&) = delete;
  Tapped& operator=(const Tapped&) = delete;

  template <class T>
  RowMaker<T> maker(const KernelContext& c, const Resize& r) const {
    return RowMaker<T>(c, r, y, columns);
  }
  // The last line that row `at` is made of, which is no earlier than that of the row before.
  std::int64_t last_line(std::int64_t at) const {
    return y.index[static_cast<std::size_t>((at + 1) * y.count - 1)];
  }
  // So many lines, up to the last, are all that a row is made of.
  std::int64_t lines() const { return y.count; }
  double cost(const Resize& r) const {
    return 0.5 * static_cast<double>(r.out_width * r.channels * (x.count + y.count));
  }
};
using Bilinear = Tapped<bilinear_taps, Mix::kLerp>;
using Bicubic = Tapped<cubic_taps, Mix::kWeights>;
using Area = Tapped<area_taps, Mix::kWeights>;

struct Nearest {
  std::vector<std::int64_t> y, x;

  Nearest(const Placement& place, const Resize& r)
      : y(nearest_pixels(place, r.in_height, r.out_height)),
        x(nearest_pixels(place, r.in_width, r.out_width)) {}

  template <class T>
  struct Maker {
    const Nearest& nearest;
    std::int64_t channels;

    template <class Line>
    void make(std::int64_t first, std::int64_t at, const Line& line, float* to) const {
      const T* from = line(first + nearest.last_line(at));
      for (const std::int64_t column : nearest.x) {
        const T* pixel = from + column * channels;
        for (std::int64_t k = 0; k < channels; ++k) *to++ = static_cast<float>(pixel[k]);
      }
    }
  };
  template <class T>
  Maker<T> maker(const KernelContext&, const Resize& r) const {
    return {*this, r.channels};
  }
  std::int64_t last_line(std::int64_t at) const { return y[static_cast<std::size_t>(at)]; }
  std::int64_t lines() const { return 1; }
  double cost(const Resize& r) const { return 0.5 * static_cast<double>(r.out_width * r.channels); }
};

template <class F>
void with_method(const KernelContext& c, F f) {
  const auto& method = c.attr<std::string>("method");
  if (method == "bilinear") return f.template operator()<Bilinear>();
  if (method == "bicubic") return f.template operator()<Bicubic>();
  if (method == "area") return f.template operator()<Area>();
  f.template operator()<Nearest>();
}

// ---- Images in memory ----

void resize_images(KernelContext& c, const Resize& r, int rank, int first_arg,
                   const Array& images) {
  const Placement place(c);
  const FusedRows rows(c, r, rank, first_arg);
  if (rows.is_empty()) return;
  with_method(c, [&]<class Method>() {
    const Method method(place, r);
    with_real(images.dtype(), [&]<class T>() {
      const T* const in = images.data<T>();
      const std::int64_t in_row = r.in_width * r.channels;
      const auto line = [&](std::int64_t row) { return in + row * in_row; };
      c.intra_op().parallel_for(r.batch * r.out_height, method.cost(r) + rows.cost(),
                                [&](std::int64_t begin, std::int64_t end) {
                                  auto maker = method.template maker<T>(c, r);
                                  FusedRows::Writer writer(rows);
                                  for (std::int64_t i = begin; i < end; ++i) {
                                    maker.make(i / r.out_height * r.in_height, i % r.out_height,
                                               line, writer.place(i));
                                    writer.finish(i);
                                  }
                                });
    });
  });
}

void fused_resize(KernelContext& c) {
  const Shape& images = c.input(0).shape();
  const int rank = images.rank();
  if (rank != 3 && rank != 4) {
    throw InvalidArgumentError(
        cat("images must be 4-dimensional, or 3-dimensional if one, but have shape ", images));
  }
  Resize r{rank == 4 ? images[0] : 1, images[rank - 1], images[rank - 3], images[rank - 2], 0, 0};
  set_new_size(r, c.input(1));
  resize_images(c, r, rank, 2, c.input(0));
}

// ---- Images that are being decoded ----

int first_arg_of(const KernelContext& c) {
  return 2 + static_cast<int>(c.attr<std::int64_t>("num_windows"));
}
int rank_of(const KernelContext& c) { return c.attr<bool>("batch") ? 4 : 3; }

Resize resize_of(const KernelContext& c, const ImageSize& size) {
  Resize r{1, size.channels, size.height, size.width, 0, 0};
  set_new_size(r, c.input(1));
  return r;
}

template <class Method>
class ResizedLines final : public ImageLines {
 public:
  explicit ResizedLines(KernelContext& c) : context_(c), placement_(c) {}

  void begin(const ImageSize& size) override {
    const Resize r = resize_of(context_, size);
    out_height_ = r.out_height;
    rows_.emplace(context_, r, rank_of(context_), first_arg_of(context_));
    method_.emplace(placement_, r);
    kept_ = std::max<std::int64_t>(2, method_->lines());
    stride_ = (size.width * size.channels + 2 * kOff - 1) / (2 * kOff) * (2 * kOff);
    lines_ = context_.allocate_temp(DType::kUint8, Shape{kOff + kept_ * stride_});
    maker_.emplace(method_->template maker<std::uint8_t>(context_, r));
    writer_.emplace(*rows_);
  }
  std::uint8_t* place(std::int64_t y) override { return line(y); }
  void take(std::int64_t y) override {
    const auto at = [this](std::int64_t number) { return line(number); };
    for (; next_ < out_height_ && method_->last_line(next_) <= y; ++next_) {
      maker_->make(0, next_, at, writer_->place(next_));
      writer_->finish(next_);
    }
  }

 private:
  // The JPEG library writes past the caches to memory that is aligned for its vectors, which lines
  // that are read at once must not be.
  static constexpr std::int64_t kOff = 8;
  std::uint8_t* line(std::int64_t y) {
    return lines_.data<std::uint8_t>() + kOff + y % kept_ * stride_;
  }

  KernelContext& context_;
  Placement placement_;
  std::int64_t kept_ = 0;  // lines
  std::int64_t stride_ = 0;
  std::int64_t out_height_ = 0;
  std::int64_t next_ = 0;  // row to be made
  Array lines_;
  std::optional<FusedRows> rows_;
  std::optional<Method> method_;
  std::optional<decltype(std::declval<const Method&>().template maker<std::uint8_t>(
      std::declval<const KernelContext&>(), std::declval<const Resize&>()))>
      maker_;
  std::optional<FusedRows::Writer> writer_;
};

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
    return with_method(c, [&]<class Method>() {
      ResizedLines<Method> lines(c);
      decode_jpeg(bytes, options, lines);
    });
  }
  Array image;
  ImageSize size;
  const PixelMemory<std::uint8_t> memory = [&](const ImageSize& s) {
    size = s;
    image = c.allocate_temp(DType::kUint8, Shape{s.height, s.width, s.channels});
    return image.data<std::uint8_t>();
  };
  if (format == Format::kPng) {
    decode_png(bytes, channels, memory);
  } else {
    decode_bmp(bytes, channels, memory);
  }
  resize_images(c, resize_of(c, size), rank_of(c), first_arg_of(c), image);
}

constexpr DTypeSet kImageTypes =
    kFloatTypes | DTypeSet{DType::kInt8,   DType::kUint8, DType::kInt16,
                           DType::kUint16, DType::kInt32, DType::kInt64};

const KernelRegistration kResize{{.op = "_FusedResize",
                                  .name = "rows",
                                  .types = {{"T", kImageTypes}, {"Tout", kFloatTypes}},
                                  .run = fused_resize}};
const KernelRegistration kDecode{{.op = "_FusedDecodeJpeg",
                                  .name = "lines",
                                  .types = {{"Tout", kFloatTypes}},
                                  .run = fused_decode_jpeg}};

}  // namespace
}  // namespace tandem::cpu
