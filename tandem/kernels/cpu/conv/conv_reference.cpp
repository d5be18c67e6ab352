#include <algorithm>
#include <type_traits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/conv/conv.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

template <class T>
using SumOf =
    std::conditional_t<std::is_same_v<T, double>, double,
                       std::conditional_t<std::is_same_v<T, std::uint32_t>, std::uint32_t, float>>;

// Distances between neighbours in an image.
struct Strides {
  std::int64_t batch, y, x, depth;
  Strides(bool nchw, std::int64_t height, std::int64_t width, std::int64_t channels)
      : batch(height * width * channels),
        y(nchw ? width : width * channels),
        x(nchw ? 1 : channels),
        depth(nchw ? height * width : 1) {}
};
Strides input_strides(const ConvCase& p) { return {p.nchw, p.y.input, p.x.input, p.in_depth}; }
Strides output_strides(const ConvCase& p) { return {p.nchw, p.y.output, p.x.output, p.out_depth}; }

// Where filter element k meets the input under output position o; -1 in the padding.
std::int64_t input_position(const WindowAxis& a, std::int64_t o, std::int64_t k) {
  const std::int64_t i = o * a.stride + k * a.dilation - a.pad_before;
  return i >= 0 && i < a.input ? i : -1;
}

// The output position at which filter element k meets input position i; -1 if there is none.
std::int64_t output_position(const WindowAxis& a, std::int64_t i, std::int64_t k) {
  const std::int64_t o = i + a.pad_before - k * a.dilation;
  return o >= 0 && o % a.stride == 0 && o / a.stride < a.output ? o / a.stride : -1;
}

template <class T>
void forward(KernelContext& c, const ConvCase& p, const T* image, const T* filter, T* output) {
  using Sum = SumOf<T>;
  const Strides in = input_strides(p), out = output_strides(p);
  const std::int64_t gi = p.group_in(), go = p.group_out();
  const double cost = p.multiplications() / static_cast<double>(p.batch * p.y.output);
  c.intra_op().parallel_for(p.batch * p.y.output, cost, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Sum> sums(static_cast<std::size_t>(p.out_depth));
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / p.y.output, oy = row % p.y.output;
      for (std::int64_t ox = 0; ox < p.x.output; ++ox) {
        std::fill(sums.begin(), sums.end(), Sum{});
        for (std::int64_t ky = 0; ky < p.y.filter; ++ky) {
          const std::int64_t y = input_position(p.y, oy, ky);
          if (y < 0) continue;
          for (std::int64_t kx = 0; kx < p.x.filter; ++kx) {
            const std::int64_t x = input_position(p.x, ox, kx);
            if (x < 0) continue;
            const T* pixel = image + n * in.batch + y * in.y + x * in.x;
            const T* weights = filter + (ky * p.x.filter + kx) * gi * p.out_depth;
            for (std::int64_t g = 0; g < p.groups; ++g) {
              for (std::int64_t i = 0; i < gi; ++i) {
                const Sum value = static_cast<Sum>(pixel[(g * gi + i) * in.depth]);
                const T* w = weights + i * p.out_depth + g * go;
                Sum* s = sums.data() + g * go;
                for (std::int64_t o = 0; o < go; ++o) s[o] += value * static_cast<Sum>(w[o]);
              }
            }
          }
        }
        T* to = output + n * out.batch + oy * out.y + ox * out.x;
        for (std::int64_t o = 0; o < p.out_depth; ++o) {
          to[o * out.depth] = static_cast<T>(sums[static_cast<std::size_t>(o)]);
        }
      }
    }
  });
}

template <class T>
void backprop_input(KernelContext& c, const ConvCase& p, const T* filter, const T* gradient,
                    T* image) {
  using Sum = SumOf<T>;
  const Strides in = input_strides(p), out = output_strides(p);
  const std::int64_t gi = p.group_in(), go = p.group_out();
  const double cost = p.multiplications() / static_cast<double>(p.batch * p.y.input);
  c.intra_op().parallel_for(p.batch * p.y.input, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / p.y.input, y = row % p.y.input;
      for (std::int64_t x = 0; x < p.x.input; ++x) {
        for (std::int64_t channel = 0; channel < p.in_depth; ++channel) {
          const std::int64_t g = channel / gi, i = channel % gi;
          Sum sum{};
          for (std::int64_t ky = 0; ky < p.y.filter; ++ky) {
            const std::int64_t oy = output_position(p.y, y, ky);
            if (oy < 0) continue;
            for (std::int64_t kx = 0; kx < p.x.filter; ++kx) {
              const std::int64_t ox = output_position(p.x, x, kx);
              if (ox < 0) continue;
              const T* grad =
                  gradient + n * out.batch + oy * out.y + ox * out.x + g * go * out.depth;
              const T* w = filter + ((ky * p.x.filter + kx) * gi + i) * p.out_depth + g * go;
              for (std::int64_t o = 0; o < go; ++o) {
                sum += static_cast<Sum>(grad[o * out.depth]) * static_cast<Sum>(w[o]);
              }
            }
          }
          image[n * in.batch + y * in.y + x * in.x + channel * in.depth] = static_cast<T>(sum);
        }
      }
    }
  });
}

template <class T>
void backprop_filter(KernelContext& c, const ConvCase& p, const T* image, const T* gradient,
                     T* filter) {
  using Sum = SumOf<T>;
  const Strides in = input_strides(p), out = output_strides(p);
  const std::int64_t gi = p.group_in(), go = p.group_out();
  const std::int64_t pieces = p.y.filter * p.x.filter * gi;
  const double cost = p.multiplications() / static_cast<double>(pieces);
  c.intra_op().parallel_for(pieces, cost, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Sum> sums(static_cast<std::size_t>(p.out_depth));
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const std::int64_t i = piece % gi, kx = piece / gi % p.x.filter, ky = piece / gi / p.x.filter;
      std::fill(sums.begin(), sums.end(), Sum{});
      for (std::int64_t n = 0; n < p.batch; ++n) {
        for (std::int64_t oy = 0; oy < p.y.output; ++oy) {
          const std::int64_t y = input_position(p.y, oy, ky);
          if (y < 0) continue;
          for (std::int64_t ox = 0; ox < p.x.output; ++ox) {
            const std::int64_t x = input_position(p.x, ox, kx);
            if (x < 0) continue;
            const T* pixel = image + n * in.batch + y * in.y + x * in.x;
            const T* grad = gradient + n * out.batch + oy * out.y + ox * out.x;
            for (std::int64_t o = 0; o < p.out_depth; ++o) {
              sums[static_cast<std::size_t>(o)] +=
                  static_cast<Sum>(pixel[(o / go * gi + i) * in.depth]) *
                  static_cast<Sum>(grad[o * out.depth]);
            }
          }
        }
      }
      T* to = filter + piece * p.out_depth;
      for (std::int64_t o = 0; o < p.out_depth; ++o) {
        to[o] = static_cast<T>(sums[static_cast<std::size_t>(o)]);
      }
    }
  });
}

// Integers come as unsigned ones, whose overflow is defined and has the same bits.
template <class Run>
void with_image_type(DType dtype, Run run) {
  if (dtype == DType::kInt32) return run.template operator()<std::uint32_t>();
  with_floating(dtype, run);
}

}  // namespace

void conv_reference(KernelContext& c, const ConvCase& p, const void* image, const void* filter,
                    void* output) {
  with_image_type(p.dtype, [&]<class T>() {
    forward(c, p, static_cast<const T*>(image), static_cast<const T*>(filter),
            static_cast<T*>(output));
  });
}

void conv_backprop_input_reference(KernelContext& c, const ConvCase& p, const void* filter,
                                   const void* gradient, void* image) {
  with_image_type(p.dtype, [&]<class T>() {
    backprop_input(c, p, static_cast<const T*>(filter), static_cast<const T*>(gradient),
                   static_cast<T*>(image));
  });
}

void conv_backprop_filter_reference(KernelContext& c, const ConvCase& p, const void* image,
                                    const void* gradient, void* filter) {
  with_image_type(p.dtype, [&]<class T>() {
    backprop_filter(c, p, static_cast<const T*>(image), static_cast<const T*>(gradient),
                    static_cast<T*>(filter));
  });
}

}  // namespace tandem::cpu
