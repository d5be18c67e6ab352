#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// The dimensions of a concrete value: rank 0 to 254, each size 0 or more, the product below 2^63.
///
/// A value type; up to six dimensions live inside the object. Making one from negative sizes or
/// from sizes whose product overflows 64 bits throws InvalidArgumentError.
class TANDEM_EXPORT Shape {
 public:
  static constexpr int kMaxRank = 254;

  Shape() = default;  ///< a scalar
  Shape(std::initializer_list<std::int64_t> dims)
      : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);
  Shape(const Shape& other) { *this = other; }
  Shape(Shape&& other) noexcept { take(other); }
  Shape& operator=(const Shape& other) {
    if (other.heap_ == nullptr && heap_ == nullptr) {
      rank_ = other.rank_;
      count_ = other.count_;
      std::memcpy(inline_, other.inline_, sizeof(inline_));
      return *this;
    }
    return assign_slow(other);
  }
  Shape& operator=(Shape&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  int rank() const { return rank_; }
  /// The size of one dimension; `axis` may be negative and counts from the end. Throws when out of
  /// range.
  std::int64_t dim(int axis) const;
  /// As `dim`.
  std::int64_t operator[](int axis) const {
    return static_cast<unsigned>(axis) < static_cast<unsigned>(rank_) ? data()[axis] : dim(axis);
  }
  std::int64_t num_elements() const { return count_; }
  const std::int64_t* data() const { return heap_ ? heap_.get() : inline_; }
  std::span<const std::int64_t> dims() const { return {data(), static_cast<std::size_t>(rank_)}; }
  std::vector<std::int64_t> to_vector() const { return {data(), data() + rank_}; }

  /// The product of the sizes of axes [begin, end).
  std::int64_t product(int begin, int end) const;
  void set_dim(int axis, std::int64_t size);
  void add_dim(std::int64_t size);

  bool operator==(const Shape& other) const {
    return rank_ == other.rank_ && count_ == other.count_ &&
           std::memcmp(data(), other.data(), static_cast<std::size_t>(rank_) * 8) == 0;
  }

  /// "[2,3]", as TensorFlow prints it.
  std::string to_string() const;

 private:
  static constexpr int kInline = 6;
  Shape& assign_slow(const Shape& other);
  void take(Shape& other) noexcept {
    rank_ = other.rank_;
    count_ = other.count_;
    std::memcpy(inline_, other.inline_, sizeof(inline_));
    heap_ = std::move(other.heap_);
    if (heap_) {  // what is left has no dimensions to show
      other.rank_ = 0;
      other.count_ = 1;
    }
  }
  void assign(std::span<const std::int64_t> dims);

  int rank_ = 0;
  std::int64_t count_ = 1;
  std::int64_t inline_[kInline] = {};
  std::unique_ptr<std::int64_t[]> heap_;
};

/// Dimensions of which some, or even their number, may be unknown: what shape inference works on.
class TANDEM_EXPORT PartialShape {
 public:
  static constexpr std::int64_t kUnknown = -1;

  PartialShape() = default;  ///< unknown rank
  PartialShape(std::initializer_list<std::int64_t> dims)
      : PartialShape(std::vector<std::int64_t>(dims)) {}
  /// Sizes of which some are td::none, as TensorFlow has None: `{td::none, 28}`. A template, so
  /// that `{}` remains the list above.
  template <int = 0>
  PartialShape(std::initializer_list<std::optional<std::int64_t>> dims)
      : PartialShape(sizes_of(dims)) {}
  /// Sizes of -1 are unknown; anything below throws InvalidArgumentError.
  explicit PartialShape(std::vector<std::int64_t> dims);
  PartialShape(const Shape& shape) : known_rank_(true), dims_(shape.to_vector()) {}
  static PartialShape unknown() { return {}; }
  static PartialShape scalar() { return PartialShape(Shape{}); }
  static PartialShape unknown_of_rank(int rank);

  bool has_rank() const { return known_rank_; }
  /// -1 when unknown.
  int rank() const { return known_rank_ ? static_cast<int>(dims_.size()) : -1; }
  /// kUnknown, -1, when the rank or that size is unknown, where TensorFlow has None; negative axes
  /// count from the end. Throws InvalidArgumentError when out of range.
  std::int64_t dim(int axis) const;
  std::int64_t operator[](int axis) const { return dim(axis); }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  void set_dim(int axis, std::int64_t size) { dims_.at(static_cast<std::size_t>(axis)) = size; }
  bool is_fully_known() const;
  /// Throws FailedPreconditionError unless fully known.
  Shape to_shape() const;
  /// kUnknown unless fully known.
  std::int64_t num_elements() const;

  /// True if some concrete shape satisfies both.
  bool is_compatible(const PartialShape& other) const;
  bool is_compatible(const Shape& shape) const;
  /// What both say together; throws InvalidArgumentError when they contradict each other.
  PartialShape merge(const PartialShape& other) const;
  /// The most specific shape that covers both (sizes that differ become unknown).
  PartialShape relax(const PartialShape& other) const;

  bool operator==(const PartialShape& other) const = default;
  /// "[2,?]" or "<unknown>".
  std::string to_string() const;

 private:
  static std::vector<std::int64_t> sizes_of(
      std::initializer_list<std::optional<std::int64_t>> dims) {
    std::vector<std::int64_t> sizes;
    sizes.reserve(dims.size());
    for (const std::optional<std::int64_t>& size : dims) sizes.push_back(size.value_or(kUnknown));
    return sizes;
  }

  bool known_rank_ = false;
  std::vector<std::int64_t> dims_;
};

/// The shape that NumPy's broadcasting gives; throws InvalidArgumentError "Incompatible shapes: [2]
/// vs. [3]".
TANDEM_EXPORT Shape broadcast(const Shape& a, const Shape& b);
TANDEM_EXPORT PartialShape broadcast(const PartialShape& a, const PartialShape& b);

/// `axis` in [-rank, rank) as a non-negative number; throws InvalidArgumentError naming both
/// otherwise.
TANDEM_EXPORT int normalize_axis(std::int64_t axis, int rank);

/// a * b, throwing InvalidArgumentError when the product of these sizes needs more than 63 bits.
TANDEM_EXPORT std::int64_t checked_multiply(std::int64_t a, std::int64_t b);

TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const Shape& shape);
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const PartialShape& shape);

}  // namespace tandem
