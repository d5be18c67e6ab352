#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/runtime/owning_span.h"
#include "tandem/runtime/tensor_literals.h"
#include "tandem/runtime/tensor_values.h"

namespace tandem {

class Device;
class Index;
template <class Rows>
class RowIterator;
class TensorImpl;

/// An immutable n-dimensional value, or, while a function is being traced, the promise of one.
///
/// A Tensor is one pointer, cheap to copy, and may be used from several threads. Concrete tensors
/// hold data; symbolic ones are outputs of a graph under construction and know their dtype and what
/// can be said of their shape. Reading data of a symbolic tensor throws FailedPreconditionError. A
/// default-constructed Tensor is undefined: using it throws FailedPreconditionError.
///
///     td::Tensor a{1, 2, 3};                       // int32, shape [3]; {3} has one element
///     td::Tensor three(3);                         // a scalar, shape []; so is `= 3`
///     td::Tensor b{{1.0, 2.0}, {3.0, 4.0}};        // float, shape [2,2]
///     td::Tensor column{{1.0}, {2.0}};             // [2,1]
///     td::Tensor c(std::vector<float>{1, 2, 3});   // float, [3]; vectors of vectors have two axes
///     auto d = td::Tensor::from(std::vector<float>(6), {2, 3});
///     td::Tensor row = b[0], last = b[{td::ellipsis, -1}], large = b[b > 2];
///     float first = b.at<float>({0, 1});
class TANDEM_EXPORT Tensor {
 public:
  Tensor() noexcept;
  Tensor(const Tensor& other) noexcept;
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(const Tensor& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  ~Tensor();

  // Scalars: int is int32, double and float are float32. td::scalar<T>(value) makes any dtype.
  Tensor(bool value);
  Tensor(int value);
  Tensor(std::int64_t value);
  Tensor(float value);
  Tensor(double value);
  Tensor(const char* value);
  Tensor(std::string value);
  /// int64, for sizes and counts; throws InvalidArgumentError for one that is too large.
  template <internal::WideInteger T>
  Tensor(T value) : Tensor(internal::as_int64(value)) {}
  // Any other pointer would be taken for true: td::Tensor::from or wrap makes a tensor of a buffer.
  Tensor(std::nullptr_t) = delete;
  template <class T>
  requires(!std::is_same_v<std::remove_cv_t<T>, char>) Tensor(T* value)
  = delete;
  // Rank 1 to 3, as many as there are braces: {{1.0}, {2.0}} is a column, [2,1]. Rows must have
  // equal lengths.
  template <internal::Literal T>
  Tensor(std::initializer_list<T> values) : Tensor(internal::literal(values)) {}
  template <internal::Literal T>
  Tensor(std::initializer_list<std::initializer_list<T>> rows) : Tensor(internal::literal(rows)) {}
  template <internal::Literal T>
  Tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> blocks)
      : Tensor(internal::literal(blocks)) {}
  // From numbers of several types, {1, x, 2.5}, or of another type: float if one of them has
  // a fraction's type, else int32 or, if one is longer, int64. For a row and a column, which {{1},
  // {2.5}} could be, the compiler takes what is no template: the column. Between rows and blocks of
  // single numbers of several types, {{{1}, {2.5}}}, it does not choose, and compiles neither.
  template <int = 0>
  Tensor(std::initializer_list<internal::MixedNumber> values)
      : Tensor(internal::MixedNumbers(values).array()) {}
  Tensor(std::initializer_list<std::initializer_list<internal::MixedNumber>> rows)
      : Tensor(internal::MixedNumbers(rows).array()) {}
  Tensor(std::initializer_list<std::initializer_list<std::initializer_list<internal::MixedNumber>>>
             blocks)
      : Tensor(internal::MixedNumbers(blocks).array()) {}
  template <internal::OtherNumber T>
  Tensor(std::initializer_list<std::initializer_list<T>> rows)
      : Tensor(internal::MixedNumbers(rows).array()) {}
  template <internal::OtherNumber T>
  Tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> blocks)
      : Tensor(internal::MixedNumbers(blocks).array()) {}
  // More braces would be taken for fewer: td::Tensor::from(values, shape) makes any rank.
  template <class T>
  Tensor(
      std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>
          values) = delete;
  Tensor(std::initializer_list<
         std::initializer_list<std::initializer_list<std::initializer_list<internal::MixedNumber>>>>
             values) = delete;
  /// Shares the array's buffer.
  Tensor(Array array);
  /// Copies std::vector, std::array or std::span, also nested; the elements keep their type: double
  /// is float64. Throws InvalidArgumentError if rows are not equally long.
  template <internal::Sequence R>
  explicit Tensor(const R& values) : Tensor(internal::array_of(values)) {}

  /// Copies; T is the element type (double stays float64 here).
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape) {
    return Tensor(Array::from(values, shape));
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return Tensor(Array::from(std::span<const T>(values), shape));
  }
  template <class T>
  static Tensor from(const std::vector<T>& values) {
    return Tensor(Array::vector(values));
  }
  /// Outside memory without a copy; see Array::wrap.
  static Tensor wrap(void* data, DType dtype, const Shape& shape,
                     std::function<void()> release = {}) {
    return Tensor(Array::wrap(data, dtype, shape, std::move(release)));
  }

  bool defined() const noexcept { return impl_ != nullptr; }
  explicit operator bool()
      const;  ///< value of a concrete scalar; while tracing throws: use td::cond

  DType dtype() const;
  /// Throws FailedPreconditionError if not fully known (symbolic tensors): see partial_shape.
  const Shape& shape() const&;
  Shape shape() const&&;
  PartialShape partial_shape() const;
  int rank() const;  ///< -1 when unknown
  int ndim() const { return rank(); }
  /// Size of an axis, counted from the end if negative; -1 when unknown.
  std::int64_t dim(int axis) const;
  std::int64_t num_elements() const { return shape().num_elements(); }
  bool is_symbolic() const noexcept;

  /// The concrete value; waits for it, and throws the error of the op that failed to make it.
  const Array& array() const&;
  Array array() const&&;
  /// The elements, row-major, valid as long as the tensor or a copy of it lives. T must be the
  /// element type of the dtype, else InvalidArgumentError.
  template <class T>
  std::span<const T> data() const& {
    return array().values<T>();
  }
  /// For a temporary, which would take its elements with it: the result keeps them, so hold it as
  /// `auto`; a `std::span<const T>` made of it does not.
  template <class T>
  internal::OwningSpan<T> data() const&& {
    return internal::OwningSpan<T>(array());
  }
  template <class T>
  std::vector<T> to_vector() const {
    const auto values = array().values<T>();
    return {values.begin(), values.end()};
  }
  /// The only element of a tensor of one element. A number may be read as another type that holds
  /// its value exactly, an int32 1 as double, say; InvalidArgumentError if it would be changed.
  template <class T>
  T item() const {
    check_one_element();
    if constexpr (std::is_arithmetic_v<T>) {
      return internal::exact_number<T>(array());
    } else {
      return array().values<T>()[0];
    }
  }
  /// One index for each axis, from 0; else InvalidArgumentError.
  template <class T>
  T at(std::initializer_list<std::int64_t> index) const {
    return array().values<T>()[flat_index(index)];
  }
  // Parts, as Python's t[...] picks them: td::index in tandem/ops/slice_ops.h, which has Index.
  /// One entry: an integer or a scalar tensor (the first axis goes away), a td::Slice, td::newaxis,
  /// td::ellipsis, a bool tensor (the elements where it holds: td::boolean_mask), or a vector of
  /// numbers (rows by number: td::gather).
  Tensor operator[](const Index& entry) const;
  /// Several: `t[{0, td::Slice(1, 3), td::ellipsis, td::newaxis}]`.
  Tensor operator[](std::initializer_list<Index> entries) const;

  /// The rows of the first axis one by one, `for (td::Tensor row : t)`: t[0], t[1], … In a traced
  /// function the loop is unrolled, so its size must be known there. Throws InvalidArgumentError
  /// for a scalar, FailedPreconditionError for an unknown size: td::map_fn and td::while_loop take
  /// those.
  RowIterator<Tensor> begin() const;
  RowIterator<Tensor> end() const;

  /// Waits until the value is there, as every look at it does: eager calls on an accelerator return
  /// before it has run them. Throws why there will be no value, naming the op that failed.
  void synchronize() const;
  /// False while a device has yet to compute the value. True also of one that failed.
  bool is_ready() const;

  /// Full name of the device that holds the value, "/job:localhost/replica:0/task:0/device:CPU:0".
  std::string device() const;
  /// For concrete tensors the value as NumPy prints it; else the dtype, shape and name.
  std::string to_string() const;
  /// Identity, not equality of values (see td::equal, td::all_equal).
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }

  // ---- For the runtime. ----
  explicit Tensor(TensorImpl* impl) noexcept;  ///< takes a reference
  TensorImpl* impl() const noexcept { return impl_; }

 private:
  void check_one_element() const;
  std::size_t flat_index(std::initializer_list<std::int64_t> index) const;
  TensorImpl* impl_ = nullptr;
};

/// td::Tensor t = td::tensor<double>({1, 2, 3}); td::tensor<std::uint8_t>(7): any element type by
/// name.
template <class T>
Tensor tensor(std::initializer_list<T> values) {
  return Tensor(Array::from(std::span<const T>(values.begin(), values.size()),
                            Shape{static_cast<std::int64_t>(values.size())}));
}
template <class T>
Tensor tensor(const std::vector<T>& values) {
  return Tensor(Array::vector(values));
}
template <class T>
Tensor scalar(const T& value) {
  return Tensor(Array::scalar<T>(value));
}

/// Prints to_string().
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace tandem
