#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "tandem/kernels/cuda/support/host_model.h"

// CUDA's words for the execution model on the host. Only support/device_code.h includes this.

#define threadIdx (::tandem::cuda::host::place().thread)
#define blockIdx (::tandem::cuda::host::place().block)
#define blockDim (::tandem::cuda::host::place().block_size)
#define gridDim (::tandem::cuda::host::place().grid_size)
#define __syncthreads() ::tandem::cuda::host::block_barrier()
#define __restrict__ __restrict

using dim3 = ::tandem::cuda::host::Dim3;

namespace tandem::cuda::host {

/// One element of shared memory: reads and writes are logged.
template <class T>
class SharedElement {
 public:
  SharedElement(T& value, AccessLog& log, const char* name, std::size_t index)
      : value_(value), log_(log), name_(name), index_(index) {}
  operator T() const {
    log_.read(name_, index_);
    return value_;
  }
  SharedElement& operator=(T value) {
    log_.write(name_, index_);
    value_ = value;
    return *this;
  }
  SharedElement& operator=(const SharedElement& other) { return *this = static_cast<T>(other); }
  SharedElement& operator+=(T value) { return *this = static_cast<T>(*this) + value; }
  /// For atomic operations.
  T& atomically() {
    log_.atomic(name_, index_);
    return value_;
  }

 private:
  T& value_;
  AccessLog& log_;
  const char* name_;
  std::size_t index_;
};

/// A __shared__ array. Blocks run one after the other, so one for each thread of the host serves.
template <class T, std::size_t N>
class SharedArray {
 public:
  explicit SharedArray(const char* name) : name_(name) {}
  SharedElement<T> operator[](std::size_t index) {
    if (index >= N) out_of_bounds(index, N);
    return {values_[index], log_, name_, index};
  }

 private:
  [[noreturn]] void out_of_bounds(std::size_t index, std::size_t size) const {
    throw KernelFault("Index " + std::to_string(index) + " of shared memory " + name_ +
                      ", which has " + std::to_string(size) + " elements.");
  }
  const char* name_;
  T values_[N] = {};
  AccessLog log_;
};

/// The block's dynamic shared memory as elements of one type.
template <class T>
class DynamicShared {
 public:
  explicit DynamicShared(const char* name) : name_(name) {}
  SharedElement<T> operator[](std::size_t index) {
    return {reinterpret_cast<T*>(dynamic_shared())[index], log_, name_, index};
  }

 private:
  const char* name_;
  AccessLog log_;
};

}  // namespace tandem::cuda::host
