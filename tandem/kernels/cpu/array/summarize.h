#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/array.h"

namespace tandem::cpu {

/// A value as TensorFlow's tf.print shows it: nested brackets, of every axis only `ends` elements
/// at both ends (all if negative).
std::string summarize(const Array& value, std::int64_t ends);

/// The first `most` elements (all if negative) as Assert and the old Print show them.
std::string summarize_flat(const Array& value, std::int64_t most);

}  // namespace tandem::cpu
