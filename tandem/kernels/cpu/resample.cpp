#include "tandem/kernels/cpu/resample.h"

#include <algorithm>

#include "tandem/kernels/cpu/number_types.h"
#include "tandem/kernels/cpu/rows.h"

namespace tandem::cpu {
namespace {

// One row of `width` outputs. The number of channels is a constant where it is a usual one.
template <int kChannels>
void row_of_width(const Taps& x, Mix mix, std::int64_t width, std::int64_t channels,
                  const float* from, float* to) {
  const std::int64_t n = kChannels > 0 ? kChannels : channels;
  const std::int64_t* index = x.index.data();
  const float* weight = x.weight.data();
  for (std::int64_t i = 0; i < width; ++i, index += x.count, weight += x.count, to += n) {
    if (mix == Mix::kLerp) {
      const float *a = from + index[0] * n, *b = from + index[1] * n;
      for (std::int64_t k = 0; k < n; ++k) to[k] = a[k] + (b[k] - a[k]) * weight[1];
      continue;
    }
    const float* first = from + index[0] * n;
    for (std::int64_t k = 0; k < n; ++k) to[k] = first[k] * weight[0];
    for (std::int64_t t = 1; t < x.count; ++t) {
      const float* next = from + index[t] * n;
      for (std::int64_t k = 0; k < n; ++k) to[k] += next[k] * weight[t];
    }
  }
}

void make_row(const Taps& x, Mix mix, std::int64_t width, std::int64_t channels, const float* from,
              float* to) {
  switch (channels) {
    case 1: return row_of_width<1>(x, mix, width, channels, from, to);
    case 3: return row_of_width<3>(x, mix, width, channels, from, to);
    case 4: return row_of_width<4>(x, mix, width, channels, from, to);
    default: return row_of_width<0>(x, mix, width, channels, from, to);
  }
}

// to[k] = a[k] + (b[k] − a[k])·weight
void lerp_rows(const float* a, const float* b, float weight, std::int64_t n, float* to) {
  constexpr std::int64_t kPiece = 16;
  std::int64_t k = 0;
  for (; k + kPiece <= n; k += kPiece) {
    for (std::int64_t j = k; j < k + kPiece; ++j) to[j] = a[j] + (b[j] - a[j]) * weight;
  }
  for (; k < n; ++k) to[k] = a[k] + (b[k] - a[k]) * weight;
}

template <class T>
const float* as_float_row(const T* from, std::int64_t n, float* scratch) {
  if constexpr (std::is_same_v<T, float>) {
    return from;
  } else {
    for (std::int64_t i = 0; i < n; ++i) scratch[i] = static_cast<float>(from[i]);
    return scratch;
  }
}

template <class T>
void resample_of(KernelContext& c, const Resize& r, const Taps& y, const Taps& x, Mix mix,
                 const T* in, float* out) {
  const std::int64_t in_row = r.in_width * r.channels, out_row = r.out_width * r.channels;
  const double cost = 0.5 * static_cast<double>(out_row * (x.count + y.count));
  c.intra_op().parallel_for(
      r.batch * r.out_height, cost, [&](std::int64_t begin, std::int64_t end) {
        // Rows that have their new width already; each is used by several output rows.
        const Array rows = c.allocate_temp(DType::kFloat, Shape{y.count, out_row});
        const Array scratch = c.allocate_temp(DType::kFloat, Shape{in_row});
        std::vector<std::int64_t> held(static_cast<std::size_t>(y.count), -1);
        const auto row = [&](std::int64_t source) {
          const std::int64_t slot = source % y.count;
          float* made = rows.data<float>() + slot * out_row;
          if (held[static_cast<std::size_t>(slot)] != source) {
            held[static_cast<std::size_t>(slot)] = source;
            const float* from = as_float_row(in + source * in_row, in_row, scratch.data<float>());
            make_row(x, mix, r.out_width, r.channels, from, made);
          }
          return made;
        };
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t first = i / r.out_height * r.in_height;
          const std::int64_t at = i % r.out_height * y.count;
          const std::int64_t* index = y.index.data() + at;
          const float* weight = y.weight.data() + at;
          float* to = out + i * out_row;
          if (mix == Mix::kLerp) {
            const float* a = row(first + index[0]);
            lerp_rows(a, row(first + index[1]), weight[1], out_row, to);
            continue;
          }
          std::fill(to, to + out_row, 0.0f);
          for (std::int64_t t = 0; t < y.count; ++t) {
            combine_rows(to, row(first + index[t]), out_row,
                         [w = weight[t]](float sum, float value) { return sum + value * w; });
          }
        }
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
