// A default value for rows that have none: SparseFillEmptyRows, RaggedFillEmptyRows.

#include <algorithm>
#include <vector>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/sparse/sparse_tensor.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

void fill_rows(KernelContext& c, const SparseInput& x, const auto& shape_of_indices) {
  if (c.input(3).rank() != 0) throw InvalidArgumentError("default_value must be a scalar");
  if (x.rank < 1) throw InvalidArgumentError("Dense shape cannot be empty.");
  const std::int64_t rows = x.dim(0);
  bool* empty = c.allocate_output(2, Shape{rows}).data<bool>();
  Array places = c.allocate_temp(DType::kInt64, Shape{rows + 1});
  std::int64_t* begin = places.data<std::int64_t>();
  std::fill(begin, begin + rows + 1, 0);
  for (std::int64_t i = 0; i < x.count; ++i) {
    const std::int64_t row = x.index(i)[0];
    if (row < 0 || row >= rows) {
      throw InvalidArgumentError(cat("indices(", i, ", 0) is invalid: ", row, " >= ", rows));
    }
    ++begin[row + 1];
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    empty[r] = begin[r + 1] == 0;
    begin[r + 1] = std::max<std::int64_t>(begin[r + 1], 1) + begin[r];
  }
  const std::int64_t total = begin[rows];
  Array& indices = c.allocate_output(0, shape_of_indices(total));
  Array& values = c.allocate_output(1, Shape{total});
  std::int64_t* map = c.allocate_output(3, Shape{x.count}).data<std::int64_t>();
  with_element(values.dtype(), [&]<class T>() {
    T* to = static_cast<T*>(values.raw_data());
    std::int64_t* index = indices.data<std::int64_t>();
    std::fill(index, index + total * x.rank, 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      if (!empty[r]) continue;
      const std::int64_t at = begin[r];
      index[at * x.rank] = r;
      to[at] = *static_cast<const T*>(c.input(3).raw_data());
    }
    for (std::int64_t i = 0; i < x.count; ++i) {
      const std::int64_t at = begin[x.index(i)[0]]++;
      std::copy(x.index(i), x.index(i) + x.rank, index + at * x.rank);
      to[at] = static_cast<const T*>(x.values.raw_data())[i];
      map[i] = at;
    }
  });
}

void fill_empty_rows(KernelContext& c) {
  const SparseInput x(c, 0);
  fill_rows(c, x, [&](std::int64_t total) { return Shape{total, x.rank}; });
}

// A ragged array's rows are indices of one number.
void fill_empty_ragged_rows(KernelContext& c) {
  for (const int i : {0, 1}) {
    if (c.input(i).rank() != 1) {
      throw InvalidArgumentError(
          cat(i == 0 ? "value_rowids" : "values", " must be a vector, saw: ", c.input(i).shape()));
    }
  }
  if (c.input(2).rank() != 0) {
    throw InvalidArgumentError(cat("nrows must be a scalar, saw: ", c.input(2).shape()));
  }
  const Array rows = c.input(0).reshape(Shape{c.input(0).num_elements(), 1});
  const Array count = c.input(2).reshape(Shape{1});
  fill_rows(c, SparseInput(rows, c.input(1), count),
            [](std::int64_t total) { return Shape{total}; });
}

void fill_empty_rows_grad(KernelContext& c) {
  const Array& map = c.input(0);
  const Array& grad = c.input(1);
  if (map.rank() != 1 || grad.rank() != 1) {
    throw InvalidArgumentError(cat("reverse_index_map and grad_values must be vectors, saw: ",
                                   map.shape(), " and ", grad.shape()));
  }
  const std::int64_t n = map.num_elements(), m = grad.num_elements();
  Array& d_values = c.allocate_output(0, Shape{n});
  Array& d_default = c.allocate_output(1, Shape{});
  with_number(grad.dtype(), [&]<class T>() {
    std::vector<bool> seen(static_cast<std::size_t>(m), false);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = map.data<std::int64_t>()[i];
      if (at < 0 || at >= m) {
        throw InvalidArgumentError(
            cat("Elements in reverse index must be in [0, ", m, ") but got ", at));
      }
      d_values.data<T>()[i] = grad.data<T>()[at];
      seen[static_cast<std::size_t>(at)] = true;
    }
    T sum(0);
    for (std::int64_t j = 0; j < m; ++j) {
      if (!seen[static_cast<std::size_t>(j)]) sum = add(sum, grad.data<T>()[j]);
    }
    d_default.data<T>()[0] = sum;
  });
}

const KernelRegistration kSparseFillEmptyRows{
    {.op = "SparseFillEmptyRows", .run = fill_empty_rows}};
const KernelRegistration kSparseFillEmptyRowsGrad{
    {.op = "SparseFillEmptyRowsGrad", .run = fill_empty_rows_grad}};
const KernelRegistration kRaggedFillEmptyRows{
    {.op = "RaggedFillEmptyRows", .run = fill_empty_ragged_rows}};
const KernelRegistration kRaggedFillEmptyRowsGrad{
    {.op = "RaggedFillEmptyRowsGrad", .run = fill_empty_rows_grad}};

}  // namespace
}  // namespace tandem::cpu
