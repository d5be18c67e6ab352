#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace tandem::keras::internal {

/// Two seeds for a stateless random op: from the seed given, else the next from
/// td::random::set_seed, else fresh ones that differ from run to run.
std::array<std::int64_t, 2> draw_seeds(std::optional<std::int64_t> seed = {});

}  // namespace tandem::keras::internal
