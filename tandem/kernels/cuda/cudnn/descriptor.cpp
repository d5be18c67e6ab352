#include "tandem/kernels/cuda/cudnn/descriptor.h"

#include "tandem/device/cuda/internal/failure.h"

namespace tandem::cuda {

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check(cudnn().p_cudnnBackendCreateDescriptor(type, &handle_), "cudnnBackendCreateDescriptor");
}

Descriptor::~Descriptor() {
  if (handle_) cudnn().p_cudnnBackendDestroyDescriptor(handle_);
}

Descriptor& Descriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                std::size_t count, const void* elements) {
  check(cudnn().p_cudnnBackendSetAttribute(handle_, name, type, static_cast<std::int64_t>(count),
                                           elements),
        "cudnnBackendSetAttribute");
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::int64_t value) {
  return set_raw(name, CUDNN_TYPE_INT64, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name,
                            std::span<const std::int64_t> values) {
  return set_raw(name, CUDNN_TYPE_INT64, values.size(), values.data());
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, float value) {
  return set_raw(name, CUDNN_TYPE_FLOAT, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, bool value) {
  return set_raw(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  return set_raw(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value) {
  return set_raw(name, CUDNN_TYPE_CONVOLUTION_MODE, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value) {
  return set_raw(name, CUDNN_TYPE_POINTWISE_MODE, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnReduceTensorOp_t value) {
  return set_raw(name, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value) {
  return set_raw(name, CUDNN_TYPE_HEUR_MODE, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
  return set_raw(name, CUDNN_TYPE_HANDLE, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  return set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<void* const> pointers) {
  return set_raw(name, CUDNN_TYPE_VOID_PTR, pointers.size(), pointers.data());
}
Descriptor& Descriptor::set_all(cudnnBackendAttributeName_t name,
                                const std::vector<Descriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor& value : values) handles.push_back(value.handle_);
  return set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, handles.size(), handles.data());
}

Descriptor& Descriptor::finalize() {
  check(cudnn().p_cudnnBackendFinalize(handle_), "cudnnBackendFinalize");
  return *this;
}

bool Descriptor::finalize_if_supported() {
  const cudnnStatus_t status = cudnn().p_cudnnBackendFinalize(handle_);
  if (is_unsupported(status)) return false;
  check(status, "cudnnBackendFinalize");
  return true;
}

std::int64_t Descriptor::get_int(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0, count = 0;
  check(cudnn().p_cudnnBackendGetAttribute(handle_, name, CUDNN_TYPE_INT64, 1, &count, &value),
        "cudnnBackendGetAttribute");
  return value;
}

std::vector<cudnnBackendNumericalNote_t> Descriptor::get_notes() const {
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  std::int64_t count = 0;
  check(cudnn().p_cudnnBackendGetAttribute(
            handle_, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
            static_cast<std::int64_t>(notes.size()), &count, notes.data()),
        "cudnnBackendGetAttribute");
  notes.resize(std::min(notes.size(), static_cast<std::size_t>(count)));
  return notes;
}

std::size_t Descriptor::get_all(cudnnBackendAttributeName_t name,
                                std::vector<Descriptor>& values) const {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor& value : values) handles.push_back(value.handle_);
  std::int64_t count = 0;
  check(cudnn().p_cudnnBackendGetAttribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                           static_cast<std::int64_t>(handles.size()), &count,
                                           handles.data()),
        "cudnnBackendGetAttribute");
  return std::min(values.size(), static_cast<std::size_t>(count));
}

}  // namespace tandem::cuda
