#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Which axes a reduction works on: all of them (the default), one, a list, or an integer tensor of
/// axes.
///
/// Negative axes count from the end. An empty list reduces nothing:
/// `td::Axes(std::vector<std::int64_t>{})`.
class TANDEM_EXPORT Axes {
 public:
  Axes() = default;  ///< all axes
  Axes(int axis) : list_(std::vector<std::int64_t>{axis}) {}
  Axes(bool) = delete;
  Axes(std::int64_t axis) : list_(std::vector<std::int64_t>{axis}) {}
  Axes(std::initializer_list<std::int64_t> axes) : list_(std::vector<std::int64_t>(axes)) {}
  Axes(std::vector<std::int64_t> axes) : list_(std::move(axes)) {}
  Axes(Tensor axes) : tensor_(std::move(axes)) {}

  /// True if every axis is meant.
  bool all() const { return !list_ && !tensor_.defined(); }
  /// The axes if they are known without looking at a tensor.
  const std::optional<std::vector<std::int64_t>>& list() const { return list_; }
  /// The integer tensor that the ops take: int32, and for all axes of an unknown rank computed from
  /// `x`.
  Tensor to_tensor(const Tensor& x) const;

 private:
  std::optional<std::vector<std::int64_t>> list_;
  Tensor tensor_;
};

}  // namespace tandem
