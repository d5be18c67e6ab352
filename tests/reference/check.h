#pragma once

#include <string>
#include <vector>

#include "tests/reference/adapter.h"
#include "tests/reference/case.h"

namespace reference {

/// Runs a case through the adapter and compares the outputs, variables, gradients or the error that
/// are stored of it. Returns what is wrong, empty if nothing. Never throws: an exception is one
/// more thing that is wrong.
std::vector<std::string> check(const Case& c, Mode mode);

}  // namespace reference
