#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/data/dataset.h"

namespace tandem::data {

/// The 8x8 handwritten digits of `path` (gzip-compressed text: 64 pixels 0 to 16 and a label 0 to 9
/// a line) as elements {image, label}: float [8,8,1] with values 0 to 1, and int32. In an order
/// fixed by `seed`, so that `auto [train, test] = td::data::digits(path).split(0.8);` gives the
/// same halves in every run.
///
/// Throws NotFoundError if there is no such file, DataLossError naming file and line if its text is
/// something else.
TANDEM_EXPORT Dataset digits(const String& path, std::int64_t seed = 1);

}  // namespace tandem::data
