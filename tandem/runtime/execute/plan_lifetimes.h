#pragma once

#include <cstdint>
#include <vector>

#include "tandem/runtime/execute/plan.h"

namespace tandem {

/// While a plan is made: slots that share memory form a group, found by its root.
struct Plan::Lifetimes {
  std::vector<int> root;
  std::vector<std::vector<int>> touched;    ///< by root: the steps that write or read the group
  std::vector<std::uint8_t> owned_outside;  ///< by root: in memory that is not the plan's to give,
                                            ///< as of arguments, constants, results, kept values
  std::vector<int> last_use;                ///< by slot: the last step to write or read it; or -1
};

}  // namespace tandem
