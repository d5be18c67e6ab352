#pragma once

#include <cstdint>
#include <string_view>

#include "tandem/core/array.h"
#include "tandem/core/shape.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// The integers of a host input (any integer dtype), read where they are.
class IntInput {
 public:
  /// Throws InvalidArgumentError unless `input` is of an integer dtype and rank 0 or 1.
  IntInput(const KernelContext& c, int input, std::string_view name)
      : IntInput(c.input(input), name) {}
  IntInput(const Array& array, std::string_view name);

  std::int64_t size() const { return size_; }
  std::int64_t operator[](std::int64_t i) const {
    switch (dtype_) {
      case DType::kInt32: return static_cast<const std::int32_t*>(data_)[i];
      case DType::kInt64: return static_cast<const std::int64_t*>(data_)[i];
      default: return other(i);
    }
  }

 private:
  std::int64_t other(std::int64_t i) const;
  const void* data_;
  std::int64_t size_;
  DType dtype_;
};

/// A shape held by an input: rank 1, no size negative.
Shape shape_input(const KernelContext& c, int input, std::string_view name = "shape");

/// The only integer of an input of one element.
std::int64_t int_input(const KernelContext& c, int input, std::string_view name);

/// Like int_input, but only of rank 0.
std::int64_t scalar_int_input(const KernelContext& c, int input, std::string_view name);

/// Like int_input, as an axis of a value of that rank, counted from the front.
int axis_input(const KernelContext& c, int input, int rank, std::string_view name = "axis");

/// `axis` in [-rank, rank), counted from the front; throws InvalidArgumentError naming it
/// otherwise.
int checked_axis(std::int64_t axis, int rank, std::string_view name = "axis");

}  // namespace tandem::cpu
