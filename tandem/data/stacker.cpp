#include "tandem/data/internal/stacker.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/internal/row_table.h"

namespace tandem::data {
namespace {

// A batch is allocated whole up to this size; a larger one, whose elements may end long before, by
// doubling.
constexpr std::int64_t kAtOnceBytes = std::int64_t{64} << 20;

}  // namespace

void Stacker::begin(const Element& first) {
  std::int64_t row_bytes = 1;
  components_.clear();
  for (const Tensor& tensor : first) {
    const Array& array = tensor.array();
    components_.push_back({Array(), array.shape(), array.num_elements()});
    row_bytes = std::max(row_bytes, static_cast<std::int64_t>(array.num_bytes()));
  }
  capacity_ = std::min(limit_, std::max<std::int64_t>(1, kAtOnceBytes / row_bytes));
  for (std::size_t i = 0; i < first.size(); ++i) {
    Component& c = components_[i];
    c.rows = Array(first[i].dtype(), with_rows(capacity_, c.row_shape));
  }
}

void Stacker::grow() {
  capacity_ = capacity_ > limit_ / 2 ? limit_ : capacity_ * 2;
  for (Component& c : components_) {
    Array larger(c.rows.dtype(), with_rows(capacity_, c.row_shape));
    copy_elements(c.rows, 0, larger, 0, size_ * c.row_elements);
    c.rows = std::move(larger);
  }
}

void Stacker::add(const Element& element) {
  if (size_ == 0) {
    begin(element);
  } else if (element.size() != components_.size()) {
    throw InvalidArgumentError(
        cat("Cannot batch elements with different numbers of components. First element had ",
            components_.size(), " and element ", size_, " had ", element.size(), "."));
  } else if (size_ == capacity_) {
    grow();
  }
  for (std::size_t i = 0; i < element.size(); ++i) {
    Component& c = components_[i];
    const Array& array = element[i].array();
    if (!(array.shape() == c.row_shape)) {
      throw InvalidArgumentError(cat("Cannot batch tensors with different shapes in component ", i,
                                     ". First element had shape ", c.row_shape, " and element ",
                                     size_, " had shape ", array.shape(),
                                     ". Give them one shape in a map before batch."));
    }
    if (array.dtype() != c.rows.dtype()) {
      throw InvalidArgumentError(cat("Cannot batch tensors with different dtypes in component ", i,
                                     ". First element had ", c.rows.dtype(), " and element ", size_,
                                     " had ", array.dtype(), "."));
    }
    copy_elements(array, 0, c.rows, size_ * c.row_elements, c.row_elements);
  }
  ++size_;
}

void Stacker::finish(Element& out) {
  out.clear();
  for (Component& c : components_) {
    out.emplace_back(size_ == capacity_ ? std::move(c.rows) : c.rows.slice_outer(0, size_));
  }
  components_.clear();
  size_ = 0;
}

}  // namespace tandem::data
