#include "tandem/data/fusion/row_table.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "tandem/core/resource_handle.h"
#include "tandem/core/variant.h"
#include "tandem/fs/crc32c.h"

namespace tandem::data {
namespace {

// Rows this far ahead are asked of the memory while a row is copied.
constexpr std::size_t kAhead = 4;

template <class T>
void gather_words(const std::byte* from, std::span<const std::int64_t> rows, std::byte* to) {
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  for (std::size_t i = 0; i < rows.size(); ++i) target[i] = source[rows[i]];
}

void gather_bytes(const std::byte* from, std::size_t row_bytes, std::span<const std::int64_t> rows,
                  std::byte* to) {
  if (row_bytes == 1) return gather_words<std::uint8_t>(from, rows, to);
  if (row_bytes == 4) return gather_words<std::uint32_t>(from, rows, to);
  if (row_bytes == 8) return gather_words<std::uint64_t>(from, rows, to);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + kAhead < rows.size()) {
      const std::byte* later = from + static_cast<std::size_t>(rows[i + kAhead]) * row_bytes;
      for (std::size_t at = 0; at < std::min<std::size_t>(row_bytes, 1024); at += 64) {
        __builtin_prefetch(later + at);
      }
    }
    std::memcpy(to + i * row_bytes, from + static_cast<std::size_t>(rows[i]) * row_bytes,
                row_bytes);
  }
}

template <class T>
void copy_objects(const Array& from, std::int64_t from_index, Array& to, std::int64_t to_index,
                  std::int64_t count) {
  std::copy_n(from.data<T>() + from_index, count, to.data<T>() + to_index);
}

}  // namespace

void copy_elements(const Array& from, std::int64_t from_index, Array& to, std::int64_t to_index,
                   std::int64_t count) {
  if (count == 0) return;
  switch (from.dtype()) {
    case DType::kString: return copy_objects<std::string>(from, from_index, to, to_index, count);
    case DType::kVariant: return copy_objects<Variant>(from, from_index, to, to_index, count);
    case DType::kResource:
      return copy_objects<ResourceHandle>(from, from_index, to, to_index, count);
    default: {
      const std::size_t size = dtype_size(from.dtype());
      std::memcpy(
          static_cast<std::byte*>(to.raw_data()) + static_cast<std::size_t>(to_index) * size,
          static_cast<const std::byte*>(from.raw_data()) +
              static_cast<std::size_t>(from_index) * size,
          static_cast<std::size_t>(count) * size);
    }
  }
}

Shape with_rows(std::int64_t rows, const Shape& row) {
  std::vector<std::int64_t> dims{rows};
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  return Shape(std::span<const std::int64_t>(dims));
}

RowTable::RowTable(const std::vector<Tensor>& components) {
  if (components.empty()) {
    throw InvalidArgumentError(
        "Invalid `element`. `element` should not be empty. Give from_tensor_slices at least one "
        "tensor.");
  }
  for (const Tensor& tensor : components) {
    const Array& array = tensor.array();
    if (array.rank() == 0) {
      throw InvalidArgumentError(cat(
          "Unbatching a tensor is only supported for rank >= 1, but component ", components_.size(),
          " is a scalar of dtype ", array.dtype(), ". Use from_tensors for one element."));
    }
    if (components_.empty()) num_rows_ = array.dim(0);
    if (array.dim(0) != num_rows_) {
      throw InvalidArgumentError(
          cat("Dimensions ", num_rows_, " and ", array.dim(0), " are not compatible: component ",
              components_.size(), " has shape ", array.shape(), ", component 0 has shape ",
              components_.front().array.shape(), ". All tensors need the same number of rows."));
    }
    const Shape row(array.shape().dims().subspan(1));
    const auto row_bytes = static_cast<std::size_t>(row.num_elements()) * dtype_size(array.dtype());
    components_.push_back({array, row, row_bytes});
    spec_.push_back({array.dtype(), row});
  }
}

Element RowTable::tensors() const {
  Element tensors;
  for (const Component& component : components_) tensors.emplace_back(component.array);
  return tensors;
}

std::uint32_t RowTable::checksum() const {
  std::uint32_t crc = 0;
  for (const Component& c : components_) {
    if (c.array.dtype() == DType::kString) {
      for (const std::string& text : c.array.values<std::string>()) crc = fs::crc32c(text, crc);
    } else if (!is_object(c.array.dtype())) {
      crc = fs::crc32c({static_cast<const char*>(c.array.raw_data()), c.array.num_bytes()}, crc);
    }
  }
  return crc;
}

void RowTable::element(std::int64_t row, Element& out) const {
  out.clear();
  for (const Component& c : components_) {
    auto* data =
        static_cast<std::byte*>(c.array.raw_data()) + static_cast<std::size_t>(row) * c.row_bytes;
    out.emplace_back(Array(c.array.dtype(), c.row_shape, c.array.buffer(), data));
  }
}

void RowTable::gather(std::span<const std::int64_t> rows, Element& out) const {
  out.clear();
  for (const Component& c : components_) {
    Array batch(c.array.dtype(), with_rows(static_cast<std::int64_t>(rows.size()), c.row_shape));
    if (is_object(batch.dtype())) {
      const std::int64_t count = c.row_shape.num_elements();
      for (std::size_t i = 0; i < rows.size(); ++i) {
        copy_elements(c.array, rows[i] * count, batch, static_cast<std::int64_t>(i) * count, count);
      }
    } else if (c.row_bytes != 0) {
      gather_bytes(static_cast<const std::byte*>(c.array.raw_data()), c.row_bytes, rows,
                   static_cast<std::byte*>(batch.raw_data()));
    }
    out.emplace_back(std::move(batch));
  }
}

}  // namespace tandem::data
