#pragma once

#include <cstdint>

namespace tandem::data {

/// How many threads pay for a stage whose threads wait more than they compute. The cores set no
/// limit then, but what they wait for does: a disk, a server, a lock. So they are doubled step by
/// step, and after each step it counts whether more elements came; else they go back to as many as
/// these are worth, and it is tried again after a while, a longer one each time.
class ThreadTrial {
 public:
  /// The most threads that the stage should have now; to be asked at each look at the figures, when
  /// `seconds` have passed since the last one and `made` elements were made ever.
  int most(int threads, unsigned made, double seconds);

 private:
  int threads_ = 0;     // while this was counted:
  unsigned made_ = 0;   // elements before
  double seconds_ = 0;  // since then
  double pace_ = 0;     // elements a second; 0: too few to measure
  int fewer_ = 0;       // threads before the last step; 0: it is judged
  double slower_ = 0;   // the pace then
  int worth_ = 0;       // threads; 0: unknown
  int rest_ = 0;        // looks until it is tried again
  int next_rest_ = 2;   // after the next step that does not pay
};

}  // namespace tandem::data
