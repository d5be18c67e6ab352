#pragma once

#include "tandem/core/attr.h"
#include "tandem/runtime/tensor.h"

// Calls of variable ops with attributes that the caller keeps.

namespace tandem::internal {

/// The name by which TensorFlow asks for a resource that nothing else can find.
inline constexpr const char* kAnonymousResource = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

Tensor make_variable_handle(const AttrMap& attrs);
Tensor read_variable(const Tensor& handle, const AttrMap& attrs);
void assign_variable(const Tensor& handle, Tensor value, const AttrMap& attrs);

}  // namespace tandem::internal
