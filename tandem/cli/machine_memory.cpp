#include "tandem/cli/machine_memory.h"

#include <unistd.h>

#include <iomanip>
#include <sstream>

#include "tandem/core/error.h"

namespace tandem::cli {

void check_fits(const std::string& what, double bytes, const std::string& advice) {
  const double machine =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= machine) return;
  std::ostringstream sizes;
  sizes << std::fixed << std::setprecision(1) << bytes / 1e9 << " GB, more than the "
        << machine / 1e9 << " GB of this machine";
  throw ResourceExhaustedError(cat(what, " would take ", sizes.str(), ". ", advice));
}

}  // namespace tandem::cli
