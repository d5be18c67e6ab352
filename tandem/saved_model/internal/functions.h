#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tandem/graph/function.h"
#include "tandem/graph/table_resource.h"
#include "tandem/io/internal/body_export.h"

namespace tandem::saved_model::internal {

/// A function that calls another with its arguments and results in another order: argument i of the
/// other is `args[i]` of this one (those that are missing follow in their order), result i of this
/// one is `results[i]` of the other.
FunctionRef reordered(const FunctionRef& function, const std::vector<std::size_t>& args,
                      const std::vector<std::size_t>& results, const std::string& name);

/// The gradient of an exported call as TensorFlow calls it: of the gradients of the results and of
/// the inputs of the call (of which the latter are of no use), then inputs, outputs and captured
/// tensors.
FunctionRef gradient_function(const io::ExportedGradient& gradient);

/// A function that makes a table like this one, found by `shared_name`.
FunctionRef table_creator(const TableResource& table, const TableResource::Contents& contents,
                          const std::string& shared_name);
/// A function that takes the table and fills it.
FunctionRef table_initializer(const TableResource::Contents& contents);
/// A function that does nothing, returning a number, as those that destroy tables.
FunctionRef empty_function(const std::string& name);

}  // namespace tandem::saved_model::internal
