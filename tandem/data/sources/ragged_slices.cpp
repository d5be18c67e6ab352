#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/data/ragged_datasets.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/tensor.h"

namespace tandem::data {
namespace {

std::vector<std::int64_t> numbers(const Tensor& t) {
  return cast(t, int64).to_vector<std::int64_t>();
}

void require_parts(const Element& element, std::size_t first, std::size_t count, const char* what) {
  if (first <= element.size() && count <= element.size() - first) return;
  throw InvalidArgumentError(cat("td::data::", what, ": the element has ", element.size(),
                                 " components, but ", count, " from number ", first,
                                 " are wanted."));
}

// Where each row begins in the values, and the last one ends.
struct Rows {
  Tensor values;
  std::vector<std::vector<std::int64_t>> splits;  // from the outermost axis in

  // The parts of row `i`: its values, then its own splits.
  Element row(std::int64_t i) const {
    auto begin = splits[0][static_cast<std::size_t>(i)];
    auto end = splits[0][static_cast<std::size_t>(i) + 1];
    Element parts(1);
    for (std::size_t axis = 1; axis < splits.size(); ++axis) {
      std::vector<std::int64_t> own(splits[axis].begin() + begin, splits[axis].begin() + end + 1);
      begin = own.front();
      end = own.back();
      for (std::int64_t& split : own) split -= begin;
      parts.push_back(Tensor(own));
    }
    parts[0] = values[{Slice(begin, end)}];
    return parts;
  }
};

}  // namespace

Dataset slices_of_ragged(RaggedTensor ragged) {
  if (!ragged.defined() || ragged.ragged_rank() < 1) {
    throw InvalidArgumentError("from_tensor_slices: the RaggedTensor has no ragged axis.");
  }
  Rows rows{ragged.flat_values(), {}};
  for (const Tensor& splits : ragged.nested_row_splits()) rows.splits.push_back(numbers(splits));
  const auto count = static_cast<std::int64_t>(rows.splits[0].size()) - 1;
  return range(count).map([rows = std::move(rows)](const Element& number) {
    return rows.row(number[0].item<std::int64_t>());
  });
}

Dataset slices_of_sparse(const sparse::SparseTensor& sparse) {
  const std::vector<std::int64_t> shape = numbers(sparse.dense_shape);
  if (shape.size() < 2) {
    throw InvalidArgumentError("from_tensor_slices: a SparseTensor must have rank 2 or more.");
  }
  // The first of each row's indices, which are in order.
  const std::vector<std::int64_t> of_row = numbers(sparse.indices[{ellipsis, 0}]);
  std::vector<std::int64_t> splits(static_cast<std::size_t>(shape[0]) + 1, 0);
  for (std::size_t i = 0; i < of_row.size(); ++i) {
    if (of_row[i] < 0 || of_row[i] >= shape[0] || (i > 0 && of_row[i] < of_row[i - 1])) {
      throw InvalidArgumentError(
          cat("from_tensor_slices: the indices of a SparseTensor must be in ",
              "order and within its shape; number ", i, " is in row ", of_row[i], " of ", shape[0],
              "."));
    }
    ++splits[static_cast<std::size_t>(of_row[i]) + 1];
  }
  for (std::size_t i = 1; i < splits.size(); ++i) splits[i] += splits[i - 1];
  const Tensor within = sparse.indices[{Slice(), Slice(1, none)}];
  const Tensor row_shape(std::vector<std::int64_t>(shape.begin() + 1, shape.end()));
  return range(shape[0]).map(
      [splits = std::move(splits), within, row_shape, values = sparse.values](const Element& e) {
        const auto row = static_cast<std::size_t>(e[0].item<std::int64_t>());
        const Slice part(splits[row], splits[row + 1]);
        return Element{within[{part}], values[{part}], row_shape};
      });
}

RaggedTensor ragged_of(const Element& element, std::size_t first, int ragged_rank) {
  if (ragged_rank < 1)
    throw InvalidArgumentError("td::data::ragged_of: ragged_rank must be 1 or more.");
  const auto splits = static_cast<std::size_t>(ragged_rank);
  require_parts(element, first, splits + 1, "ragged_of");
  const auto begin = element.begin() + static_cast<std::ptrdiff_t>(first) + 1;
  return RaggedTensor::from_nested_row_splits(
      element[first], std::vector<Tensor>(begin, begin + static_cast<std::ptrdiff_t>(splits)));
}

sparse::SparseTensor sparse_of(const Element& element, std::size_t first) {
  require_parts(element, first, 3, "sparse_of");
  return {element[first], element[first + 1], element[first + 2]};
}

}  // namespace tandem::data
