#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/runtime/profiler.h"

namespace tandem {

struct RecordedNode;
class StepRecorder;

struct profiler::Profile::Data {
  std::shared_ptr<const StepRecorder> names;  ///< what the events' views and `nodes` point into
  std::vector<Track> tracks;
  std::vector<std::string> kinds;  ///< by track: the kind of device that costs are filed under
  std::vector<Event> events;
  std::vector<const RecordedNode*> nodes;  ///< by event; null for eager calls and all but kernels
                                           ///< and copies
  std::uint64_t dropped = 0;
  double seconds = 0;
  std::int64_t wall_start_ns = 0;
};

}  // namespace tandem
