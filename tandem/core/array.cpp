#include "tandem/core/array.h"

#include <cstring>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/core/variant.h"

namespace tandem {

Array::Array(DType dtype, const Shape& shape) : dtype_(base_dtype(dtype)), shape_(shape) {
  const std::size_t size = dtype_size(dtype_);
  if (size == 0) throw InvalidArgumentError(cat("An array cannot have dtype ", dtype, "."));
  const std::int64_t bytes =
      checked_multiply(shape.num_elements(), static_cast<std::int64_t>(size));
  buffer_ = is_object(dtype_)
                ? allocate_object_buffer(dtype_, static_cast<std::size_t>(shape.num_elements()))
                : allocate_host_buffer(static_cast<std::size_t>(bytes));
  data_ = buffer_->data();
}

Array Array::wrap(void* data, DType dtype, const Shape& shape, std::function<void()> release) {
  if (is_object(dtype)) {
    throw InvalidArgumentError(cat("Outside memory cannot hold elements of dtype ", dtype, "."));
  }
  const std::size_t size = dtype_size(dtype);
  if (size == 0) throw InvalidArgumentError(cat("An array cannot have dtype ", dtype, "."));
  const std::int64_t bytes =
      checked_multiply(shape.num_elements(), static_cast<std::int64_t>(size));
  if (data == nullptr && bytes != 0) throw InvalidArgumentError("Outside memory is null.");
  return Array(base_dtype(dtype), shape,
               wrap_memory(data, static_cast<std::size_t>(bytes), std::move(release)), data);
}

Array Array::zeros(DType dtype, const Shape& shape) {
  Array a(dtype, shape);
  if (!is_object(dtype) && a.num_bytes() != 0) std::memset(a.raw_data(), 0, a.num_bytes());
  return a;
}

Array Array::reshape(const Shape& shape) const {
  if (shape.num_elements() != num_elements()) {
    throw InvalidArgumentError(cat("Cannot reshape a value of shape ", shape_, " (", num_elements(),
                                   " elements) to ", shape, " (", shape.num_elements(),
                                   " elements)."));
  }
  return Array(dtype_, shape, buffer_, data_);
}

Array Array::slice_outer(std::int64_t begin, std::int64_t end) const {
  if (rank() == 0 || begin < 0 || end < begin || end > shape_[0]) {
    throw InvalidArgumentError(
        cat("Rows [", begin, ", ", end, ") do not exist in shape ", shape_, "."));
  }
  Shape shape = shape_;
  const std::int64_t row = shape_.product(1, rank());
  shape.set_dim(0, end - begin);
  auto* data =
      static_cast<std::byte*>(data_) + static_cast<std::size_t>(begin * row) * dtype_size(dtype_);
  return Array(dtype_, shape, buffer_, data);
}

Array Array::clone() const {
  if (!valid()) return {};
  if (!on_host()) {
    // Only kernels of the device come here, with addresses as they see them.
    Ref<Buffer> buffer = buffer_->allocate_like(num_bytes());
    void* data = static_cast<std::byte*>(buffer->data()) + buffer_->space()->kernel_offset;
    if (num_bytes() != 0) std::memcpy(data, data_, num_bytes());
    return Array(dtype_, shape_, std::move(buffer), data);
  }
  Array copy(dtype_, shape_);
  const auto count = static_cast<std::size_t>(num_elements());
  switch (dtype_) {
    case DType::kString: std::copy_n(data<std::string>(), count, copy.data<std::string>()); break;
    case DType::kVariant: std::copy_n(data<Variant>(), count, copy.data<Variant>()); break;
    case DType::kResource:
      std::copy_n(data<ResourceHandle>(), count, copy.data<ResourceHandle>());
      break;
    default:
      if (count != 0) std::memcpy(copy.raw_data(), data_, num_bytes());
  }
  return copy;
}

namespace {

template <class T>
bool equal_elements(const Array& a, const Array& b) {
  return std::equal(a.data<T>(), a.data<T>() + a.num_elements(), b.data<T>());
}

}  // namespace

bool Array::operator==(const Array& other) const {
  if (dtype_ != other.dtype_ || !(shape_ == other.shape_)) return false;
  switch (dtype_) {
    case DType::kFloat: return equal_elements<float>(*this, other);
    case DType::kDouble: return equal_elements<double>(*this, other);
    case DType::kHalf: return equal_elements<Half>(*this, other);
    case DType::kBFloat16: return equal_elements<BFloat16>(*this, other);
    case DType::kComplex64: return equal_elements<std::complex<float>>(*this, other);
    case DType::kComplex128: return equal_elements<std::complex<double>>(*this, other);
    case DType::kString: return equal_elements<std::string>(*this, other);
    case DType::kVariant:
    case DType::kResource: return data_ == other.data_;
    default: return num_bytes() == 0 || std::memcmp(data_, other.data_, num_bytes()) == 0;
  }
}

void Array::check_dtype(DType wanted) const {
  if (dtype_ != wanted) {
    throw InvalidArgumentError(
        cat("A value of dtype ", dtype_, " was read as ", wanted, ". Use td::cast first."));
  }
}

void Array::check_count(std::size_t given) const {
  if (given != static_cast<std::size_t>(num_elements())) {
    throw InvalidArgumentError(
        cat(given, " values were given for shape ", shape_, " of ", num_elements(), " elements."));
  }
}

}  // namespace tandem
