#include "tandem/core/resource_handle.h"

#include "tandem/core/error.h"

namespace tandem {

Resource::~Resource() = default;

const ResourceInfo& ResourceHandle::info() const {
  if (!info_)
    throw FailedPreconditionError("An empty resource handle was used; it names no resource.");
  return *info_;
}

}  // namespace tandem
