// Grey-scale dilation, and pooling that says where the largest values were.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/internal/window.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

void require_rank_4(const Shape& shape) {
  if (shape.rank() != 4) {
    throw InvalidArgumentError(cat("input must be 4-dimensional, but has shape ", shape));
  }
}

// Calls f(output row, output column, input row, input column, filter row, filter column) for all
// places of one image that meet, each output's together.
template <class F>
void for_each_meeting(const WindowAxis& y, const WindowAxis& x, F f) {
  for (std::int64_t oy = 0; oy < y.output; ++oy) {
    for (std::int64_t ox = 0; ox < x.output; ++ox) {
      for (std::int64_t ky = 0; ky < y.filter; ++ky) {
        const std::int64_t iy = oy * y.stride + ky * y.dilation - y.pad_before;
        if (iy < 0 || iy >= y.input) continue;
        for (std::int64_t kx = 0; kx < x.filter; ++kx) {
          const std::int64_t ix = ox * x.stride + kx * x.dilation - x.pad_before;
          if (ix < 0 || ix >= x.input) continue;
          f(oy * x.output + ox, iy * x.input + ix, ky * x.filter + kx);
        }
      }
    }
  }
}

// ---- MaxPoolWithArgmax ----

struct Pool {
  WindowAxis y, x;
  std::int64_t batch, channels;
  Shape output() const { return {batch, y.output, x.output, channels}; }
};

Pool pool_of(const KernelContext& c) {
  const Shape& in = c.input(0).shape();
  require_rank_4(in);
  WindowAttrs w;
  w.set_ksize(c.attr<Ints>("ksize"));
  w.set_strides(c.attr<Ints>("strides"));
  w.set_padding(c.attr<std::string>("padding"), {});
  return {w.axis(0, in[1], w.ksize[0]), w.axis(1, in[2], w.ksize[1]), in[0], in[3]};
}

void set_index(Array& to, std::int64_t at, std::int64_t value) {
  if (to.dtype() == DType::kInt64) {
    to.data<std::int64_t>()[at] = value;
  } else {
    to.data<std::int32_t>()[at] = static_cast<std::int32_t>(value);
  }
}

void max_pool_with_argmax(KernelContext& c) {
  const Pool p = pool_of(c);
  const bool whole_batch = c.attr<bool>("include_batch_in_index");
  Array& out = c.allocate_output(0, p.output());
  Array& argmax = c.allocate_output(1, p.output());
  if (out.num_elements() == 0) return;
  if (argmax.dtype() == DType::kInt32 && c.input(0).num_elements() > INT32_MAX) {
    throw InvalidArgumentError("The indices do not fit into int32: ask for int64.");
  }
  const std::int64_t image = p.y.input * p.x.input * p.channels;
  const std::int64_t windows = p.y.output * p.x.output * p.channels;
  with_real(out.dtype(), [&]<class T>() {
    const double cost = 2.0 * static_cast<double>(windows * p.y.filter * p.x.filter);
    c.intra_op().parallel_for(p.batch, cost, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::int64_t> best(static_cast<std::size_t>(windows));
      for (std::int64_t b = begin; b < end; ++b) {
        const T* in = c.input(0).data<T>() + b * image;
        std::fill(best.begin(), best.end(), -1);
        for_each_meeting(p.y, p.x, [&](std::int64_t o, std::int64_t i, std::int64_t) {
          for (std::int64_t k = 0; k < p.channels; ++k) {
            std::int64_t& at = best[static_cast<std::size_t>(o * p.channels + k)];
            const std::int64_t here = i * p.channels + k;
            if (at < 0 || widen(in[here]) > widen(in[at])) at = here;
          }
        });
        for (std::int64_t o = 0; o < windows; ++o) {
          const std::int64_t at = best[static_cast<std::size_t>(o)];
          out.data<T>()[b * windows + o] = at < 0 ? std::numeric_limits<T>::lowest() : in[at];
          set_index(argmax, b * windows + o, at < 0 || !whole_batch ? at : at + b * image);
        }
      }
    });
  });
}

void max_pool_grad_with_argmax(KernelContext& c) {
  const Pool p = pool_of(c);
  const Array &grad = c.input(1), &argmax = c.input(2);
  const Shape& shape = c.input(0).shape();
  if (!(grad.shape() == p.output()) || !(argmax.shape() == p.output())) {
    throw InvalidArgumentError(cat("grad and argmax must have shape ", p.output(), ", but have ",
                                   grad.shape(), " and ", argmax.shape()));
  }
  const bool whole_batch = c.attr<bool>("include_batch_in_index");
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  const std::int64_t image = shape.num_elements() / p.batch;
  const std::int64_t windows = grad.num_elements() / p.batch;
  with_real(out.dtype(), [&]<class T>() {
    using W = Wide<T>;
    std::vector<W> sums(static_cast<std::size_t>(shape.num_elements()));
    for (std::int64_t i = 0; i < grad.num_elements(); ++i) {
      std::int64_t at = argmax.dtype() == DType::kInt64 ? argmax.data<std::int64_t>()[i]
                                                        : argmax.data<std::int32_t>()[i];
      const std::int64_t limit = whole_batch ? shape.num_elements() : image;
      if (at < 0 || at >= limit) {
        throw InvalidArgumentError(
            cat("Invalid index ", at, " in argmax: it must be in [0, ", limit, ")"));
      }
      if (!whole_batch) at += i / windows * image;
      W& sum = sums[static_cast<std::size_t>(at)];
      sum = static_cast<W>(sum + widen(grad.data<T>()[i]));
    }
    T* to = out.data<T>();
    for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(sums[i]);
  });
}

// ---- Dilation2D ----

struct Dilation {
  WindowAxis y, x;
  std::int64_t batch, depth;
  std::int64_t image() const { return y.input * x.input * depth; }
  std::int64_t windows() const { return y.output * x.output * depth; }
  Shape output() const { return {batch, y.output, x.output, depth}; }
};

Dilation dilation_of(const KernelContext& c) {
  const Shape &in = c.input(0).shape(), &filter = c.input(1).shape();
  require_rank_4(in);
  if (filter.rank() != 3) {
    throw InvalidArgumentError(cat("filter must be 3-dimensional: ", filter));
  }
  if (in[3] != filter[2]) {
    throw InvalidArgumentError(
        cat("input and filter must have the same depth: ", in[3], " vs ", filter[2]));
  }
  WindowAttrs w;
  w.set_strides(c.attr<Ints>("strides"));
  w.set_dilations(c.attr<Ints>("rates"));
  w.set_padding(c.attr<std::string>("padding"), {});
  return {w.axis(0, in[1], filter[0]), w.axis(1, in[2], filter[1]), in[0], in[3]};
}

// Calls f(element of the output, of the image, of the filter) for each output's largest sum, the
// first of equal ones; nothing for windows that lie in the padding alone.
template <class T, class F>
void for_each_largest(const Dilation& d, const T* in, const T* filter, F f) {
  using W = Wide<T>;
  struct Best {
    W sum{};
    std::int64_t image = -1, filter = -1;
  };
  std::vector<Best> best(static_cast<std::size_t>(d.windows()));
  for_each_meeting(d.y, d.x, [&](std::int64_t o, std::int64_t i, std::int64_t k) {
    for (std::int64_t n = 0; n < d.depth; ++n) {
      Best& b = best[static_cast<std::size_t>(o * d.depth + n)];
      const W sum = static_cast<W>(widen(in[i * d.depth + n]) + widen(filter[k * d.depth + n]));
      if (b.image < 0 || sum > b.sum) b = {sum, i * d.depth + n, k * d.depth + n};
    }
  });
  for (std::size_t o = 0; o < best.size(); ++o) {
    const Best& b = best[o];
    if (b.image >= 0) f(static_cast<std::int64_t>(o), b.image, b.filter, b.sum);
  }
}

void dilate(KernelContext& c) {
  const Dilation d = dilation_of(c);
  Array& out = c.allocate_output(0, d.output());
  if (out.num_elements() == 0) return;
  with_real(out.dtype(), [&]<class T>() {
    const double cost = 2.0 * static_cast<double>(d.windows() * d.y.filter * d.x.filter);
    c.intra_op().parallel_for(d.batch, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        T* to = out.data<T>() + b * d.windows();
        std::fill(to, to + d.windows(), std::numeric_limits<T>::lowest());
        for_each_largest(d, c.input(0).data<T>() + b * d.image(), c.input(1).data<T>(),
                         [&](std::int64_t o, std::int64_t, std::int64_t, Wide<T> sum) {
                           to[o] = static_cast<T>(sum);
                         });
      }
    });
  });
}

template <bool kToFilter>
void dilate_grad(KernelContext& c) {
  const Dilation d = dilation_of(c);
  if (!(c.input(2).shape() == d.output())) {
    throw InvalidArgumentError(
        cat("out_backprop has incompatible size: ", c.input(2).shape(), ", wanted ", d.output()));
  }
  Array& out = c.allocate_output(0, c.input(kToFilter ? 1 : 0).shape());
  with_real(out.dtype(), [&]<class T>() {
    using W = Wide<T>;
    std::vector<W> sums(static_cast<std::size_t>(out.num_elements()));
    for (std::int64_t b = 0; b < d.batch; ++b) {
      const T* grad = c.input(2).data<T>() + b * d.windows();
      for_each_largest(d, c.input(0).data<T>() + b * d.image(), c.input(1).data<T>(),
                       [&](std::int64_t o, std::int64_t i, std::int64_t k, W) {
                         W& sum = sums[static_cast<std::size_t>(kToFilter ? k : b * d.image() + i)];
                         sum = static_cast<W>(sum + widen(grad[o]));
                       });
    }
    T* to = out.data<T>();
    for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(sums[i]);
  });
}

constexpr TypeConstraint kReals{"T", kRealTypes};
const KernelRegistration kArgmax{
    {.op = "MaxPoolWithArgmax", .types = {kReals}, .run = max_pool_with_argmax}};
const KernelRegistration kArgmaxGrad{
    {.op = "MaxPoolGradWithArgmax", .types = {kReals}, .run = max_pool_grad_with_argmax}};
const KernelRegistration kDilate{{.op = "Dilation2D", .types = {kReals}, .run = dilate}};
const KernelRegistration kDilateInput{
    {.op = "Dilation2DBackpropInput", .types = {kReals}, .run = dilate_grad<false>}};
const KernelRegistration kDilateFilter{
    {.op = "Dilation2DBackpropFilter", .types = {kReals}, .run = dilate_grad<true>}};

}  // namespace
}  // namespace tandem::cpu
