#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/data/element.h"

namespace tandem::data {

/// Tensors in memory whose rows along the first axis are elements. Immutable; usable from any
/// thread.
class RowTable {
 public:
  /// Throws InvalidArgumentError unless there is a component and all have the same number of rows.
  explicit RowTable(const std::vector<Tensor>& components);

  std::int64_t num_rows() const { return num_rows_; }
  /// The spec of one row.
  const ElementSpec& spec() const { return spec_; }
  /// The tensors themselves.
  Element tensors() const;
  /// The crc32c of the content.
  std::uint32_t checksum() const;
  /// Puts a row into `out`, sharing memory.
  void element(std::int64_t row, Element& out) const;
  /// Puts copies of these rows, joined along a first axis, into `out`.
  void gather(std::span<const std::int64_t> rows, Element& out) const;

 private:
  struct Component {
    Array array;
    Shape row_shape;
    std::size_t row_bytes = 0;
  };
  std::vector<Component> components_;
  std::int64_t num_rows_ = 0;
  ElementSpec spec_;
};

/// Copies elements between arrays of one dtype, objects too.
void copy_elements(const Array& from, std::int64_t from_index, Array& to, std::int64_t to_index,
                   std::int64_t count);

/// `rows` x the sizes of `row`; throws InvalidArgumentError if that overflows.
Shape with_rows(std::int64_t rows, const Shape& row);

}  // namespace tandem::data
