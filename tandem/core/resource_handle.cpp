#include "tandem/core/resource_handle.h"

#include "tandem/core/error.h"

namespace tandem {

Resource::~Resource() = default;

void ResourceHandle::throw_retired() const {
  throw FailedPreconditionError(
      cat("The handle of ", info_ && !info_->type.empty() ? info_->type : std::string("resource"),
          " '", info_ ? info_->container : std::string(), "/", info_ ? info_->name : std::string(),
          "' belongs to a session that has ended. Make the resource in the session that uses it."));
}

const ResourceInfo& ResourceHandle::info() const {
  if (!info_)
    throw FailedPreconditionError("An empty resource handle was used; it names no resource.");
  return *info_;
}

}  // namespace tandem
