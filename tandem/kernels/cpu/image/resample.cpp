#include "tandem/kernels/cpu/image/resample.h"

#include <algorithm>

#include "tandem/kernels/cpu/image/resample_lines.h"
#include "tandem/kernels/cpu/norm/rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {

// Rows of bytes are mixed in whole vectors, and then only as many rows as come out change their
// width.
bool height_first(const Resize& r, Mix mix) {
  if (mix != Mix::kLerp || (r.channels != 3 && r.channels != 4)) return false;
  // Instructions, roughly.
  constexpr double kVector = 16, kMixBytes = 10, kMix = 7, kPixelOfBytes = 11, kPixel = 7;
  const auto in_row = static_cast<double>(r.in_width * r.channels);
  const auto width = static_cast<double>(r.out_width), height = static_cast<double>(r.out_height);
  const double rows = std::min(static_cast<double>(r.in_height), 2 * height);
  const double out_row = width * static_cast<double>(r.channels);
  return height * (in_row * kMixBytes / kVector + width * kPixel) <
         rows * width * kPixelOfBytes + height * out_row * kMix / kVector;
}

namespace {

template <class T>
void resample_of(KernelContext& c, const Resize& r, const Taps& y, const Taps& x, Mix mix,
                 const T* in, float* out) {
  const std::int64_t in_row = r.in_width * r.channels, out_row = r.out_width * r.channels;
  const double cost = 0.5 * static_cast<double>(out_row * (x.count + y.count));
  const NewWidth columns(r, x, mix);
  const auto line = [&](std::int64_t row) { return in + row * in_row; };
  c.intra_op().parallel_for(
      r.batch * r.out_height, cost, [&](std::int64_t begin, std::int64_t end) {
        RowMaker<T> rows(c, r, y, columns);
        for (std::int64_t i = begin; i < end; ++i)
          rows.make(i / r.out_height * r.in_height, i % r.out_height, line, out + i * out_row);
      });
}

}  // namespace

void resample(KernelContext& c, const Resize& r, const Taps& y, const Taps& x, Mix mix,
              const Array& images, float* out) {
  with_real(images.dtype(),
            [&]<class T>() { resample_of(c, r, y, x, mix, images.data<T>(), out); });
}

void resample_transposed(KernelContext& c, const Resize& r, const Taps& y, const Taps& x,
                         const Array& grads, Array& out) {
  const float* upstream = grads.data<float>();
  with_floating(out.dtype(), [&]<class Out>() {
    using W = Wide<Out>;
    const std::int64_t in_row = r.in_width * r.channels, image = r.in_height * in_row;
    const std::int64_t out_row = r.out_width * r.channels;
    const double cost = static_cast<double>(r.out_height * (out_row * x.count + in_row * y.count));
    c.intra_op().parallel_for(r.batch, cost, [&](std::int64_t begin, std::int64_t end) {
      const Array sums = c.allocate_temp(dtype_of<W>, Shape{r.in_height, in_row});
      const Array scratch = c.allocate_temp(dtype_of<W>, Shape{in_row});
      W* sum = sums.data<W>();
      W* line = scratch.data<W>();
      for (std::int64_t b = begin; b < end; ++b) {
        std::fill(sum, sum + image, W(0));
        for (std::int64_t oy = 0; oy < r.out_height; ++oy) {
          const float* from = upstream + (b * r.out_height + oy) * out_row;
          std::fill(line, line + in_row, W(0));
          for (std::int64_t ox = 0; ox < r.out_width; ++ox, from += r.channels) {
            for (std::int64_t t = 0; t < x.count; ++t) {
              const auto at = static_cast<std::size_t>(ox * x.count + t);
              const W weight = x.weight[at];
              W* to = line + x.index[at] * r.channels;
              for (std::int64_t k = 0; k < r.channels; ++k) {
                to[k] += static_cast<W>(from[k]) * weight;
              }
            }
          }
          for (std::int64_t t = 0; t < y.count; ++t) {
            const auto at = static_cast<std::size_t>(oy * y.count + t);
            combine_rows(
                sum + y.index[at] * in_row, line, in_row,
                [w = static_cast<W>(y.weight[at])](W total, W value) { return total + value * w; });
          }
        }
        Out* to = out.data<Out>() + b * image;
        for (std::int64_t i = 0; i < image; ++i) to[i] = static_cast<Out>(sum[i]);
      }
    });
  });
}

}  // namespace tandem::cpu
