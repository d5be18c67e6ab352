#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/ops/row_iterator.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Parts of tensors, as NumPy's index expressions pick them. Rows of the first axis share memory
// with the whole.

/// TensorFlow's None: "from the beginning", "to the end" in a Slice; a size that is not known in a
/// PartialShape.
inline constexpr std::nullopt_t none = std::nullopt;

/// begin:end:step of an axis; either end may be `td::none`, negative ones count from the end of the
/// axis.
struct Slice {
  Slice() = default;  ///< all of it
  Slice(std::optional<std::int64_t> from, std::optional<std::int64_t> to, std::int64_t by = 1)
      : begin(from), end(to), step(by) {}
  std::optional<std::int64_t> begin;
  std::optional<std::int64_t> end;
  std::int64_t step = 1;
};

struct Ellipsis {};
struct NewAxis {};
/// Stands for as many whole axes as are needed; at most once in an index.
inline constexpr Ellipsis ellipsis{};
/// A new axis of size 1.
inline constexpr NewAxis newaxis{};

namespace internal {
template <class T>
std::int64_t as_index(T i) {
  if constexpr (WideInteger<T>) return as_int64(i);
  return static_cast<std::int64_t>(i);
}
}  // namespace internal

/// One entry of an index expression: an integer (the axis goes away), a Slice, td::ellipsis,
/// td::newaxis, or an int32 or int64 scalar tensor (the axis goes away). As the only entry in
/// brackets also a bool tensor or a vector of row numbers: see Tensor::operator[].
class TANDEM_EXPORT Index {
 public:
  enum class Kind : std::uint8_t { kInteger, kSlice, kEllipsis, kNewAxis, kTensor };
  template <std::integral T>
  Index(T i) : kind_(Kind::kInteger), slice_(internal::as_index(i), none) {}
  Index(bool) = delete;
  Index(Slice slice) : kind_(Kind::kSlice), slice_(slice) {}
  Index(Ellipsis) : kind_(Kind::kEllipsis) {}
  Index(NewAxis) : kind_(Kind::kNewAxis) {}
  Index(Tensor i) : kind_(Kind::kTensor), tensor_(std::move(i)) {}
  Kind kind() const { return kind_; }
  std::int64_t integer() const { return slice_.begin.value_or(0); }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  Slice slice_;
  Tensor tensor_;
};

/// Indexes like Python's t[...]: `td::index(t, {0, td::Slice(1, 3), td::ellipsis, td::newaxis,
/// td::Slice(td::none, td::none, -1)})`. Throws InvalidArgumentError if an integer is out of range
/// or there are more entries than axes.
TANDEM_EXPORT Tensor index(Tensor t, std::span<const Index> entries);
TANDEM_EXPORT Tensor index(Tensor t, std::initializer_list<Index> entries);

/// size[i] elements from begin[i] on along each axis; a size of -1 takes the rest.
TANDEM_EXPORT Tensor slice(Tensor input, const IntList& begin, const IntList& size);

/// Bit i of a mask concerns entry i of begin, end and strides; see td::index for the readable form.
struct StridedSliceOptions {
  std::int64_t begin_mask = 0;        ///< begin[i] is ignored: from the beginning
  std::int64_t end_mask = 0;          ///< end[i] is ignored: to the end
  std::int64_t ellipsis_mask = 0;     ///< as many axes as are needed
  std::int64_t new_axis_mask = 0;     ///< a new axis of size 1
  std::int64_t shrink_axis_mask = 0;  ///< element begin[i] alone; the axis goes away
};
/// strides: 1 everywhere if empty.
TANDEM_EXPORT Tensor strided_slice(Tensor input, const IntList& begin, const IntList& end,
                                   const IntList& strides = {},
                                   const StridedSliceOptions& options = {});

/// `num_splits` equal parts along an axis. Throws InvalidArgumentError if its size is no multiple.
TANDEM_EXPORT std::vector<Tensor> split(Tensor value, std::int64_t num_splits,
                                        std::int64_t axis = 0);
/// Parts of these sizes along an axis; one may be -1. (`split(x, {3})` is three equal parts: write
/// IntList{3} for one size.)
TANDEM_EXPORT std::vector<Tensor> split(Tensor value, const IntList& sizes, std::int64_t axis = 0);

}  // namespace tandem
