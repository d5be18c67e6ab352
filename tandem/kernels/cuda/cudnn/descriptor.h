#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tandem/kernels/cuda/cudnn/cudnn.h"

namespace tandem::cuda {

/// A descriptor of cuDNN's graph interface: made, given attributes, finalized, then read. Functions
/// throw Failure unless they say otherwise.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  cudnnBackendDescriptor_t handle() const { return handle_; }

  Descriptor& set(cudnnBackendAttributeName_t name, std::int64_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  Descriptor& set(cudnnBackendAttributeName_t name, float value);
  Descriptor& set(cudnnBackendAttributeName_t name, bool value);
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnReduceTensorOp_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<void* const> pointers);
  /// Descriptors in a list.
  Descriptor& set_all(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& values);
  Descriptor& finalize();
  /// False if the library has no way to do what the descriptor says.
  bool finalize_if_supported();

  std::int64_t get_int(cudnnBackendAttributeName_t name) const;
  std::vector<cudnnBackendNumericalNote_t> get_notes() const;
  /// Fills descriptors that were made for it; says how many there are.
  std::size_t get_all(cudnnBackendAttributeName_t name, std::vector<Descriptor>& values) const;

 private:
  Descriptor& set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      std::size_t count, const void* elements);

  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace tandem::cuda
