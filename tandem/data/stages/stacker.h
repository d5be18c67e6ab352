#pragma once

#include <cstdint>
#include <span>
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
  /// For elements whose dtypes and shapes are known before the first is there.
  void prepare(const ElementSpec& spec);
  /// Sets `places`, one a component, to where the next element's may be made, and to undefined
  /// arrays where there is no place to give. False before the first element unless that has been
  /// prepared for.
  bool next_row(std::span<Array> places);
  /// Adds arrays; what was made in its place is not copied.
  void add(std::span<const Array> arrays);
  /// The batch, of `size()` > 0 rows; the stacker is empty afterwards.
  void finish(Element& out);

 private:
  struct Component {
    Array rows;
    Shape row_shape;
    std::int64_t row_elements = 0;
  };
  void begin(std::vector<Component> components);
  void grow();
  template <class ArrayAt>
  void add(std::size_t count, ArrayAt array_at);

  std::int64_t limit_;
  std::int64_t capacity_ = 0;
  std::int64_t size_ = 0;
  std::vector<Component> components_;
};

}  // namespace tandem::data
