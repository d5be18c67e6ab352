#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "tandem/runtime/tensor.h"

namespace tandem {

/// Goes over the rows of a Tensor or a RaggedTensor: what range-for needs. It keeps the value that
/// it goes over, so that one of a temporary remains valid.
///
///     for (td::Tensor row : x) total = total + td::reduce_max(row);
template <class Rows>
class RowIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using iterator_concept = std::forward_iterator_tag;
  using value_type = Tensor;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Tensor;

  RowIterator() = default;
  RowIterator(Rows rows, std::int64_t index) : rows_(std::move(rows)), index_(index) {}

  Tensor operator*() const { return rows_[index_]; }
  RowIterator& operator++() {
    ++index_;
    return *this;
  }
  RowIterator operator++(int) {
    RowIterator before = *this;
    ++index_;
    return before;
  }
  /// For two iterators over the same rows.
  bool operator==(const RowIterator& other) const { return index_ == other.index_; }

 private:
  Rows rows_;
  std::int64_t index_ = 0;
};

}  // namespace tandem
