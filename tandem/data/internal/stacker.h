#pragma once

#include <cstdint>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/data/element.h"

namespace tandem::data {

/// Joins elements along a new first axis: each is copied into its row as it arrives, and need not
/// be kept.
class Stacker {
 public:
  /// Prepares for at most `limit` elements.
  explicit Stacker(std::int64_t limit) : limit_(limit) {}

  std::int64_t size() const { return size_; }
  /// Throws InvalidArgumentError if components differ in number, dtype or shape from the first
  /// element's.
  void add(const Element& element);
  /// The batch, of `size()` > 0 rows; the stacker is empty afterwards.
  void finish(Element& out);

 private:
  struct Component {
    Array rows;
    Shape row_shape;
    std::int64_t row_elements = 0;
  };
  void begin(const Element& first);
  void grow();

  std::int64_t limit_;
  std::int64_t capacity_ = 0;
  std::int64_t size_ = 0;
  std::vector<Component> components_;
};

}  // namespace tandem::data
