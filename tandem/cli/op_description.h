#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/core/dtype.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_def.h"

namespace tandem::cli {

/// "(x: T, y: T) -> (z: T)".
std::string signature(const OpDef& op);
/// True if a gradient flows through the op.
bool has_gradient(const OpDef& op);

/// The dtypes of a set, by number.
std::vector<DType> members(const DTypeSet& set);
/// The set as declarations name it ("numbers", "half, float, double"), "any" if it is empty.
std::string type_set_text(const DTypeSet& set);

/// What the kernels of an op take, one kernel class after the other: "cpu: T numbers". "none"
/// without kernels.
std::string kernels_summary(const std::vector<const KernelDecl*>& kernels);
/// Each candidate on a line of its own, by kernel class and then the order in which they are tried.
std::string kernels_table(std::vector<const KernelDecl*> kernels);

nlohmann::ordered_json op_json(const OpDef& op, const std::vector<const KernelDecl*>& kernels);

}  // namespace tandem::cli
