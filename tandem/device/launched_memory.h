#pragma once

#include "tandem/core/buffer.h"
#include "tandem/core/export.h"

namespace tandem {

/// Keeps memory until the piece of work that the calling thread launches on a device is over there:
/// kernels that were launched use it, and others, who share it, may let go of it before. Elsewhere
/// nothing is kept.
TANDEM_EXPORT void keep_until_over(Ref<Buffer> buffer);

}  // namespace tandem
