// Bands of diagonals of matrices: the second and third versions of MatrixDiag and its kin.

#include <algorithm>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

// Diagonals lower … upper of rows x columns matrices and the rows that hold them, that of `upper`
// first, each of `length` elements.
struct Band {
  std::int64_t lower = 0, upper = 0;
  std::int64_t rows = 0, columns = 0;
  std::int64_t length = 0;
  bool left_above = true, left_below = true;  // where shorter diagonals stand

  Band(const KernelContext& c, int k_input) {
    const Array& k = c.input(k_input);
    const std::int64_t n = k.num_elements();
    if (k.rank() > 1 || n < 1 || n > 2) {
      throw InvalidArgumentError(
          cat("diag_index must be a scalar or a vector of one or two elements, received shape: ",
              k.shape()));
    }
    const IntInput ends(k, "diag_index");
    lower = ends[0];
    upper = ends[n - 1];
    if (lower > upper) {
      throw InvalidArgumentError(
          cat("lower_diag_index must not be larger than upper_diag_index: ", lower, " > ", upper));
    }
    if (c.find_attr("align")) {
      const auto& align = c.attr<std::string>("align");
      left_above = align.starts_with("LEFT");
      left_below = align.ends_with("LEFT");
    }
  }

  std::int64_t count() const { return upper - lower + 1; }

  void set_matrices(const Array& x) {
    if (x.rank() < 2) {
      throw InvalidArgumentError(cat("input must be at least 2-dim, received shape: ", x.shape()));
    }
    rows = x.shape()[x.rank() - 2];
    columns = x.shape()[x.rank() - 1];
    for (const std::int64_t d : {lower, upper}) {
      if (d != 0 && (d <= -rows || d >= columns)) {
        throw InvalidArgumentError(cat(d == lower ? "lower" : "upper",
                                       "_diag_index is out of bound: ", d, ". It must be between ",
                                       -rows, " and ", columns));
      }
    }
    length = std::min(rows + std::min<std::int64_t>(upper, 0),
                      columns - std::max<std::int64_t>(lower, 0));
  }

  // The shape that holds the diagonals of matrices in the last two axes of `x`.
  Shape diagonal_shape(const Shape& x) const {
    Shape shape;
    for (int i = 0; i < x.rank() - 2; ++i) shape.add_dim(x[i]);
    if (count() > 1) shape.add_dim(count());
    shape.add_dim(length);
    return shape;
  }

  // Calls f(place in the matrix, its step, place in the band, elements) for each diagonal.
  template <class F>
  void for_each(F f) const {
    for (std::int64_t d = upper; d >= lower; --d) {
      const std::int64_t n = std::max<std::int64_t>(
          0, std::min(rows + std::min<std::int64_t>(d, 0), columns - std::max<std::int64_t>(d, 0)));
      const bool left = (d >= 0 && left_above) || (d <= 0 && left_below);
      const std::int64_t at = (upper - d) * length + (left ? 0 : length - n);
      f(d >= 0 ? d : -d * columns, columns + 1, at, n);
    }
  }
};

void matrix_diag(KernelContext& c) {
  const Array& diagonal = c.input(0);
  Band band(c, 1);
  const bool one = band.count() == 1;
  if (diagonal.rank() < (one ? 1 : 2)) {
    throw InvalidArgumentError(
        cat("diagonal must be at least ", one ? 1 : 2, "-dim, received shape: ", diagonal.shape()));
  }
  const int last = diagonal.rank() - 1;
  if (!one && diagonal.shape()[last - 1] != band.count()) {
    throw InvalidArgumentError(
        cat("The number of diagonals provided in the input does not match "
            "the lower_diag_index and upper_diag_index range: ",
            diagonal.shape()[last - 1], " instead of ", band.count()));
  }
  if (c.input(4).num_elements() != 1) {
    throw InvalidArgumentError(
        cat("padding_value must be a single element, received shape: ", c.input(4).shape()));
  }
  band.length = diagonal.shape()[last];
  band.rows = int_input(c, 2, "num_rows");
  band.columns = int_input(c, 3, "num_cols");
  const std::int64_t least_rows = band.length - std::min<std::int64_t>(band.upper, 0);
  const std::int64_t least_columns = band.length + std::max<std::int64_t>(band.lower, 0);
  if (band.rows == -1 && band.columns == -1) {
    band.rows = band.columns = std::max(least_rows, least_columns);
  } else {
    if (band.rows == -1) band.rows = least_rows;
    if (band.columns == -1) band.columns = least_columns;
  }
  if (band.rows < least_rows || band.columns < least_columns ||
      (band.rows != least_rows && band.columns != least_columns)) {
    throw InvalidArgumentError(
        "The number of rows or columns is not consistent with the specified "
        "d_lower, d_upper, and diagonal.");
  }
  Shape shape;
  for (int i = 0; i < last - (one ? 0 : 1); ++i) shape.add_dim(diagonal.shape()[i]);
  const std::int64_t batch = shape.num_elements();
  shape.add_dim(band.rows);
  shape.add_dim(band.columns);
  Array& out = c.allocate_output(0, shape);
  with_element(out.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(diagonal.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    std::fill(to, to + out.num_elements(), *static_cast<const T*>(c.input(4).raw_data()));
    for (std::int64_t b = 0; b < batch; ++b) {
      band.for_each([&](std::int64_t place, std::int64_t step, std::int64_t at, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) to[place + i * step] = from[at + i];
      });
      from += band.count() * band.length;
      to += band.rows * band.columns;
    }
  });
}

void matrix_diag_part(KernelContext& c) {
  const Array& x = c.input(0);
  Band band(c, 1);
  band.set_matrices(x);
  if (c.input(2).num_elements() != 1) {
    throw InvalidArgumentError(
        cat("padding_value must be a single element, received shape: ", c.input(2).shape()));
  }
  Array& out = c.allocate_output(0, band.diagonal_shape(x.shape()));
  const std::int64_t batch = x.shape().product(0, x.rank() - 2);
  with_element(x.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(x.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    std::fill(to, to + out.num_elements(), *static_cast<const T*>(c.input(2).raw_data()));
    for (std::int64_t b = 0; b < batch; ++b) {
      band.for_each([&](std::int64_t place, std::int64_t step, std::int64_t at, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) to[at + i] = from[place + i * step];
      });
      from += band.rows * band.columns;
      to += band.count() * band.length;
    }
  });
}

void matrix_set_diag(KernelContext& c) {
  const Array& x = c.input(0);
  const Array& diagonal = c.input(1);
  Band band(c, 2);
  band.set_matrices(x);
  const Shape wanted = band.diagonal_shape(x.shape());
  if (!(diagonal.shape() == wanted)) {
    throw InvalidArgumentError(
        cat("Either first dimensions of diagonal don't match input.shape["
            ":-2], or diagonal.shape doesn't fit k: received input shape: ",
            x.shape(), " and diagonal shape: ", diagonal.shape(), " instead of ", wanted));
  }
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  const std::int64_t batch = x.shape().product(0, x.rank() - 2);
  with_element(x.dtype(), [&]<class T>() {
    T* to = static_cast<T*>(out.raw_data());
    if (to != x.raw_data()) {
      copy_elements(to, static_cast<const T*>(x.raw_data()), x.num_elements());
    }
    const T* from = static_cast<const T*>(diagonal.raw_data());
    for (std::int64_t b = 0; b < batch; ++b) {
      band.for_each([&](std::int64_t place, std::int64_t step, std::int64_t at, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) to[place + i * step] = from[at + i];
      });
      from += band.count() * band.length;
      to += band.rows * band.columns;
    }
  });
}

const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "MatrixDiagV2", .run = matrix_diag}),
    KernelRegistration({.op = "MatrixDiagV3", .run = matrix_diag}),
    KernelRegistration({.op = "MatrixDiagPartV2", .run = matrix_diag_part}),
    KernelRegistration({.op = "MatrixDiagPartV3", .run = matrix_diag_part}),
    KernelRegistration({.op = "MatrixSetDiagV2", .run = matrix_set_diag}),
    KernelRegistration({.op = "MatrixSetDiagV3", .run = matrix_set_diag}),
};

}  // namespace
}  // namespace tandem::cpu
