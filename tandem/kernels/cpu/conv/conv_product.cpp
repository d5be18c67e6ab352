#include "tandem/kernels/cpu/conv/conv_product.h"

#include <algorithm>

#include "tandem/kernels/cpu/linalg/matrix_product.h"
#include "tandem/kernels/cpu/onednn/fused_matmul.h"
#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu {
namespace {

bool reads_every_pixel(const ConvCase& p) { return p.y.stride == 1 && p.x.stride == 1; }

std::int64_t positions(const ConvCase& p) { return p.batch * p.y.output * p.x.output; }

std::int64_t weights(const ConvCase& p) { return p.in_depth * p.out_depth; }

// The pixels that the filter sees, side by side: the image itself, or a copy that `holder` keeps.
const void* seen_pixels(KernelContext& c, const ConvCase& p, const void* whole, Array& holder) {
  if (reads_every_pixel(p)) return whole;
  holder = c.allocate_temp(DType::kFloat, Shape{positions(p), p.in_depth});
  const float* const image = static_cast<const float*>(whole);
  float* const to = holder.data<float>();
  const std::int64_t depth = p.in_depth, rows = p.batch * p.y.output;
  const double cost = 0.1 * static_cast<double>(p.x.output * depth);
  c.intra_op().parallel_for(rows, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / p.y.output, y = row % p.y.output * p.y.stride;
      const float* const from = image + (n * p.y.input + y) * p.x.input * depth;
      for (std::int64_t x = 0; x < p.x.output; ++x) {
        std::copy_n(from + x * p.x.stride * depth, depth, to + (row * p.x.output + x) * depth);
      }
    }
  });
  return to;
}

// Back to their places; pixels that the filter does not see are 0.
void scatter_pixels(KernelContext& c, const ConvCase& p, const float* from, float* image) {
  const std::int64_t depth = p.in_depth, rows = p.batch * p.y.input;
  const double cost = 0.1 * static_cast<double>(p.x.input * depth);
  c.intra_op().parallel_for(rows, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t n = row / p.y.input, y = row % p.y.input;
      float* to = image + row * p.x.input * depth;
      float* const row_end = to + p.x.input * depth;
      if (y % p.y.stride == 0 && y / p.y.stride < p.y.output) {
        const float* pixel = from + (n * p.y.output + y / p.y.stride) * p.x.output * depth;
        for (std::int64_t x = 0; x < p.x.output; ++x, pixel += depth) {
          to = std::copy_n(pixel, depth, to);
          float* const next = x + 1 < p.x.output ? to + (p.x.stride - 1) * depth : to;
          std::fill(to, next, 0.0f);
          to = next;
        }
      }
      std::fill(to, row_end, 0.0f);
    }
  });
}

}  // namespace

bool can_run_as_product(const ConvCase& p) {
  return p.dtype == DType::kFloat && !p.nchw && p.groups == 1 && p.y.filter == 1 &&
         p.x.filter == 1 && p.y.pad_before == 0 && p.x.pad_before == 0 && p.y.pad_after == 0 &&
         p.x.pad_after == 0;
}

bool forward_runs_as_product(const ConvCase& p) {
  if (!can_run_as_product(p)) return false;
  const bool widens = reads_every_pixel(p) && p.out_depth >= p.in_depth;
  return weights(p) >= (widens ? tuning::kSomeWeights : tuning::kManyWeights);
}

bool backprop_input_runs_as_product(const ConvCase& p) {
  return can_run_as_product(p) && weights(p) >= tuning::kManyWeights;
}

bool backprop_filter_runs_as_product(const ConvCase& p) {
  return can_run_as_product(p) &&
         weights(p) >= (reads_every_pixel(p) ? tuning::kFewWeights : tuning::kManyWeights);
}

void conv_forward_product(KernelContext& c, const ConvCase& p, const void* image,
                          const void* filter, void* output) {
  MatrixProduct product;
  product.m = positions(p);
  product.n = p.out_depth;
  product.k = p.in_depth;
  Array pixels;
  product.a = seen_pixels(c, p, image, pixels);
  product.b = filter;
  product.c = output;
  multiply_matrices(c, product);
}

void conv_backprop_input_product(KernelContext& c, const ConvCase& p, const void* filter,
                                 const void* gradient, void* image) {
  MatrixProduct product;
  product.m = positions(p);
  product.n = p.in_depth;
  product.k = p.out_depth;
  product.transpose_b = true;
  product.a = gradient;
  product.b = filter;
  product.c = image;
  if (reads_every_pixel(p)) return multiply_matrices(c, product);
  Array pixels = c.allocate_temp(DType::kFloat, Shape{product.m, product.n});
  product.c = pixels.raw_data();
  multiply_matrices(c, product);
  scatter_pixels(c, p, pixels.data<float>(), static_cast<float*>(image));
}

void conv_backprop_filter_product(KernelContext& c, const ConvCase& p, const void* image,
                                  const void* gradient, void* filter) {
  MatrixProduct product;
  product.m = p.in_depth;
  product.n = p.out_depth;
  product.k = positions(p);
  product.transpose_a = true;
  Array pixels;
  product.a = seen_pixels(c, p, image, pixels);
  product.b = gradient;
  product.c = filter;
  multiply_matrices(c, product);
}

void fused_conv_product(KernelContext& c, const ConvCase& p, const Epilogue& epilogue,
                        const void* image, const Array& filter, float* output) {
  onednn::FusedMatMul product;
  product.m = positions(p);
  product.n = p.out_depth;
  product.k = p.in_depth;
  product.epilogue = epilogue;
  Array pixels;
  const void* const seen = seen_pixels(c, p, image, pixels);
  onednn::fused_matmul(c, product, static_cast<const float*>(seen), filter, output);
}

}  // namespace tandem::cpu
