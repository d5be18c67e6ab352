#include "tandem/cli/machine_memory.h"

#include <iomanip>
#include <sstream>

#include "tandem/core/error.h"
#include "tandem/core/machine.h"

namespace tandem::cli {

void check_fits(const std::string& what, double bytes, const std::string& advice) {
  const ResourceLimits& limits = machine_limits();
  const double machine = static_cast<double>(limits.memory);
  if (bytes <= machine) return;
  std::ostringstream sizes;
  sizes << std::fixed << std::setprecision(1) << bytes / 1e9 << " GB, more than the "
        << machine / 1e9 << " GB of this " << (limits.memory_from_cgroup ? "container" : "machine");
  throw ResourceExhaustedError(cat(what, " would take ", sizes.str(), ". ", advice));
}

}  // namespace tandem::cli
