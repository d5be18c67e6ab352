#pragma once

#include <vector>

namespace tandem::placement {

struct MemoryChange {
  double time;
  double bytes;  ///< negative when released
};

/// The most that is held at a time; sorts the changes. What is released in one moment is there
/// for what is taken in it.
double peak_of(std::vector<MemoryChange>& changes);

}  // namespace tandem::placement
