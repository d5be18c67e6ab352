#pragma once

#include <string>

#include "tandem/core/export.h"

namespace tandem {

/// What the calling thread adds where an undefined tensor is used: how one may have come about.
TANDEM_EXPORT std::string& undefined_tensor_hint();

}  // namespace tandem
