#pragma once

#include <string>
#include <vector>

#include "tests/reference/case.h"

namespace reference {

/// Compares what the shape function says, for inputs known to different degrees, with the outputs
/// and with TensorFlow's shape function: it must never contradict the outputs, and know at least
/// what TensorFlow's knows from the ranks on.
std::vector<std::string> check_shapes(const Case& c);

}  // namespace reference
