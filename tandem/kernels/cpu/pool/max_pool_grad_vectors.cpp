// The gradient of max pooling where the channels are last and not few: vectors of channels. Half
// and bfloat16 go through float, an image at a time.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/pool/pool_geometry.h"
#include "tandem/kernels/cpu/pool/pool_rows.h"

namespace tandem::cpu {
namespace {

const char* accepts(const KernelContext& c) {
  constexpr std::int64_t kFewest = 4;
  const Shape& shape = c.input(0).shape();
  if (shape.rank() != 4) return "the images are not of rank 4";
  if (c.attr<std::string>("data_format") != "NHWC") return "the channels are not last";
  if (shape[3] < kFewest) return "there are too few channels to fill vectors with";
  if (shape.product(1, 4) > std::numeric_limits<std::int32_t>::max()) {
    return "the images are too large for 32-bit indices";
  }
  return nullptr;
}

double cost_of_row(const PoolGeometry& g) {
  return 0.15 * static_cast<double>(g.output_row()) *
         static_cast<double>(g.height.filter * g.width.filter);
}

// The input rows that belong to an output row where windows are disjoint: those from its window's
// first to the next window's, and at the ends those that no window covers.
Span owned(const PoolGeometry& g, Span rows) {
  const std::int64_t begin =
      rows.begin == 0 ? 0 : PoolGeometry::covered(g.height, rows.begin).begin;
  const std::int64_t end = rows.end == g.height.output
                               ? g.height.input
                               : PoolGeometry::covered(g.height, rows.end).begin;
  return {begin, end};
}

bool is_disjoint(const WindowAxis& axis) { return axis.stride >= axis.filter; }
bool has_gaps(const WindowAxis& axis) {
  return axis.stride > axis.filter || axis.output * axis.stride - axis.pad_before < axis.input;
}

PoolGeometry checked_geometry(const KernelContext& c) {
  const PoolGeometry g = pool_geometry(pool_attrs(c, 0), c.input(0).shape());
  require_shape(c, 1, g.output, "orig_output");
  require_shape(c, 2, g.output, "grad");
  return g;
}

void max_pool_grad(KernelContext& c) {
  const PoolGeometry g = checked_geometry(c);
  Array& out = c.allocate_output(0, c.input(0).shape());
  if (out.num_elements() == 0) return;
  const float* in = c.input(0).data<float>();
  const float* gradient = c.input(2).data<float>();
  float* to = out.data<float>();
  const auto add = [&](std::int64_t image, Span rows, bool disjoint) {
    max_pool_grad_rows(g, in + image * g.image_elements(), gradient + image * g.window_elements(),
                       to + image * g.image_elements(), rows, disjoint);
  };
  const double cost = 2 * cost_of_row(g);
  if (g.window_elements() == 0) {
    std::fill(to, to + out.num_elements(), 0.0f);
  } else if (is_disjoint(g.height) && is_disjoint(g.width)) {
    const bool gaps = has_gaps(g.height) || has_gaps(g.width);
    c.intra_op().parallel_for(
        g.batch * g.height.output, cost, [&](std::int64_t begin, std::int64_t end) {
          by_image(g.height.output, begin, end, [&](std::int64_t image, Span rows) {
            if (gaps) {
              const Span mine = owned(g, rows);
              float* const from = to + image * g.image_elements();
              std::fill(from + mine.begin * g.input_row(), from + mine.end * g.input_row(), 0.0f);
            }
            add(image, rows, true);
          });
        });
  } else {
    c.intra_op().parallel_for(g.batch, cost * static_cast<double>(g.height.output),
                              [&](std::int64_t begin, std::int64_t end) {
                                std::fill(to + begin * g.image_elements(),
                                          to + end * g.image_elements(), 0.0f);
                                for (std::int64_t image = begin; image < end; ++image) {
                                  add(image, {0, g.height.output}, false);
                                }
                              });
  }
}

// An image at a time in float.
template <class T>
void max_pool_grad_short(KernelContext& c) {
  const PoolGeometry g = checked_geometry(c);
  Array& out = c.allocate_output(0, c.input(0).shape());
  if (out.num_elements() == 0) return;
  const std::int64_t elements = g.image_elements(), windows = g.window_elements();
  const double cost = 2 * cost_of_row(g) * static_cast<double>(g.height.output);
  c.intra_op().parallel_for(g.batch, cost, [&](std::int64_t begin, std::int64_t end) {
    const Array floats = c.allocate_temp(DType::kFloat, Shape{2 * elements + windows});
    float* const in = floats.data<float>();
    float* const to = in + elements;
    float* const gradient = to + elements;
    for (std::int64_t image = begin; image < end; ++image) {
      to_floats(c.input(0).data<T>() + image * elements, in, elements);
      to_floats(c.input(2).data<T>() + image * windows, gradient, windows);
      std::fill(to, gradient, 0.0f);
      if (windows != 0) max_pool_grad_rows(g, in, gradient, to, {0, g.height.output}, false);
      from_floats(to, out.data<T>() + image * elements, elements);
    }
  });
}

KernelDecl vector_kernel(DType dtype, KernelFn run) {
  return {.op = "MaxPoolGrad",
          .name = "vectors",
          .types = {{"T", {dtype}}},
          .priority = 10,
          .run = run,
          .accepts = accepts};
}
const KernelRegistration kKernels[] = {
    KernelRegistration(vector_kernel(DType::kFloat, max_pool_grad)),
    KernelRegistration(vector_kernel(DType::kBFloat16, max_pool_grad_short<BFloat16>)),
    KernelRegistration(vector_kernel(DType::kHalf, max_pool_grad_short<Half>))};

}  // namespace
}  // namespace tandem::cpu
