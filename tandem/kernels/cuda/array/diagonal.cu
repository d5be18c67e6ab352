// Bands and diagonals of matrices.

#include <algorithm>
#include <string>

#include "tandem/kernels/cuda/array/copy.h"

namespace tandem::cuda {
namespace {

// Diagonals lower to upper of rows x columns matrices and the rows that hold them, that of `upper`
// first, each of `length` elements.
struct Band {
  std::int64_t lower = 0, upper = 0, rows = 0, columns = 0, length = 0;
  bool left_above = true, left_below = true;  // where shorter diagonals stand

  TANDEM_HOST_DEVICE std::int64_t count() const { return upper - lower + 1; }
  // Elements of a diagonal, and the first of the row that holds it.
  TANDEM_DEVICE std::int64_t size(std::int64_t d) const {
    const std::int64_t down = rows + (d < 0 ? d : 0), right = columns - (d > 0 ? d : 0);
    const std::int64_t n = down < right ? down : right;
    return n < 0 ? 0 : n;
  }
  TANDEM_DEVICE std::int64_t first(std::int64_t d) const {
    const bool left = (d >= 0 && left_above) || (d <= 0 && left_below);
    return left ? 0 : length - size(d);
  }
};

// Matrices: elements of the band from `diagonals`, others from `x`, or one for all, or zero.
template <class T>
TANDEM_KERNEL put_diagonals_kernel(const T* diagonals, const T* x, bool one, T* y, std::int64_t n,
                                   Band band) {
  const std::int64_t area = band.rows * band.columns;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t matrix = i / area, row = i % area / band.columns, column = i % band.columns;
    const std::int64_t d = column - row;
    if (d >= band.lower && d <= band.upper) {
      const std::int64_t along = d >= 0 ? row : column;
      y[i] =
          diagonals[(matrix * band.count() + band.upper - d) * band.length + band.first(d) + along];
    } else {
      y[i] = x ? x[one ? 0 : i] : T(0);
    }
  }
}

template <class T>
TANDEM_KERNEL take_diagonals_kernel(const T* x, const T* padding, T* y, std::int64_t n, Band band) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t place = i % band.length, line = i / band.length;
    const std::int64_t matrix = line / band.count(), d = band.upper - line % band.count();
    const std::int64_t along = place - band.first(d);
    if (along >= 0 && along < band.size(d)) {
      const std::int64_t row = d >= 0 ? along : along - d, column = d >= 0 ? along + d : along;
      y[i] = x[(matrix * band.rows + row) * band.columns + column];
    } else {
      y[i] = padding ? *padding : T(0);
    }
  }
}

template <class T>
TANDEM_KERNEL band_part_kernel(const T* x, T* y, std::int64_t n, std::int64_t rows,
                               std::int64_t columns, std::int64_t lower, std::int64_t upper) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t row = i / columns % rows, column = i % columns;
    const bool inside =
        (lower < 0 || row - column <= lower) && (upper < 0 || column - row <= upper);
    y[i] = inside ? x[i] : T(0);
  }
}

void put_diagonals(const TensorView& diagonals, const void* x, bool one, const TensorView& y,
                   const Band& band) {
  if (y.count == 0) return;
  visit_size(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(put_diagonals_kernel<T>, shape_for(y.count), 0, diagonals.as<T>(),
                  static_cast<const T*>(x), one, y.as<T>(), y.count, band);
  });
}

void take_diagonals(const TensorView& x, const void* padding, const TensorView& y,
                    const Band& band) {
  if (y.count == 0) return;
  visit_size(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(take_diagonals_kernel<T>, shape_for(y.count), 0, x.as<T>(),
                  static_cast<const T*>(padding), y.as<T>(), y.count, band);
  });
}

// ---- The main diagonal ----

Band main_diagonal(const Sizes& matrices) {
  if (matrices.size() < 2) refuse("input must be at least 2-dim");
  Band band;
  band.rows = matrices[matrices.size() - 2];
  band.columns = matrices.back();
  band.length = std::min(band.rows, band.columns);
  return band;
}

Sizes without_last(const Sizes& sizes, std::int64_t count) {
  return {sizes.begin(), sizes.end() - count};
}

// ---- Bands ----

Band band_of(const KernelCall& call, int k_input, bool aligned) {
  const TensorView k = call.input(k_input);
  if (k.rank() > 1 || k.count < 1 || k.count > 2) {
    refuse("diag_index must be a scalar or a vector of one or two elements");
  }
  const Sizes ends = k.host_integers();
  Band band;
  band.lower = ends.front();
  band.upper = ends.back();
  if (band.lower > band.upper) {
    refuse("lower_diag_index must not be larger than upper_diag_index");
  }
  if (aligned) {
    const std::string align = call.attr_string("align");
    band.left_above = align.rfind("LEFT", 0) == 0;
    band.left_below = align.size() > 4 && align.substr(align.size() - 4) == "LEFT";
  }
  return band;
}

void set_matrices(Band& band, const Sizes& x) {
  const Band whole = main_diagonal(x);
  band.rows = whole.rows;
  band.columns = whole.columns;
  for (const std::int64_t d : {band.lower, band.upper}) {
    if (d != 0 && (d <= -band.rows || d >= band.columns)) {
      refuse("diag_index is out of bound: " + std::to_string(d));
    }
  }
  band.length = std::min(band.rows + std::min<std::int64_t>(band.upper, 0),
                         band.columns - std::max<std::int64_t>(band.lower, 0));
}

Sizes diagonal_sizes(const Band& band, const Sizes& x) {
  Sizes sizes = without_last(x, 2);
  if (band.count() > 1) sizes.push_back(band.count());
  sizes.push_back(band.length);
  return sizes;
}

void check_padding(const TensorView& padding) {
  if (padding.count != 1) refuse("padding_value must be a single element");
}

void diag_of_band(KernelCall& call, bool aligned) {
  const TensorView diagonal = call.input(0), padding = call.input(4);
  Band band = band_of(call, 1, aligned);
  const bool one = band.count() == 1;
  if (diagonal.rank() < (one ? 1 : 2)) refuse("diagonal has too few axes");
  if (!one && diagonal.sizes[diagonal.sizes.size() - 2] != band.count()) {
    refuse(
        "The number of diagonals provided in the input does not match the lower_diag_index and "
        "upper_diag_index range");
  }
  check_padding(padding);
  band.length = diagonal.sizes.back();
  band.rows = call.input(2).host_integers().at(0);
  band.columns = call.input(3).host_integers().at(0);
  const std::int64_t rows = band.length - std::min<std::int64_t>(band.upper, 0);
  const std::int64_t columns = band.length + std::max<std::int64_t>(band.lower, 0);
  if (band.rows == -1 && band.columns == -1) {
    band.rows = band.columns = std::max(rows, columns);
  } else {
    if (band.rows == -1) band.rows = rows;
    if (band.columns == -1) band.columns = columns;
  }
  if (band.rows < rows || band.columns < columns ||
      (band.rows != rows && band.columns != columns)) {
    refuse(
        "The number of rows or columns is not consistent with the specified d_lower, d_upper, "
        "and diagonal.");
  }
  Sizes sizes = without_last(diagonal.sizes, one ? 1 : 2);
  sizes.insert(sizes.end(), {band.rows, band.columns});
  put_diagonals(diagonal, padding.data, true, call.allocate_output(0, sizes), band);
}

void part_of_band(KernelCall& call, bool aligned) {
  const TensorView x = call.input(0), padding = call.input(2);
  Band band = band_of(call, 1, aligned);
  set_matrices(band, x.sizes);
  check_padding(padding);
  take_diagonals(x, padding.data, call.allocate_output(0, diagonal_sizes(band, x.sizes)), band);
}

void set_band(KernelCall& call, bool aligned) {
  const TensorView x = call.input(0), diagonal = call.input(1);
  Band band = band_of(call, 2, aligned);
  set_matrices(band, x.sizes);
  if (diagonal.sizes != diagonal_sizes(band, x.sizes)) {
    refuse(
        "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape "
        "doesn't fit k");
  }
  put_diagonals(diagonal, x.data, false, call.allocate_output(0, x.sizes), band);
}

}  // namespace

void array_matrix_band_part(KernelCall& call) {
  const TensorView x = call.input(0);
  const Band m = main_diagonal(x.sizes);
  const std::int64_t lower = call.input(1).host_scalar("num_lower");
  const std::int64_t upper = call.input(2).host_scalar("num_upper");
  if (lower > m.rows) {
    refuse("num_lower must be negative or less or equal to number of rows (" +
           std::to_string(m.rows) + ") got: " + std::to_string(lower));
  }
  if (upper > m.columns) {
    refuse("num_upper must be negative or less or equal to number of columns (" +
           std::to_string(m.columns) + ") got: " + std::to_string(upper));
  }
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  visit_size(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(band_part_kernel<T>, shape_for(y.count), 0, x.as<T>(), y.as<T>(), y.count, m.rows,
                  m.columns, lower, upper);
  });
}

void array_matrix_diag(KernelCall& call) {
  const TensorView diagonal = call.input(0);
  if (diagonal.rank() < 1) refuse("input must be at least 1-dim");
  Sizes sizes = diagonal.sizes;
  sizes.push_back(sizes.back());
  put_diagonals(diagonal, nullptr, false, call.allocate_output(0, sizes), main_diagonal(sizes));
}

void array_matrix_diag_part(KernelCall& call) {
  const TensorView x = call.input(0);
  const Band band = main_diagonal(x.sizes);
  Sizes sizes = without_last(x.sizes, 2);
  sizes.push_back(band.length);
  take_diagonals(x, nullptr, call.allocate_output(0, sizes), band);
}

void array_matrix_set_diag(KernelCall& call) {
  const TensorView x = call.input(0), diagonal = call.input(1);
  const Band band = main_diagonal(x.sizes);
  Sizes sizes = without_last(x.sizes, 2);
  sizes.push_back(band.length);
  if (diagonal.sizes != sizes) {
    refuse("must have diagonal.shape == input.shape[:-2] + min(input.shape[-2:])");
  }
  put_diagonals(diagonal, x.data, false, call.allocate_output(0, x.sizes), band);
}

void array_diag(KernelCall& call) {
  const TensorView x = call.input(0);
  if (x.rank() < 1) refuse("Input must be at least rank 1, got 0");
  Sizes sizes = x.sizes;
  sizes.insert(sizes.end(), x.sizes.begin(), x.sizes.end());
  put_diagonals(x, nullptr, false, call.allocate_output(0, sizes),
                main_diagonal({x.count, x.count}));
}

void array_diag_part(KernelCall& call) {
  const TensorView x = call.input(0);
  if (x.rank() == 0 || x.rank() % 2 != 0) {
    refuse("The rank of the tensor should be even and positive");
  }
  const Sizes half = without_last(x.sizes, x.rank() / 2);
  if (!std::equal(half.begin(), half.end(), x.sizes.begin() + x.rank() / 2)) {
    refuse("Invalid shape: the dimensions of both halves do not match.");
  }
  const std::int64_t n = product(half);
  take_diagonals(x, nullptr, call.allocate_output(0, half), main_diagonal({n, n}));
}

void array_matrix_diag_v2(KernelCall& call) { diag_of_band(call, false); }
void array_matrix_diag_v3(KernelCall& call) { diag_of_band(call, true); }
void array_matrix_diag_part_v2(KernelCall& call) { part_of_band(call, false); }
void array_matrix_diag_part_v3(KernelCall& call) { part_of_band(call, true); }
void array_matrix_set_diag_v2(KernelCall& call) { set_band(call, false); }
void array_matrix_set_diag_v3(KernelCall& call) { set_band(call, true); }

}  // namespace tandem::cuda
