#include "tandem/kernels/cpu/pool/pool3d_windows.h"

#include <limits>

#include "tandem/kernels/cpu/elementwise/in_float.h"

namespace tandem::cpu {
namespace {

Array widened(KernelContext& c, const Array& from) {
  if (from.dtype() == DType::kFloat || from.dtype() == DType::kDouble) return from;
  Array to = c.allocate_temp(DType::kFloat, from.shape());
  to_float(c.intra_op(), from.dtype(), from.raw_data(), to.data<float>(), from.num_elements());
  return to;
}

// Calls f(elements) for the values of type W that become those of `out`.
template <class W, class F>
void make_output(KernelContext& c, Array& out, F f) {
  if (out.dtype() == dtype_of<W>) return f(out.data<W>());
  Array made = c.allocate_temp(DType::kFloat, out.shape());
  f(made.data<W>());
  from_float(c.intra_op(), made.data<float>(), out.dtype(), out.raw_data(), out.num_elements());
}

// Calls f(some of the rows, memory for one of `size` elements).
template <class W, class F>
void for_each_row(KernelContext& c, const VolumePool& p, std::int64_t rows, std::int64_t size,
                  F f) {
  const double cost = 0.15 * static_cast<double>(p.output_row() + p.input_row()) *
                      static_cast<double>(p.axis[0].filter * p.axis[1].filter + p.axis[2].filter);
  c.intra_op().parallel_for(p.batch * rows, cost, [&](std::int64_t begin, std::int64_t end) {
    Array row = c.allocate_temp(dtype_of<W>, Shape{size});
    f(RowSpan{begin, end}, row.data<W>());
  });
}

// What is said of a window without anything larger: of half and bfloat16 their own lowest values.
template <class W>
W lowest_of(DType dtype) {
  switch (dtype) {
    case DType::kHalf: return W(-65504);
    case DType::kBFloat16: return W(-0x1.FEp127);
    default: return std::numeric_limits<W>::lowest();
  }
}

template <class W>
void largest(KernelContext& c, const VolumePool& p, const Array& in, Array& out) {
  const W lowest = lowest_of<W>(out.dtype());
  const Array wide = widened(c, in);
  make_output<W>(c, out, [&](W* to) {
    for_each_row<W>(c, p, p.output_rows(), p.input_row(), [&](RowSpan rows, W* row) {
      max_volume_rows(p, rows, lowest, wide.data<W>(), row, to);
    });
  });
}

template <class W>
void means(KernelContext& c, const VolumePool& p, const Array& in, Array& out) {
  const Array wide = widened(c, in);
  make_output<W>(c, out, [&](W* to) {
    for_each_row<W>(c, p, p.output_rows(), p.input_row(), [&](RowSpan rows, W* row) {
      mean_volume_rows(p, rows, wide.data<W>(), row, to);
    });
  });
}

template <class W>
void means_grad(KernelContext& c, const VolumePool& p, const Array& gradient, Array& out) {
  const Array wide = widened(c, gradient);
  make_output<W>(c, out, [&](W* to) {
    for_each_row<W>(c, p, p.input_rows(), p.output_row(), [&](RowSpan rows, W* row) {
      mean_volume_grad_rows(p, rows, wide.data<W>(), row, to);
    });
  });
}

}  // namespace

VolumePool volume_of(const PoolGeometry& images) {
  const WindowAxis plane{.input = 1, .filter = 1, .output = 1};
  return {images.batch, images.channels, {plane, images.height, images.width}};
}

void pool_largest(KernelContext& c, const VolumePool& p, const Array& in, Array& out) {
  if (out.num_elements() == 0) return;
  if (out.dtype() == DType::kDouble) {
    largest<double>(c, p, in, out);
  } else {
    largest<float>(c, p, in, out);
  }
}

void pool_largest_grad(KernelContext& c, const VolumePool& p, const Array& in, const Array& most,
                       const Array& gradient, Array& out) {
  if (out.num_elements() == 0) return;
  const Array x = widened(c, in), y = widened(c, most), dy = widened(c, gradient);
  make_output<float>(c, out, [&](float* dx) {
    for_each_row<float>(c, p, p.input_rows(), 0, [&](RowSpan rows, float*) {
      max_volume_grad_rows(p, rows, x.data<float>(), y.data<float>(), dy.data<float>(), dx);
    });
  });
}

void pool_means(KernelContext& c, const VolumePool& p, const Array& in, Array& out) {
  if (out.num_elements() == 0) return;
  if (out.dtype() == DType::kDouble) {
    means<double>(c, p, in, out);
  } else {
    means<float>(c, p, in, out);
  }
}

void pool_means_grad(KernelContext& c, const VolumePool& p, const Array& gradient, Array& out) {
  if (out.num_elements() == 0) return;
  if (out.dtype() == DType::kDouble) {
    means_grad<double>(c, p, gradient, out);
  } else {
    means_grad<float>(c, p, gradient, out);
  }
}

}  // namespace tandem::cpu
