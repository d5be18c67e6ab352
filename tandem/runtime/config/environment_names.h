#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// True for the environment variables that Tandem reads: the one list of them is behind this.
bool is_known_variable(std::string_view name);

struct UnknownVariable {
  std::string name;
  std::string nearest;  ///< the known one that is meant, perhaps; empty if none is near
};
/// The names in the environment that begin with TANDEM_ and have no meaning. TANDEM_TEST_…
/// and TANDEM_BENCH_… belong to tests and benches.
TANDEM_EXPORT std::vector<UnknownVariable> unknown_variables();

/// Reports them in one line on stderr, once in a process.
void warn_of_unknown_variables();

}  // namespace tandem
