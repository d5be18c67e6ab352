#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// A list of integers given to an op: a shape, a permutation, axes, sizes. Either written in C++ or
/// computed.
///
///     td::reshape(x, {2, -1});            // a braced list
///     td::zeros(other.shape());           // a Shape
///     td::reshape(x, td::shape(y));       // an integer tensor of rank 1
///     td::reshape(x, {td::shape(y)[0], -1});
class TANDEM_EXPORT IntList {
 public:
  /// An integer that is written in C++, or a scalar tensor: `{td::shape(x)[0], 16}`.
  class Entry {
   public:
    Entry(std::int64_t value) : value_(value) {}
    Entry(Tensor computed) : computed_(std::move(computed)) {}
    std::int64_t value() const { return value_; }
    const Tensor& computed() const { return computed_; }  ///< undefined if it is written

   private:
    std::int64_t value_ = 0;
    Tensor computed_;
  };

  IntList() = default;  ///< no integers
  IntList(std::initializer_list<std::int64_t> values) : values_(values) {}
  IntList(std::vector<std::int64_t> values) : values_(std::move(values)) {}
  IntList(std::span<const std::int64_t> values) : values_(values.begin(), values.end()) {}
  IntList(const Shape& shape) : values_(shape.to_vector()) {}
  /// With scalars that are computed, int32 or int64. One tensor of rank 1 in braces is the list.
  IntList(std::initializer_list<Entry> entries);
  /// An int32 or int64 tensor of rank 1.
  IntList(Tensor computed) : computed_(std::move(computed)) {}

  /// True if written in C++ with no integer in it.
  bool empty() const { return !computed_.defined() && values_.empty(); }
  /// The integers if they are known now: written, or a concrete tensor. Throws InvalidArgumentError
  /// if they are a tensor of another dtype.
  std::optional<std::vector<std::int64_t>> known() const;
  /// The list as a tensor of rank 1: the one given, or int32 if all fit, else int64.
  Tensor tensor() const;
  /// Like `tensor`, but of this dtype when written in C++.
  Tensor tensor(DType dtype) const;

 private:
  std::vector<std::int64_t> values_;
  Tensor computed_;
};

}  // namespace tandem
