#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/data/element.h"

namespace tandem::data {

/// How the elements of a batch are filled up to common sizes. Immutable; usable from any thread.
class Padding {
 public:
  /// Both lists are empty or have an entry for each component.
  Padding(std::vector<PartialShape> shapes, std::vector<Tensor> values);

  /// Throws InvalidArgumentError unless this can pad such elements.
  void check(const ElementSpec& spec) const;
  /// The spec of a batch of `rows` elements, which may be PartialShape::kUnknown.
  ElementSpec batch_spec(const ElementSpec& spec, std::int64_t rows) const;

  /// Joins at least one element along a new first axis. Sizes that are not given become `filled`,
  /// or the longest if that is negative. Throws InvalidArgumentError if the elements do not agree,
  /// DataLossError if one is larger than the size given for it; `misfit` is then that element's
  /// number.
  void join(std::span<const Element> elements, std::int64_t filled, Element& out,
            std::size_t& misfit) const;

 private:
  Shape row_shape(std::span<const Element> elements, std::size_t component, std::int64_t filled,
                  std::size_t& misfit) const;
  std::vector<PartialShape> shapes_;
  std::vector<Tensor> values_;
};

}  // namespace tandem::data
