// Convolutions of double, which the library for the others lacks: as products of matrices. Padding
// is multiplied as zeros are, so that an infinite weight over it makes a NaN.

#include <algorithm>
#include <atomic>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/conv/conv.h"
#include "tandem/kernels/cpu/lapack/blas.h"
#include "tandem/kernels/cpu/support/scratch.h"

namespace tandem::cpu {
namespace {

// What one output position sees of one group: a row of height x width x depth.
struct Patches {
  const ConvCase& p;
  const double* image;
  std::int64_t group;

  void copy(std::int64_t position, double* to) const {
    const std::int64_t ox = position % p.x.output, oy = position / p.x.output % p.y.output;
    const std::int64_t n = position / p.x.output / p.y.output, depth = p.group_in();
    for (std::int64_t ky = 0; ky < p.y.filter; ++ky) {
      const std::int64_t y = oy * p.y.stride + ky * p.y.dilation - p.y.pad_before;
      for (std::int64_t kx = 0; kx < p.x.filter; ++kx, to += depth) {
        const std::int64_t x = ox * p.x.stride + kx * p.x.dilation - p.x.pad_before;
        if (y < 0 || y >= p.y.input || x < 0 || x >= p.x.input) {
          std::fill_n(to, depth, 0.0);
        } else {
          const std::int64_t pixel = (n * p.y.input + y) * p.x.input + x;
          std::copy_n(image + pixel * p.in_depth + group * depth, depth, to);
        }
      }
    }
  }
};

// A filter of one pixel reads the image as it lies.
bool is_product(const ConvCase& p) {
  return p.y.filter == 1 && p.x.filter == 1 && p.y.output == p.y.input && p.x.output == p.x.input &&
         p.y.stride == 1 && p.x.stride == 1 && p.y.pad_before == 0 && p.x.pad_before == 0;
}

void conv_double(KernelContext& c, const ConvCase& p, const void* image, const void* filter,
                 void* output) {
  const auto* const pixels = static_cast<const double*>(image);
  const std::int64_t length = p.y.filter * p.x.filter * p.group_in();
  const std::int64_t positions = p.batch * p.y.output * p.x.output;
  // The patches of a block stay in a core's cache; the sizes alone say how many it has.
  constexpr std::int64_t kBlock = 1 << 15;
  // Long patches are taken one by one: some of them would be larger than the image.
  const std::int64_t least = std::clamp<std::int64_t>(64 * kBlock / length, 1, 32);
  const std::int64_t step =
      std::min(std::clamp<std::int64_t>(kBlock / length, least, 512), positions);
  const std::int64_t blocks = (positions + step - 1) / step;
  std::atomic<bool> possible{true};
  c.intra_op().parallel_for(
      blocks, p.multiplications() / static_cast<double>(blocks) * 0.3,
      [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t patches_size = is_product(p) ? 0 : step * length;
        const Scratch scratch(static_cast<std::size_t>(patches_size) * sizeof(double));
        for (std::int64_t block = begin; block < end; ++block) {
          const std::int64_t first = block * step, last = std::min(positions, first + step);
          for (std::int64_t g = 0; g < p.groups; ++g) {
            const Patches patches{p, pixels, g};
            blas::Product<double> product;
            product.m = last - first;
            product.n = p.group_out();
            product.k = length;
            if (is_product(p)) {
              product.a = pixels + first * p.in_depth + g * p.group_in();
              product.a_stride = p.in_depth;
            } else {
              for (std::int64_t i = first; i < last; ++i) {
                patches.copy(i, scratch.as<double>() + (i - first) * length);
              }
              product.a = scratch.as<double>();
              product.a_stride = length;
            }
            product.b = static_cast<const double*>(filter) + g * p.group_out();
            product.b_stride = p.out_depth;
            product.c = static_cast<double*>(output) + first * p.out_depth + g * p.group_out();
            product.c_stride = p.out_depth;
            if (!blas::multiply(product)) possible.store(false, std::memory_order_relaxed);
          }
        }
      });
  if (!possible.load(std::memory_order_relaxed)) conv_reference(c, p, image, filter, output);
}

const char* accepts(const KernelContext& c) {
  return read_conv_attrs(c).nchw ? "the image is not NHWC" : nullptr;
}

const KernelRegistration kConv2D{{.op = "Conv2D",
                                  .name = "BLAS",
                                  .types = {{"T", {DType::kDouble}}},
                                  .priority = 10,
                                  .run = conv_kernel<conv_double, false>,
                                  .accepts = accepts}};

}  // namespace
}  // namespace tandem::cpu
