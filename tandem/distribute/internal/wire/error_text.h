#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace tandem::distribute {

/// The message as TensorFlow's clients look for nodes in it: lines that name one are
/// "\t [[{{node NAME}}]]", with what else we know of the node behind.
std::string with_node_lines(std::string_view message);

/// A failure of a task's part of a step: "From /job:worker/replica:0/task:1:\n…".
std::exception_ptr error_from_task(const std::exception_ptr& error, const std::string& task);

}  // namespace tandem::distribute
