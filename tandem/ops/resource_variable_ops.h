#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Variables by their handles, for code that makes graphs or optimizers; programs use td::Variable.

/// A handle of the variable of that name on the current device; one that nothing else can find if
/// the name is empty.
TANDEM_EXPORT Tensor variable_handle(DType dtype, const PartialShape& shape,
                                     const std::string& shared_name = "",
                                     const std::string& container = "");
TANDEM_EXPORT Tensor read_variable(Tensor handle, DType dtype);
TANDEM_EXPORT void assign_variable(Tensor handle, Tensor value);
TANDEM_EXPORT void assign_add_variable(Tensor handle, Tensor value);
TANDEM_EXPORT void assign_sub_variable(Tensor handle, Tensor value);
TANDEM_EXPORT Tensor variable_is_initialized(Tensor handle);
TANDEM_EXPORT Tensor variable_shape(Tensor handle, DType out_type = int32);
TANDEM_EXPORT void destroy_resource(Tensor handle, bool ignore_lookup_error = true);

/// Rows of a variable, without reading the rest: an embedding look-up.
TANDEM_EXPORT Tensor gather(const Variable& params, Tensor indices, std::int64_t batch_dims = 0);
/// Rows of a variable added to, taken from or replaced; equal indices act one after the other.
TANDEM_EXPORT void scatter_add(const Variable& ref, Tensor indices, Tensor updates);
TANDEM_EXPORT void scatter_sub(const Variable& ref, Tensor indices, Tensor updates);
TANDEM_EXPORT void scatter_update(const Variable& ref, Tensor indices, Tensor updates);

namespace nn {
/// Rows of a variable by number, of which the rest is not read: gather(params, ids).
TANDEM_EXPORT Tensor embedding_lookup(const Variable& params, const Tensor& ids);
}  // namespace nn

}  // namespace tandem
