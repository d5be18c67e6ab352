#include "tandem/runtime/colocation_scope.h"

#include <string>

#include "tandem/core/resource_handle.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/trace.h"

namespace tandem {
namespace {

std::string device_of_value(const Tensor& tensor) {
  if (tensor.dtype() == DType::kResource && tensor.num_elements() == 1) {
    const ResourceHandle& handle = tensor.array().values<ResourceHandle>()[0];
    if (!handle.empty()) return handle.info().device;
  }
  return tensor.device();
}

}  // namespace

ColocationScope::ColocationScope(const Tensor& tensor) : trace_(thread_context().trace) {
  if (trace_) {
    trace_->begin_colocation(*trace_->resolve(tensor).node);
    device_.emplace("");
  } else {
    device_.emplace(device_of_value(tensor));
  }
}

ColocationScope::~ColocationScope() {
  if (trace_) trace_->end_colocation();
}

}  // namespace tandem
