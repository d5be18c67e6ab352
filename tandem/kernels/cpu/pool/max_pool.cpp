// The largest value of each window, and its gradients.

#include <algorithm>
#include <limits>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/pool/pool3d_windows.h"
#include "tandem/kernels/cpu/pool/pool_geometry.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

constexpr DTypeSet kPoolTypes =
    kFloatTypes | DTypeSet{DType::kInt32, DType::kInt64, DType::kUint8,
                           DType::kInt16, DType::kInt8,  DType::kUint16};

double cost_of_row(const PoolGeometry& g) {
  return 0.7 * static_cast<double>(g.output_row()) *
         static_cast<double>(g.height.filter * g.width.filter);
}

// The windows of one row of one image of integers.
template <class T>
void max_row(const PoolGeometry& g, const T* image, T* out, std::int64_t row) {
  const Span h = PoolGeometry::covered(g.height, row);
  for (std::int64_t column = 0; column < g.width.output; ++column, out += g.channels) {
    const Span w = PoolGeometry::covered(g.width, column);
    bool first = true;
    for (std::int64_t y = h.begin; y < h.end; ++y) {
      for (std::int64_t x = w.begin; x < w.end; ++x) {
        const T* in = image + (y * g.width.input + x) * g.channels;
        if (first) {
          std::copy(in, in + g.channels, out);
          first = false;
          continue;
        }
        for (std::int64_t i = 0; i < g.channels; ++i) {
          if (in[i] > out[i]) out[i] = in[i];
        }
      }
    }
    if (first) std::fill(out, out + g.channels, std::numeric_limits<T>::lowest());
  }
}

void run_max_pool(KernelContext& c, int first_size) {
  const PoolGeometry g = pool_geometry(pool_attrs(c, first_size), c.input(0).shape());
  Array& out = c.allocate_output(0, g.output);
  if (out.num_elements() == 0) return;
  const auto whole_numbers = [&]<class T>() {
    const T* in = c.input(0).data<T>();
    T* to = out.data<T>();
    c.intra_op().parallel_for(g.batch * g.height.output, cost_of_row(g),
                              [&](std::int64_t begin, std::int64_t end) {
                                for (std::int64_t i = begin; i < end; ++i) {
                                  const std::int64_t image = i / g.height.output;
                                  max_row(g, in + image * g.image_elements(),
                                          to + i * g.output_row(), i % g.height.output);
                                }
                              });
  };
  switch (out.dtype()) {
    case DType::kHalf:
    case DType::kBFloat16:
    case DType::kFloat:
    case DType::kDouble: return pool_largest(c, volume_of(g), c.input(0), out);
    default: with_integer(out.dtype(), whole_numbers);
  }
}

// Calls f(window, element) for every window of one image with the place of one of its elements,
// both counted from the image's beginning: the last for which better(window, element, the best
// before it or −1) holds.
template <class Better, class F>
void for_each_best(const PoolGeometry& g, Better better, F f) {
  std::int64_t window = 0;
  for (std::int64_t row = 0; row < g.height.output; ++row) {
    const Span h = PoolGeometry::covered(g.height, row);
    for (std::int64_t column = 0; column < g.width.output; ++column) {
      const Span w = PoolGeometry::covered(g.width, column);
      for (std::int64_t channel = 0; channel < g.channels; ++channel, ++window) {
        std::int64_t best = -1;
        for (std::int64_t y = h.begin; y < h.end; ++y) {
          std::int64_t at = (y * g.width.input + w.begin) * g.channels + channel;
          for (std::int64_t x = w.begin; x < w.end; ++x, at += g.channels) {
            if (better(window, at, best)) best = at;
          }
        }
        if (best >= 0) f(window, best);
      }
    }
  }
}

// The first largest element. Nothing is larger than NaN, and NaN than nothing: it counts where it
// is the window's first.
template <class T>
auto larger_in(const T* image) {
  return [image](std::int64_t, std::int64_t at, std::int64_t best) {
    return best < 0 || widen(image[at]) > widen(image[best]);
  };
}
// The first element that equals the window's value in `most`; there may be none.
template <class T>
auto equal_in(const T* image, const T* most) {
  return [image, most](std::int64_t window, std::int64_t at, std::int64_t best) {
    return best < 0 && widen(image[at]) == widen(most[window]);
  };
}

double cost_of_image(const PoolGeometry& g) {
  return 2 * cost_of_row(g) * static_cast<double>(g.height.output) +
         0.2 * static_cast<double>(g.image_elements());
}

void run_max_pool_grad(KernelContext& c, int first_size) {
  const Shape& shape = c.input(0).shape();
  const PoolGeometry g = pool_geometry(pool_attrs(c, first_size), shape);
  require_shape(c, 1, g.output, "orig_output");
  require_shape(c, 2, g.output, "grad");
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  with_real(out.dtype(), [&]<class T>() {
    using W = Wide<T>;
    constexpr bool kNarrow = !std::is_same_v<T, W>;
    const T* in = c.input(0).data<T>();
    const T* gradient = c.input(2).data<T>();
    T* to = out.data<T>();
    const std::int64_t elements = g.image_elements();
    c.intra_op().parallel_for(g.batch, cost_of_image(g), [&](std::int64_t begin, std::int64_t end) {
      // Short types add up in float, in a place of their own.
      Array scratch;
      if constexpr (kNarrow) scratch = c.allocate_temp(dtype_of<W>, Shape{elements});
      for (std::int64_t i = begin; i < end; ++i) {
        const T* upstream = gradient + i * g.window_elements();
        W* sums = nullptr;
        if constexpr (kNarrow) {
          sums = scratch.data<W>();
        } else {
          sums = to + i * elements;
        }
        std::fill(sums, sums + elements, W(0));
        for_each_best(g, larger_in(in + i * elements), [&](std::int64_t window, std::int64_t at) {
          sums[at] = static_cast<W>(sums[at] + widen(upstream[window]));
        });
        if constexpr (kNarrow) {
          for (std::int64_t j = 0; j < elements; ++j)
            to[i * elements + j] = static_cast<T>(sums[j]);
        }
      }
    });
  });
}

void run_max_pool_grad_grad(KernelContext& c, int first_size) {
  const Shape& shape = c.input(0).shape();
  const PoolGeometry g = pool_geometry(pool_attrs(c, first_size), shape);
  require_shape(c, 1, g.output, "orig_output");
  require_shape(c, 2, shape, "grad");
  Array& out = c.allocate_output(0, g.output);
  if (out.num_elements() == 0) return;
  with_real(out.dtype(), [&]<class T>() {
    const T* in = c.input(0).data<T>();
    const T* most = c.input(1).data<T>();
    const T* gradient = c.input(2).data<T>();
    T* to = out.data<T>();
    c.intra_op().parallel_for(g.batch, cost_of_image(g), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T* upstream = gradient + i * g.image_elements();
        T* windows = to + i * g.window_elements();
        std::fill(windows, windows + g.window_elements(), T());
        const auto equal = equal_in(in + i * g.image_elements(), most + i * g.window_elements());
        for_each_best(g, equal, [&](std::int64_t window, std::int64_t at) {
          windows[window] = upstream[at];
        });
      }
    });
  });
}

void max_pool(KernelContext& c) { run_max_pool(c, 0); }
void max_pool_v2(KernelContext& c) { run_max_pool(c, 1); }
void max_pool_grad(KernelContext& c) { run_max_pool_grad(c, 0); }
void max_pool_grad_v2(KernelContext& c) { run_max_pool_grad(c, 3); }
void max_pool_grad_grad(KernelContext& c) { run_max_pool_grad_grad(c, 0); }
void max_pool_grad_grad_v2(KernelContext& c) { run_max_pool_grad_grad(c, 3); }

const KernelRegistration kMaxPool{{.op = "MaxPool", .types = {{"T", kPoolTypes}}, .run = max_pool}};
const KernelRegistration kMaxPoolV2{
    {.op = "MaxPoolV2", .types = {{"T", kPoolTypes}}, .run = max_pool_v2}};
const KernelRegistration kMaxPoolGrad{
    {.op = "MaxPoolGrad", .types = {{"T", kRealTypes}}, .run = max_pool_grad}};
const KernelRegistration kMaxPoolGradV2{
    {.op = "MaxPoolGradV2", .types = {{"T", kRealTypes}}, .run = max_pool_grad_v2}};
const KernelRegistration kMaxPoolGradGrad{
    {.op = "MaxPoolGradGrad", .types = {{"T", kRealTypes}}, .run = max_pool_grad_grad}};
const KernelRegistration kMaxPoolGradGradV2{
    {.op = "MaxPoolGradGradV2", .types = {{"T", kRealTypes}}, .run = max_pool_grad_grad_v2}};

}  // namespace
}  // namespace tandem::cpu
