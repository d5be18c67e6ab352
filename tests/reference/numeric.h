#pragma once

#include <string>
#include <vector>

#include "tests/reference/case.h"

namespace reference {

/// The call with every float input made a double, and with `float` in its type attributes made
/// `double`.
Call in_double(const Call& call);

/// Compares the tape's gradients with central differences of Σ upstream·output: in double, or in
/// float where the case says so. Empty if they agree or the case cannot be checked like this, else
/// a text that says where they differ.
std::string numeric_difference(const Case& c);

}  // namespace reference
