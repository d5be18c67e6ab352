#pragma once

#include <cstddef>

#include "tests/plugin/cuda_stand_in.h"

namespace stand_in {

/// What a stream's thread works for.
struct Worker {
  int gpu = 0;
  unsigned stream = 0;
};
/// On the calling thread.
Worker& worker();

/// Something that a GPU does, for its duration.
class Activity {
 public:
  Activity(StandInActivity::Kind kind, std::size_t bytes, const char* name = nullptr);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

 private:
  void notify() const;
  StandInActivity activity_;
};

/// Has `seen` called for all of them; null: no more.
void observe(void (*seen)(const StandInActivity&));

}  // namespace stand_in
