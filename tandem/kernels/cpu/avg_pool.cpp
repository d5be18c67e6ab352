// The mean of each window, and its gradient.

#include <algorithm>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/number_types.h"
#include "tandem/kernels/cpu/pool_geometry.h"
#include "tandem/kernels/cpu/pool_rows.h"

namespace tandem::cpu {
namespace {

constexpr double kVectorSpeed = 0.2;  // the cost of vector loops, measured by that of plain ones

double cost_of_row(const PoolGeometry& g, std::int64_t columns) {
  return 0.7 * static_cast<double>(columns * g.channels) *
         static_cast<double>(g.height.filter * g.width.filter);
}

void avg_pool(KernelContext& c) {
  const PoolGeometry g = pool_geometry(pool_attrs(c, 0), c.input(0).shape());
  Array& out = c.allocate_output(0, g.output);
  if (out.num_elements() == 0) return;
  with_floating(out.dtype(), [&]<class T>() {
    using W = Wide<T>;
    const T* in = c.input(0).data<T>();
    T* to = out.data<T>();
    const auto rows = [&](std::int64_t begin, std::int64_t end) {
      const Array scratch = c.allocate_temp(dtype_of<W>, Shape{g.channels});
      W* sums = scratch.data<W>();
      for (std::int64_t i = begin; i < end; ++i) {
        const T* image = in + i / g.height.output * g.image_elements();
        const Span h = PoolGeometry::covered(g.height, i % g.height.output);
        for (std::int64_t column = 0; column < g.width.output; ++column) {
          const Span w = PoolGeometry::covered(g.width, column);
          std::fill(sums, sums + g.channels, W(0));
          for (std::int64_t y = h.begin; y < h.end; ++y) {
            for (std::int64_t x = w.begin; x < w.end; ++x) {
              const T* from = image + (y * g.width.input + x) * g.channels;
              for (std::int64_t k = 0; k < g.channels; ++k) sums[k] += widen(from[k]);
            }
          }
          const W count = static_cast<W>((h.end - h.begin) * (w.end - w.begin));
          T* mean = to + (i * g.width.output + column) * g.channels;
          for (std::int64_t k = 0; k < g.channels; ++k) mean[k] = static_cast<T>(sums[k] / count);
        }
      }
    };
    c.intra_op().parallel_for(g.batch * g.height.output, cost_of_row(g, g.width.output), rows);
  });
}

void avg_pool_vectors(KernelContext& c) {
  const PoolGeometry g = pool_geometry(pool_attrs(c, 0), c.input(0).shape());
  Array& out = c.allocate_output(0, g.output);
  if (out.num_elements() == 0) return;
  const float* in = c.input(0).data<float>();
  float* to = out.data<float>();
  c.intra_op().parallel_for(
      g.batch * g.height.output, kVectorSpeed * cost_of_row(g, g.width.output),
      [&](std::int64_t begin, std::int64_t end) {
        by_image(g.height.output, begin, end, [&](std::int64_t image, Span rows) {
          avg_pool_rows(g, in + image * g.image_elements(), to + image * g.window_elements(), rows);
        });
      });
}

Shape image_shape(const Array& sizes) {
  if (sizes.rank() != 1 || sizes.num_elements() != 4) {
    throw InvalidArgumentError(cat(
        "orig_input_shape must be 1-dimensional and 4 elements, but has shape ", sizes.shape()));
  }
  const auto values = sizes.values<std::int32_t>();
  return Shape(std::vector<std::int64_t>(values.begin(), values.end()));
}

PoolGeometry check_gradient(const KernelContext& c, const Shape& image) {
  if (c.input(1).rank() != 4) {
    throw InvalidArgumentError(
        cat("out_backprop must be 4-dimensional, but has shape ", c.input(1).shape()));
  }
  const PoolGeometry g = pool_geometry(pool_attrs(c, 0), image);
  require_shape(c, 1, g.output, "grad");
  return g;
}

// Each input element gathers its shares from the windows that cover it.
void avg_pool_grad(KernelContext& c) {
  const Shape shape = image_shape(c.input(0));
  const PoolGeometry g = check_gradient(c, shape);
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  with_floating(out.dtype(), [&]<class T>() {
    using W = Wide<T>;
    const T* gradient = c.input(1).data<T>();
    T* to = out.data<T>();
    const auto rows = [&](std::int64_t begin, std::int64_t end) {
      const Array scratch = c.allocate_temp(dtype_of<W>, Shape{g.channels});
      W* sums = scratch.data<W>();
      for (std::int64_t i = begin; i < end; ++i) {
        const T* windows = gradient + i / g.height.input * g.window_elements();
        const Span h = PoolGeometry::covering(g.height, i % g.height.input);
        for (std::int64_t x = 0; x < g.width.input; ++x) {
          const Span w = PoolGeometry::covering(g.width, x);
          std::fill(sums, sums + g.channels, W(0));
          for (std::int64_t row = h.begin; row < h.end; ++row) {
            const Span tall = PoolGeometry::covered(g.height, row);
            for (std::int64_t column = w.begin; column < w.end; ++column) {
              const Span wide = PoolGeometry::covered(g.width, column);
              const W share = 1 / static_cast<W>((tall.end - tall.begin) * (wide.end - wide.begin));
              const T* from = windows + (row * g.width.output + column) * g.channels;
              for (std::int64_t k = 0; k < g.channels; ++k) sums[k] += widen(from[k]) * share;
            }
          }
          T* sum = to + (i * g.width.input + x) * g.channels;
          for (std::int64_t k = 0; k < g.channels; ++k) sum[k] = static_cast<T>(sums[k]);
        }
      }
    };
    c.intra_op().parallel_for(g.batch * g.height.input, cost_of_row(g, g.width.input), rows);
  });
}

void avg_pool_grad_vectors(KernelContext& c) {
  const Shape shape = image_shape(c.input(0));
  const PoolGeometry g = check_gradient(c, shape);
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  const float* gradient = c.input(1).data<float>();
  float* to = out.data<float>();
  c.intra_op().parallel_for(g.batch * g.height.input, kVectorSpeed * cost_of_row(g, g.width.input),
                            [&](std::int64_t begin, std::int64_t end) {
                              by_image(
                                  g.height.input, begin, end, [&](std::int64_t image, Span rows) {
                                    avg_pool_grad_rows(g, gradient + image * g.window_elements(),
                                                       to + image * g.image_elements(), rows);
                                  });
                            });
}

// The values of both are input 0 of AvgPool and input 1 of AvgPoolGrad.
const char* accepts_vectors(const KernelContext& c) {
  constexpr std::int64_t kFewest = 4;
  const Shape& shape = c.input(c.num_inputs() - 1).shape();
  if (shape.rank() != 4) return "the images are not of rank 4";
  if (c.attr<std::string>("data_format") != "NHWC") return "the channels are not last";
  if (shape[3] < kFewest) return "there are too few channels to fill vectors with";
  return nullptr;
}

KernelDecl vector_kernel(const char* op, KernelFn run) {
  return {.op = op,
          .name = "vectors",
          .types = {{"T", {DType::kFloat}}},
          .priority = 10,
          .run = run,
          .accepts = accepts_vectors};
}
const KernelRegistration kVectorAvgPool(vector_kernel("AvgPool", avg_pool_vectors));
const KernelRegistration kVectorAvgPoolGrad(vector_kernel("AvgPoolGrad", avg_pool_grad_vectors));

const KernelRegistration kAvgPool{
    {.op = "AvgPool", .types = {{"T", kFloatTypes}}, .run = avg_pool}};
const KernelRegistration kAvgPoolGrad{
    {.op = "AvgPoolGrad", .types = {{"T", kFloatTypes}}, .run = avg_pool_grad}};

}  // namespace
}  // namespace tandem::cpu
