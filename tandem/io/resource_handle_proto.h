#pragma once

#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem::io {

/// A resource handle (a scalar tensor of DType::kResource) as a serialized
/// tensorflow.ResourceHandleProto: the names of its device, container and resource, what kind it
/// is, and the dtype and shape of what it holds. The resource itself stays where it is.
///
/// Throws InvalidArgumentError for what is no scalar handle or refers to nothing.
TANDEM_EXPORT std::string write_resource_handle(const Tensor& handle);

/// The handle that the bytes name, of a resource of the thread's current runtime or session
/// (RuntimeScope). It keeps the resource alive, as every handle does.
///
/// Throws DataLossError if the bytes are no ResourceHandleProto; NotFoundError if there is no such
/// device, or no resource of that name (those of an ended session, and anonymous ones, which only
/// their handles keep, are not found); InvalidArgumentError if what has the name is of another kind
/// or dtype.
TANDEM_EXPORT Tensor read_resource_handle(std::string_view bytes);

}  // namespace tandem::io
