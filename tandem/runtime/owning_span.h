#pragma once

#include <span>
#include <utility>

#include "tandem/core/array.h"

namespace tandem::internal {

// A span with a share of the buffer it shows: what data() of a temporary tensor gives, so that
// `for (float v : td::sqrt(x).data<float>())` reads memory that is still there. Turned into a plain
// std::span it keeps nothing.
template <class T>
class OwningSpan : public std::span<const T> {
 public:
  explicit OwningSpan(Array array)
      : std::span<const T>(array.values<T>()), array_(std::move(array)) {}

 private:
  Array array_;
};

}  // namespace tandem::internal
