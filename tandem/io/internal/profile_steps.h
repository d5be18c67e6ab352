#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/runtime/profiler.h"

namespace tandem::io {

struct ProfileStep {
  std::string name;
  std::int64_t number = 0;
  int track = 0;
  double begin = 0;  ///< seconds since the start
  double end = 0;
};

/// The steps of a profile, by their beginning: what ProfiledStep has marked, else the calls of the
/// function that took most of the time.
std::vector<ProfileStep> steps_of(const profiler::Profile& profile);
/// A scope that ProfiledStep made.
bool is_step_scope(const profiler::Event& event);

}  // namespace tandem::io
