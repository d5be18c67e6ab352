#pragma once

#include <concepts>
#include <cstddef>

#include "tandem/core/export.h"
#include "tandem/data/dataset.h"
#include "tandem/data/element.h"
#include "tandem/ops/ragged_tensor.h"

namespace tandem::data {

/// The rows of a RaggedTensor. Of ragged rank 1 they are tensors of different lengths; of a higher
/// one, ragged tensors, whose parts are the components of an element: the values, then the row
/// splits from the outermost axis in (`ragged_of`).
///
///     auto rows = td::data::from_tensor_slices(td::ragged::constant(words)).ragged_batch(32);
///     for (const td::data::Element& e : rows) td::RaggedTensor batch = td::data::ragged_of(e);
TANDEM_EXPORT Dataset slices_of_ragged(RaggedTensor ragged);
/// The rows of a SparseTensor of rank 2 or more in the usual order of indices; the components of an
/// element are indices, values and dense shape (`sparse_of`).
TANDEM_EXPORT Dataset slices_of_sparse(const sparse::SparseTensor& sparse);

template <std::same_as<RaggedTensor> Ragged>  // braces are for other overloads
Dataset from_tensor_slices(const Ragged& ragged) {
  return slices_of_ragged(ragged);
}
template <std::same_as<sparse::SparseTensor> Sparse>
Dataset from_tensor_slices(const Sparse& sparse) {
  return slices_of_sparse(sparse);
}

/// The RaggedTensor whose parts begin at component `first`: values, then `ragged_rank` row splits.
/// Throws InvalidArgumentError if the element has fewer components.
TANDEM_EXPORT RaggedTensor ragged_of(const Element& element, std::size_t first = 0,
                                     int ragged_rank = 1);
/// The SparseTensor whose parts are component `first` and the next two.
TANDEM_EXPORT sparse::SparseTensor sparse_of(const Element& element, std::size_t first = 0);

}  // namespace tandem::data
