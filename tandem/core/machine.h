#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"

namespace tandem {

/// What this process may use of the machine it runs on.
struct ResourceLimits {
  /// Bytes: those of the machine, or fewer where a control group (a container's) says so.
  std::uint64_t memory = 0;
  /// Logical processors that the calling thread may run on (sched_getaffinity), or fewer, rounded
  /// up, where a control group limits processor time. At least 1.
  int processors = 1;
  /// Which of them are a control group's.
  bool memory_from_cgroup = false, processors_of_group = false;
};

/// The limits as they were when first asked for. Thread-safe.
TANDEM_EXPORT const ResourceLimits& machine_limits();

/// The limits as they are now: the files of control groups of either version are read, those of
/// the groups around the process's own too. What cannot be read limits nothing. `root` stands
/// before the paths of /proc and /sys; `processors`, if not 0, are those of the machine.
///
/// Source of the files' names and formats: Linux, Documentation/admin-guide/cgroup-v2.rst and
/// cgroup-v1/memory.rst, scheduler/sched-bwc.rst.
TANDEM_EXPORT ResourceLimits read_resource_limits(const std::string& root = "", int processors = 0);

}  // namespace tandem
