#pragma once

#include <memory>

#include "tandem/core/cancellation.h"
#include "tandem/core/export.h"

namespace tandem {

/// How the runtime says what may end a copy that takes long: `of_this_thread` is called by the
/// thread that enqueues it, and may give null. One for the process.
TANDEM_EXPORT void set_copy_cancellation(std::shared_ptr<const Cancellation> (*of_this_thread)());
/// What it gives now; null if nothing was set.
TANDEM_EXPORT std::shared_ptr<const Cancellation> copy_cancellation();

}  // namespace tandem
