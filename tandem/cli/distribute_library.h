#pragma once

#include "tandem/distribute/commands.h"

namespace tandem::cli {

/// The library of clusters, opened at the first call. Throws UnimplementedError if this build, or
/// this installation, has none.
const distribute::Commands& distribute_library();

}  // namespace tandem::cli
