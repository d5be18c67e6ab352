#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/array.h"

namespace tandem::distribute {

/// The rows of a variable that a step looks up: each is pulled once, and its gradients are summed.
class RowLookup {
 public:
  /// `index` is int32 or int64 of any shape (InvalidArgumentError otherwise).
  explicit RowLookup(const Array& index);

  /// The rows in [begin, end), ascending, less `begin`.
  Array rows_of(std::int64_t begin, std::int64_t end) const;
  /// What the lookup has as its result, of the rows in ascending order, given in parts.
  Array expand(const std::vector<Array>& parts, const std::string& name) const;
  /// The sums, by row, of gradients of that result.
  Array sum(const Array& gradients) const;

 private:
  Shape shape_;                     // of the index
  std::vector<std::int64_t> rows_;  // ascending
  Array positions_;                 // of each element of the index, among these
};

}  // namespace tandem::distribute
