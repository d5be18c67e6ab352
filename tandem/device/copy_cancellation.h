#pragma once

#include <functional>

#include "tandem/core/export.h"

namespace tandem {

/// Says whether work has been cancelled; asked now and then, from any thread.
using Cancelled = std::function<bool()>;

/// How backends learn what may cancel a copy that makes no progress: `of_this_thread` is called
/// by the thread that enqueues it, and may give null. One for the process.
TANDEM_EXPORT void set_copy_cancellation(Cancelled (*of_this_thread)());
/// What it gives now; null if nothing was set.
TANDEM_EXPORT Cancelled copy_cancellation();

}  // namespace tandem
