#pragma once

#include <string>

#include "tandem/core/array.h"

namespace tandem::distribute {

/// The rows of `value` that an int64 vector names, in its order. Throws InvalidArgumentError, with
/// the variable's name, for an index that is no vector of int64 or beyond the rows.
Array gather_rows(const Array& value, const Array& index, const std::string& name);

/// Throws it as `gather_rows` does.
void check_row_index(const Array& value, const Array& index, const std::string& name);

}  // namespace tandem::distribute
