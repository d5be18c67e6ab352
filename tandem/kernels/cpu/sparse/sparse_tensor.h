#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// A sparse tensor in three inputs, indices [n, rank], values [n] and shape [rank], the first and
/// last int64: checked to fit together.
struct SparseInput {
  const Array& indices;
  const Array& values;
  const Array& dims;
  std::int64_t count = 0, rank = 0;

  SparseInput(const Array& indices_, const Array& values_, const Array& dims_)
      : indices(indices_), values(values_), dims(dims_) {
    if (indices.rank() != 2) {
      throw InvalidArgumentError(
          cat("Input indices should be a matrix but received shape: ", indices.shape()));
    }
    if (values.rank() != 1) {
      throw InvalidArgumentError(
          cat("Input values should be a vector but received shape: ", values.shape()));
    }
    if (dims.rank() != 1) {
      throw InvalidArgumentError(
          cat("Input shape should be a vector but received shape: ", dims.shape()));
    }
    count = indices.shape()[0];
    rank = dims.num_elements();
    if (values.num_elements() != count) {
      throw InvalidArgumentError(cat("Number of values must match first dimension of indices. Got ",
                                     values.num_elements(),
                                     " values, indices shape: ", indices.shape()));
    }
    if (indices.shape()[1] != rank) {
      throw InvalidArgumentError(
          cat("Number of dimensions must match second dimension of indices. "
              "Got ",
              rank, " dimensions, indices shape: ", indices.shape()));
    }
    for (std::int64_t k = 0; k < rank; ++k) {
      if (dim(k) < 0) throw InvalidArgumentError(cat("Dimension ", k, " is negative: ", dim(k)));
    }
  }
  SparseInput(const KernelContext& c, int first)
      : SparseInput(c.input(first), c.input(first + 1), c.input(first + 2)) {}

  const std::int64_t* index(std::int64_t i) const {
    return indices.data<std::int64_t>() + i * rank;
  }
  std::int64_t dim(std::int64_t k) const { return dims.data<std::int64_t>()[k]; }
  Shape shape() const { return Shape(dims.values<std::int64_t>()); }

  void check_bounds() const {
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t k = 0; k < rank; ++k) {
        if (index(i)[k] < 0 || index(i)[k] >= dim(k)) {
          throw InvalidArgumentError(cat("indices[", i, ",", k, "] = ", index(i)[k],
                                         " is out of bounds: need 0 <= index < ", dim(k)));
        }
      }
    }
  }
  bool before(std::int64_t i, std::int64_t j) const {
    return std::lexicographical_compare(index(i), index(i) + rank, index(j), index(j) + rank);
  }
  /// Places of the elements in row-major order.
  std::vector<std::int64_t> order() const {
    std::vector<std::int64_t> places(static_cast<std::size_t>(count));
    std::iota(places.begin(), places.end(), std::int64_t{0});
    std::stable_sort(places.begin(), places.end(),
                     [this](std::int64_t i, std::int64_t j) { return before(i, j); });
    return places;
  }
};

}  // namespace tandem::cpu
