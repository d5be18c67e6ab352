#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "tandem/core/buffer.h"
#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"

namespace tandem {

/// A concrete dense value: dtype, shape, and row-major elements in a shared buffer.
///
/// Copying an Array shares the buffer; elements are immutable while more than one Array refers to
/// them. Reshape and outer slices share the buffer too. Memory allocated here is 64-byte aligned;
/// slices and wrapped outside memory are aligned to their element only. This is what kernels,
/// constants and formats see; users hold `td::Tensor`. A default-constructed Array is empty (dtype
/// kInvalid). Distinct Array objects may be used from distinct threads.
class TANDEM_EXPORT Array {
 public:
  Array() = default;

  /// Allocates on the host. Numbers are uninitialised, object elements default-constructed.
  Array(DType dtype, const Shape& shape);

  /// A view of `buffer` starting at `data`, which lies inside it.
  Array(DType dtype, const Shape& shape, Ref<Buffer> buffer, void* data)
      : dtype_(dtype), shape_(shape), data_(data), buffer_(std::move(buffer)) {}

  /// Outside memory without a copy; it must hold `shape` row-major and stay valid until `release`
  /// is called.
  static Array wrap(void* data, DType dtype, const Shape& shape,
                    std::function<void()> release = {});

  template <class T>
  static Array scalar(const T& value) {
    Array a(dtype_of<T>, Shape{});
    a.data<T>()[0] = value;
    return a;
  }
  template <class T>
  static Array from(std::span<const T> values, const Shape& shape) {
    Array a(dtype_of<T>, shape);
    a.check_count(values.size());
    std::copy(values.begin(), values.end(), a.data<T>());
    return a;
  }
  template <class T>
  static Array vector(const std::vector<T>& values) {
    Array a(dtype_of<T>, Shape{static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), a.data<T>());
    return a;
  }
  static Array zeros(DType dtype, const Shape& shape);

  bool valid() const noexcept { return dtype_ != DType::kInvalid; }
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  int rank() const noexcept { return shape_.rank(); }
  std::int64_t dim(int axis) const { return shape_.dim(axis); }
  std::int64_t num_elements() const noexcept { return shape_.num_elements(); }
  std::size_t num_bytes() const {
    return static_cast<std::size_t>(shape_.num_elements()) * dtype_size(dtype_);
  }

  /// True unless the elements lie in a device's own memory, where host code must not touch them.
  bool on_host() const noexcept { return !buffer_ || buffer_->space() == nullptr; }
  void* raw_data() const noexcept { return data_; }
  /// The elements; T must be the element type of the dtype (not checked: see `values`).
  template <class T>
  T* data() const noexcept {
    return static_cast<T*>(data_);
  }
  /// The elements, after checking that T is their type.
  template <class T>
  std::span<const T> values() const {
    check_dtype(dtype_of<T>);
    return {data<T>(), static_cast<std::size_t>(num_elements())};
  }

  /// An array of these elements with another shape; throws InvalidArgumentError if the counts
  /// differ.
  Array reshape(const Shape& shape) const;
  /// Rows [begin, end) of the first axis, sharing the buffer.
  Array slice_outer(std::int64_t begin, std::int64_t end) const;
  /// A copy in memory of its own; of device memory on the same device, and only in its kernels.
  Array clone() const;

  /// True if this Array alone refers to memory that we own, so its elements may be overwritten.
  bool writable_in_place() const noexcept {
    return buffer_ && buffer_->unique() && buffer_->owned();
  }
  const Ref<Buffer>& buffer() const noexcept { return buffer_; }

  /// Like NumPy's: "[[1 2]\n [3 4]]"; long axes are shortened to three elements at each end.
  std::string to_string() const;

  /// Same dtype, shape and elements (NaN differs from itself).
  bool operator==(const Array& other) const;

 private:
  void check_dtype(DType wanted) const;
  void check_count(std::size_t given) const;

  DType dtype_ = DType::kInvalid;
  Shape shape_;
  void* data_ = nullptr;
  Ref<Buffer> buffer_;
};

}  // namespace tandem
