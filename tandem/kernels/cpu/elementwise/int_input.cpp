#include "tandem/kernels/cpu/elementwise/int_input.h"

#include "tandem/core/error.h"

namespace tandem::cpu {

IntInput::IntInput(const Array& array, std::string_view name)
    : data_(array.raw_data()), size_(array.num_elements()), dtype_(base_dtype(array.dtype())) {
  if (!is_integer(dtype_)) {
    throw InvalidArgumentError(cat(name, " must hold integers but is ", array.dtype(), "."));
  }
  if (array.rank() > 1) {
    throw InvalidArgumentError(cat(name, " must be a vector, got shape ", array.shape()));
  }
}

std::int64_t IntInput::other(std::int64_t i) const {
  switch (dtype_) {
    case DType::kInt8: return static_cast<const std::int8_t*>(data_)[i];
    case DType::kInt16: return static_cast<const std::int16_t*>(data_)[i];
    case DType::kUint8: return static_cast<const std::uint8_t*>(data_)[i];
    case DType::kUint16: return static_cast<const std::uint16_t*>(data_)[i];
    case DType::kUint32: return static_cast<const std::uint32_t*>(data_)[i];
    default: return static_cast<const std::int64_t*>(data_)[i];
  }
}

Shape shape_input(const KernelContext& c, int input, std::string_view name) {
  const IntInput dims(c, input, name);
  if (c.input(input).rank() != 1) {
    throw InvalidArgumentError(
        cat(name, " must be a vector of integers, got shape ", c.input(input).shape()));
  }
  if (dims.size() > Shape::kMaxRank) {
    throw InvalidArgumentError(cat(name, " has ", dims.size(), " sizes; at most ", Shape::kMaxRank,
                                   " axes are possible."));
  }
  std::int64_t sizes[Shape::kMaxRank];
  for (std::int64_t i = 0; i < dims.size(); ++i) {
    sizes[i] = dims[i];
    if (sizes[i] < 0) {
      throw InvalidArgumentError(
          cat("Dimension ", i, " of ", name, " must be >= 0 but is ", sizes[i], "."));
    }
  }
  return Shape(std::span<const std::int64_t>(sizes, static_cast<std::size_t>(dims.size())));
}

std::int64_t int_input(const KernelContext& c, int input, std::string_view name) {
  const IntInput value(c, input, name);
  if (value.size() != 1) {
    throw InvalidArgumentError(cat(name, " must be a scalar, got shape ", c.input(input).shape()));
  }
  return value[0];
}

std::int64_t scalar_int_input(const KernelContext& c, int input, std::string_view name) {
  if (c.input(input).rank() != 0) {
    throw InvalidArgumentError(cat(name, " must be a scalar, but got: ", c.input(input).shape()));
  }
  return int_input(c, input, name);
}

int checked_axis(std::int64_t axis, int rank, std::string_view name) {
  if (axis < -rank || axis >= rank) {
    throw InvalidArgumentError(
        cat(name, " ", axis, " is out of range: it must be in [", -rank, ", ", rank, ")."));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

int axis_input(const KernelContext& c, int input, int rank, std::string_view name) {
  return checked_axis(int_input(c, input, name), rank, name);
}

}  // namespace tandem::cpu
