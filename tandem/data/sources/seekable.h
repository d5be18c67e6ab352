#pragma once

#include <cstdint>

#include "tandem/data/dataset_base.h"

namespace tandem::data {

/// A pass that may go on at any later place without making the elements before it.
class Seekable {
 public:
  virtual ~Seekable() = default;
  virtual bool knows_places() const { return true; }
  /// Passes over the next `count` elements; returns how many there were.
  virtual std::int64_t skip(std::int64_t count) = 0;
};

/// Null if it knows none.
inline Seekable* known_places(IteratorBase& pass) {
  auto* known = dynamic_cast<Seekable*>(&pass);
  return known && known->knows_places() ? known : nullptr;
}

}  // namespace tandem::data
