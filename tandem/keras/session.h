#pragma once

#include <cstdint>

#include "tandem/core/export.h"

namespace tandem::keras {

/// Restarts the numbering of automatic names: the next Dense is "dense" again, not "dense_7".
TANDEM_EXPORT void clear_session();

/// Keras' older place of it.
namespace backend {
using keras::clear_session;
}

namespace utils {
/// Everything random from here on (initial weights, dropout, shuffling in fit) follows from `seed`.
/// Equal to td::random::set_seed.
TANDEM_EXPORT void set_random_seed(std::int64_t seed);
}  // namespace utils

}  // namespace tandem::keras
