#pragma once

#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/variable.h"

namespace tandem {

/// How a variable that is made of components is read.
enum class VariableAggregation {
  kMirrored,  ///< all hold the same value: the component here
  kSum,       ///< the sum of the components, added when it is read
  kMean,      ///< their mean
  kOnRead,    ///< no aggregation: each place reads its own component, which may differ
};

/// A variable of one component on each of several devices, of one dtype and shape: what strategies
/// make. The result is a Variable like any other, and goes where one goes (layers, optimizers,
/// tapes, functions):
///
///     td::Variable w = td::make_distributed_variable(
///         {on_gpu_0, on_gpu_1}, td::VariableAggregation::kMirrored);
///
/// "Here" is the component whose device the innermost DeviceScope names, else the first one.
/// - Read: as `aggregation` says. Sum and mean are computed where the reader runs.
/// - assign: every component gets the value; a kSum variable's get it divided by their number, so
///   that reading gives the value again, a kOnRead variable's only the component here.
/// - assign_add, assign_sub: every component of a kMirrored variable, else the component here
/// alone.
/// - handle(), and so tapes and optimizers: the component here.
/// - name, dtype, shape, trainable: the first component's.
///
/// Throws InvalidArgumentError for no components, undefined ones, those that are made of components
/// themselves, or of different dtypes or shapes; for integers with kMean.
TANDEM_EXPORT Variable make_distributed_variable(std::vector<Variable> components,
                                                 VariableAggregation aggregation);

/// The components, first to last; the variable itself if it is a plain one.
TANDEM_EXPORT std::vector<Variable> components_of(const Variable& variable);
TANDEM_EXPORT bool is_distributed(const Variable& variable);

}  // namespace tandem
