#include "tandem/data/stages/stacker.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/fusion/row_table.h"

namespace tandem::data {
namespace {

// A batch is allocated whole up to this size; a larger one, whose elements may end long before, by
// doubling.
constexpr std::int64_t kAtOnceBytes = std::int64_t{64} << 20;

}  // namespace

void Stacker::begin(std::vector<Component> components) {
  std::int64_t row_bytes = 1;
  for (const Component& c : components) {
    const auto bytes = static_cast<std::int64_t>(dtype_size(c.rows.dtype()));
    row_bytes = std::max(row_bytes, checked_multiply(c.row_elements, bytes));
  }
  components_ = std::move(components);
  capacity_ = std::min(limit_, std::max<std::int64_t>(1, kAtOnceBytes / row_bytes));
  for (Component& c : components_) {
    c.rows = Array(c.rows.dtype(), with_rows(capacity_, c.row_shape));
  }
}

void Stacker::prepare(const ElementSpec& spec) {
  std::vector<Component> components;
  for (const TensorSpec& s : spec) {
    const Shape shape = s.shape.to_shape();
    components.push_back({Array(s.dtype, Shape{0}, nullptr, nullptr), shape, shape.num_elements()});
  }
  begin(std::move(components));
}

bool Stacker::next_row(std::span<Array> places) {
  if (components_.empty()) return false;
  if (size_ == capacity_ && size_ > 0) grow();
  for (std::size_t i = 0; i < components_.size(); ++i) {
    const Component& c = components_[i];
    if (is_object(c.rows.dtype())) {
      places[i] = Array();
      continue;
    }
    const auto at = static_cast<std::size_t>(size_ * c.row_elements) * dtype_size(c.rows.dtype());
    places[i] = Array(c.rows.dtype(), c.row_shape, c.rows.buffer(),
                      static_cast<std::byte*>(c.rows.raw_data()) + at);
  }
  return true;
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
  add(element.size(), [&](std::size_t i) -> const Array& { return element[i].array(); });
}

void Stacker::add(std::span<const Array> arrays) {
  add(arrays.size(), [&](std::size_t i) -> const Array& { return arrays[i]; });
}

template <class ArrayAt>
void Stacker::add(std::size_t count, ArrayAt array_at) {
  if (components_.empty()) {
    std::vector<Component> components;
    for (std::size_t i = 0; i < count; ++i) {
      const Array& array = array_at(i);
      components.push_back(
          {Array(array.dtype(), Shape{0}, nullptr, nullptr), array.shape(), array.num_elements()});
    }
    begin(std::move(components));
  } else if (count != components_.size()) {
    throw InvalidArgumentError(
        cat("Cannot batch elements with different numbers of components. First element had ",
            components_.size(), " and element ", size_, " had ", count, "."));
  } else if (size_ == capacity_) {
    grow();
  }
  for (std::size_t i = 0; i < count; ++i) {
    Component& c = components_[i];
    const Array& array = array_at(i);
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
    const std::int64_t at = size_ * c.row_elements;
    if (!is_object(array.dtype()) &&
        array.raw_data() == static_cast<std::byte*>(c.rows.raw_data()) +
                                static_cast<std::size_t>(at) * dtype_size(array.dtype())) {
      continue;  // it was made in its place
    }
    copy_elements(array, 0, c.rows, at, c.row_elements);
  }
  ++size_;
}

void Stacker::finish(Element& out) {
  out.clear();
  for (Component& c : components_) {
    out.emplace_back(size_ == capacity_ ? std::move(c.rows) : c.rows.slice_outer(0, size_));
  }
  components_.clear();
  size_ = capacity_ = 0;
}

}  // namespace tandem::data
