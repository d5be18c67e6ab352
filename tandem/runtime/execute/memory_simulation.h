#pragma once

#include <cstddef>
#include <vector>

#include "tandem/core/array.h"

namespace tandem {

class Device;
class Function;

/// Bytes that a call will have at its peak beyond what is in use now, by device.
///
/// Follows the call's plans, and those of the functions, branches and loops in it, which are made
/// as the call would make them, but runs no kernel over values: they have shapes, memories and
/// lives, as the call's will, but no contents. Small numbers that follow from constants, such as a
/// loop's counter, and lists of values are real, so that a loop runs as many iterations as it will.
/// Simulates with these arguments, the first `outlines` of which only have the call's shapes.
std::vector<std::size_t> simulate_memory(const Function& function, const std::vector<Array>& args,
                                         std::size_t outlines, const Device& device);

}  // namespace tandem
