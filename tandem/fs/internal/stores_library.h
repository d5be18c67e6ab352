#pragma once

#include <string_view>

#include "tandem/fs/file_system.h"
#include "tandem/fs/io_scope.h"
#include "tandem/fs/stores.h"

namespace tandem::fs {

/// What libtandem_stores.so exports as `tandem_stores_make`: makes a store, owned by the caller,
/// which obeys the cancellations that `current` gives. `tandem_stores_build_id` beside it returns
/// what kStoresBuildId was when it was built.
using MakeStore = FileSystem* (*)(std::string_view scheme, const StoreOptions& options,
                                  IoScope::Source current);

}  // namespace tandem::fs
