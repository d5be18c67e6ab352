#include "tandem/placement/internal/memory_peak.h"

#include <algorithm>

namespace tandem::placement {

double peak_of(std::vector<MemoryChange>& changes) {
  std::sort(changes.begin(), changes.end(), [](const MemoryChange& a, const MemoryChange& b) {
    return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
  });
  double now = 0;
  double peak = 0;
  for (const MemoryChange& change : changes) {
    now += change.bytes;
    peak = std::max(peak, now);
  }
  return peak;
}

}  // namespace tandem::placement
