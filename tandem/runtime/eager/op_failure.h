#pragma once

#include <exception>
#include <span>
#include <string>

#include "tandem/graph/op_def.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

class KernelContext;
class Node;

/// `error` with a line naming the op and what it was given: "[Op:MatMul] inputs: float[2,3],
/// float[2,3]".
std::exception_ptr op_failure(const OpDef& op, std::span<const Tensor> inputs,
                              const std::exception_ptr& error);
/// Throws the exception being handled so.
[[noreturn]] void throw_op_failure(const OpDef& op, std::span<const Tensor> inputs);

/// `error` with a line naming the node, what it was given, and where the user made it.
std::exception_ptr node_failure(const Node& node, const KernelContext& context,
                                std::exception_ptr error = std::current_exception());

}  // namespace tandem
