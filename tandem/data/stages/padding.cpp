#include "tandem/data/stages/padding.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/fusion/row_table.h"

namespace tandem::data {
namespace {

// Sets elements [begin, end) to the first element of `value`, or to zero and "" without one.
void fill(Array& to, std::int64_t begin, std::int64_t end, const Array* value) {
  if (begin >= end) return;
  if (is_object(to.dtype())) {  // default-constructed
    for (std::int64_t i = begin; value && i < end; ++i) copy_elements(*value, 0, to, i, 1);
    return;
  }
  const std::size_t size = dtype_size(to.dtype());
  auto* bytes = static_cast<std::byte*>(to.raw_data()) + static_cast<std::size_t>(begin) * size;
  const std::size_t count = static_cast<std::size_t>(end - begin) * size;
  if (!value) {
    std::memset(bytes, 0, count);
    return;
  }
  // What is filled already doubles with every copy.
  std::memcpy(bytes, value->raw_data(), size);
  for (std::size_t done = size; done < count;) {
    const std::size_t more = std::min(done, count - done);
    std::memcpy(bytes + done, bytes, more);
    done += more;
  }
}

// Copies what `from` has from element `from_at` on along `axis` and those after it into the corner
// of the row of shape `row`, there from element `at` of `to` on.
void copy_corner(const Array& from, std::int64_t from_at, const Shape& row, Array& to,
                 std::int64_t at, int axis = 0) {
  if (from.num_elements() == 0) return;
  if (axis >= from.rank() - 1) {
    return copy_elements(from, from_at, to, at, from.rank() == 0 ? 1 : from.dim(axis));
  }
  const std::int64_t from_step = from.shape().product(axis + 1, from.rank());
  const std::int64_t step = row.product(axis + 1, row.rank());
  for (std::int64_t i = 0; i < from.dim(axis); ++i) {
    copy_corner(from, from_at + i * from_step, row, to, at + i * step, axis + 1);
  }
}

}  // namespace

Padding::Padding(std::vector<PartialShape> shapes, std::vector<Tensor> values)
    : shapes_(std::move(shapes)), values_(std::move(values)) {
  for (const Tensor& value : values_) {
    if (value.rank() != 0) {
      throw InvalidArgumentError(
          cat("Invalid `padding_values`. They should be scalars, but one has "
              "shape ",
              value.partial_shape(), "."));
    }
  }
}

void Padding::check(const ElementSpec& spec) const {
  if (!shapes_.empty() && shapes_.size() != spec.size()) {
    throw InvalidArgumentError(cat("padded_shapes has ", shapes_.size(),
                                   " entries, but the elements have ", spec.size(),
                                   " components."));
  }
  if (!values_.empty() && values_.size() != spec.size()) {
    throw InvalidArgumentError(cat("padding_values has ", values_.size(),
                                   " entries, but the elements have ", spec.size(),
                                   " components."));
  }
  for (std::size_t i = 0; i < spec.size(); ++i) {
    if (!shapes_.empty() && shapes_[i].has_rank() && spec[i].shape.has_rank() &&
        shapes_[i].rank() != spec[i].shape.rank()) {
      throw InvalidArgumentError(cat("The padded shape ", shapes_[i],
                                     " is not compatible with the shape ", spec[i].shape,
                                     " of the corresponding input component ", i, "."));
    }
    if (!values_.empty() && spec[i].dtype != DType::kInvalid &&
        values_[i].dtype() != spec[i].dtype) {
      throw InvalidArgumentError(cat("Invalid `padding_values`. `padding_values` values type ",
                                     values_[i].dtype(), " does not match type ", spec[i].dtype,
                                     " of the corresponding input component ", i, "."));
    }
  }
}

ElementSpec Padding::batch_spec(const ElementSpec& spec, std::int64_t rows) const {
  ElementSpec batch = spec;
  for (std::size_t i = 0; i < spec.size(); ++i) {
    PartialShape& shape = batch[i].shape;
    if (!shapes_.empty()) {
      shape = shapes_[i];
    } else if (shape.has_rank()) {
      // Sizes that the input's spec knows are every element's.
      shape = spec[i].shape;
    }
    if (!shape.has_rank()) continue;
    std::vector<std::int64_t> dims = shape.dims();
    dims.insert(dims.begin(), rows);
    shape = PartialShape(std::move(dims));
  }
  return batch;
}

Shape Padding::row_shape(std::span<const Element> elements, std::size_t component,
                         std::int64_t filled, std::size_t& misfit) const {
  const Array& first = elements.front()[component].array();
  const PartialShape given = shapes_.empty() || !shapes_[component].has_rank()
                                 ? PartialShape::unknown_of_rank(first.rank())
                                 : shapes_[component];
  std::vector<std::int64_t> dims = given.dims();
  for (std::int64_t& dim : dims) {
    if (dim < 0 && filled >= 0) dim = filled;
  }
  const std::vector<std::int64_t> wanted = dims;
  for (std::size_t number = 0; number < elements.size(); ++number) {
    const Array& array = elements[number][component].array();
    misfit = number;
    if (array.rank() != given.rank()) {
      throw InvalidArgumentError(
          cat("All elements in a batch must have the same rank as the padded shape for component ",
              component, ": expected rank ", given.rank(), " but element ", number,
              " of the batch has shape ", array.shape(), "."));
    }
    if (array.dtype() != first.dtype()) {
      throw InvalidArgumentError(cat("Cannot batch tensors with different dtypes in component ",
                                     component, ". First element had ", first.dtype(),
                                     " and element ", number, " had ", array.dtype(), "."));
    }
    for (int axis = 0; axis < array.rank(); ++axis) {
      std::int64_t& dim = dims[static_cast<std::size_t>(axis)];
      if (wanted[static_cast<std::size_t>(axis)] < 0) {
        dim = std::max(dim, array.dim(axis));
      } else if (array.dim(axis) > dim) {
        throw DataLossError(
            cat("Attempted to pad to a smaller size than the input element: "
                "element ",
                number, " of the batch has shape ", array.shape(), " in component ", component,
                ", the padded shape is ", PartialShape(wanted), "."));
      }
    }
  }
  return Shape(std::span<const std::int64_t>(dims));
}

void Padding::join(std::span<const Element> elements, std::int64_t filled, Element& out,
                   std::size_t& misfit) const {
  misfit = 0;
  const std::size_t components = elements.front().size();
  ElementSpec spec;
  for (const Tensor& tensor : elements.front()) spec.push_back({tensor.dtype(), PartialShape()});
  check(spec);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].size() != components) {
      misfit = i;
      throw InvalidArgumentError(
          cat("Cannot batch elements with different numbers of components. First element had ",
              components, " and element ", i, " had ", elements[i].size(), "."));
    }
  }
  Element batch;
  for (std::size_t c = 0; c < components; ++c) {
    const Shape row = row_shape(elements, c, filled, misfit);
    const std::int64_t size = row.num_elements();
    Array joined(elements.front()[c].dtype(),
                 with_rows(static_cast<std::int64_t>(elements.size()), row));
    const Array* value = values_.empty() ? nullptr : &values_[c].array();
    std::int64_t at = 0;
    for (const Element& element : elements) {
      const Array& array = element[c].array();
      if (row.rank() == 1) {
        copy_elements(array, 0, joined, at, array.num_elements());
        fill(joined, at + array.num_elements(), at + size, value);
      } else {
        if (array.num_elements() < size) fill(joined, at, at + size, value);
        copy_corner(array, 0, row, joined, at);
      }
      at += size;
    }
    batch.emplace_back(std::move(joined));
  }
  out = std::move(batch);
}

}  // namespace tandem::data
