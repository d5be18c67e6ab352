#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tandem/runtime/saving.h"

namespace tandem::train::internal {

/// When values are checked: all before the first is taken, or each group as it is read.
enum class Check : unsigned char { kAllFirst, kEachGroup };

/// Reads the values of keys from a checkpoint at `prefix`, and gives them to `take` in their order:
/// take(i, value) of keys[i]. With kAllFirst nothing is taken unless all of them are whole.
///
/// Many bytes come in groups, so that the memory which one group replaces serves the next.
/// Therefore they are checked first, in a pass of its own over what the system then has in its
/// cache; from a store, which would send everything twice, all is read before any is taken. One
/// pass over all into fresh memory takes as long as both, since the system clears such memory, and
/// needs twice the memory (2 GB on two processors: 0.47 s either way where that memory was in use
/// before, and seconds where it was not).
void read_in_groups(const ObjectCheckpoint& file, const std::string& prefix,
                    const std::vector<std::string>& keys, Check check,
                    const std::function<void(std::size_t, Tensor)>& take);

}  // namespace tandem::train::internal
