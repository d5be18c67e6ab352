#pragma once

#include <string>

namespace tandem::cli {

/// Throws ResourceExhaustedError if `bytes` are more than the machine, or its container, has:
/// "`what` would take 8.0 GB, more than the 4.1 GB of this machine. `advice`". What is only
/// reserved would be found missing when it is too late to say so.
void check_fits(const std::string& what, double bytes, const std::string& advice);

}  // namespace tandem::cli
