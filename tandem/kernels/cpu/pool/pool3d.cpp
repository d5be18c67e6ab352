// Pooling of volumes: largest values, means, and their gradients.

#include <algorithm>
#include <vector>

#include "tandem/graph/internal/window3d.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/pool/pool3d_windows.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

struct Geometry : VolumePool {
  Shape output;
  std::int64_t image() const { return input_rows() * input_row(); }
  std::int64_t windows() const { return output_rows() * axis[2].output; }
  double cost() const {
    return static_cast<double>(windows() * channels) *
           static_cast<double>(axis[0].filter * axis[1].filter * axis[2].filter);
  }
};

Geometry pool_of(const KernelContext& c, const Shape& image) {
  const Window3D w = read_pool3d_attrs(c);
  if (image.rank() != 5) {
    throw InvalidArgumentError(cat("tensor_in must be 5-dimensional, but has shape ", image));
  }
  Geometry p;
  std::int64_t spatial[3];
  for (int i = 0; i < 3; ++i) {
    p.axis[i] = w.axis(i, image[w.spatial_axis(i)], w.ksize[i]);
    spatial[i] = p.axis[i].output;
  }
  p.batch = image[0];
  p.channels = image[w.channel_axis()];
  p.output = w.make_shape<Shape>(p.batch, spatial, p.channels);
  if (w.channels_first) {
    p.batch = checked_multiply(p.batch, p.channels);
    p.channels = 1;
  }
  return p;
}

// Calls f(window) with a function that walks over the window's positions.
template <class F>
void for_each_window(const Geometry& p, F f) {
  std::int64_t window = 0;
  const WindowAxis &az = p.axis[0], &ay = p.axis[1], &ax = p.axis[2];
  for (std::int64_t oz = 0; oz < az.output; ++oz) {
    const Span z = PoolGeometry::covered(az, oz);
    for (std::int64_t oy = 0; oy < ay.output; ++oy) {
      const Span y = PoolGeometry::covered(ay, oy);
      for (std::int64_t ox = 0; ox < ax.output; ++ox, ++window) {
        const Span x = PoolGeometry::covered(ax, ox);
        const auto walk = [&](auto visit) {
          for (std::int64_t k = z.begin; k < z.end; ++k) {
            for (std::int64_t j = y.begin; j < y.end; ++j) {
              for (std::int64_t i = x.begin; i < x.end; ++i) {
                visit((k * ay.input + j) * ax.input + i);
              }
            }
          }
        };
        f(window, walk);
      }
    }
  }
}

template <class F>
void for_each_image(KernelContext& c, const Geometry& p, F f) {
  c.intra_op().parallel_for(p.batch, p.cost(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) f(b);
  });
}

void max_pool(KernelContext& c) {
  const Geometry p = pool_of(c, c.input(0).shape());
  pool_largest(c, p, c.input(0), c.allocate_output(0, p.output));
}

void max_pool_grad(KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  const Geometry p = pool_of(c, shape);
  require_shape(c, 1, p.output, "orig_output");
  require_shape(c, 2, p.output, "grad");
  pool_largest_grad(c, p, c.input(0), c.input(1), c.input(2), c.allocate_output(0, shape));
}

void max_pool_grad_grad(KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  const Geometry p = pool_of(c, shape);
  require_shape(c, 1, p.output, "orig_output");
  require_shape(c, 2, shape, "grad");
  Array& out = c.allocate_output(0, p.output);
  if (out.num_elements() == 0) return;
  with_real(out.dtype(), [&]<class T>() {
    for_each_image(c, p, [&](std::int64_t b) {
      const T* grad = c.input(2).data<T>() + b * p.image();
      const std::int64_t size = p.windows() * p.channels;
      T* to = out.data<T>() + b * size;
      std::fill(to, to + size, T());
      const T* in = c.input(0).data<T>() + b * p.image();
      const T* most = c.input(1).data<T>() + b * size;
      std::vector<bool> found(static_cast<std::size_t>(p.channels));
      // The first element that equals the largest passes its gradient on; none does where
      // orig_output is not the largest.
      for_each_window(p, [&](std::int64_t window, auto walk) {
        const std::int64_t first = window * p.channels;
        found.assign(found.size(), false);
        walk([&](std::int64_t place) {
          const std::int64_t at = place * p.channels;
          for (std::int64_t k = 0; k < p.channels; ++k) {
            const auto channel = static_cast<std::size_t>(k);
            if (found[channel] || widen(in[at + k]) != widen(most[first + k])) continue;
            found[channel] = true;
            to[first + k] = grad[at + k];
          }
        });
      });
    });
  });
}

void avg_pool(KernelContext& c) {
  const Geometry p = pool_of(c, c.input(0).shape());
  pool_means(c, p, c.input(0), c.allocate_output(0, p.output));
}

void avg_pool_grad(KernelContext& c) {
  const Array& sizes = c.input(0);
  if (sizes.rank() != 1 || sizes.num_elements() != 5) {
    throw InvalidArgumentError(
        cat("orig_input_shape must be 1-dimensional and 5 elements, but has "
            "shape ",
            sizes.shape()));
  }
  const auto values = sizes.values<std::int32_t>();
  const Shape shape(std::vector<std::int64_t>(values.begin(), values.end()));
  const Geometry p = pool_of(c, shape);
  require_shape(c, 1, p.output, "grad");
  pool_means_grad(c, p, c.input(1), c.allocate_output(0, shape));
}

constexpr DTypeSet kInFloat{DType::kHalf, DType::kBFloat16, DType::kFloat};
const KernelRegistration kMaxPool{{.op = "MaxPool3D", .types = {{"T", kInFloat}}, .run = max_pool}};
const KernelRegistration kMaxPoolGrad{
    {.op = "MaxPool3DGrad", .types = {{"T", kInFloat}}, .run = max_pool_grad}};
const KernelRegistration kMaxPoolGradGrad{
    {.op = "MaxPool3DGradGrad", .types = {{"T", kRealTypes}}, .run = max_pool_grad_grad}};
const KernelRegistration kAvgPool{
    {.op = "AvgPool3D", .types = {{"T", kFloatTypes}}, .run = avg_pool}};
const KernelRegistration kAvgPoolGrad{
    {.op = "AvgPool3DGrad", .types = {{"T", kFloatTypes}}, .run = avg_pool_grad}};

}  // namespace
}  // namespace tandem::cpu
