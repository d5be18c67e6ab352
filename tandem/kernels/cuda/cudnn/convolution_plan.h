#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/device/cuda/internal/library_call.h"
#include "tandem/kernels/cuda/cudnn/convolve.h"
#include "tandem/kernels/cuda/cudnn/descriptor.h"

namespace tandem::cuda {

/// All that the choice of an engine for a convolution depends on, on one kind of GPU.
struct ConvolutionProblem {
  ConvolutionPart part;
  Type type;
  bool channels_last, volumes, has_bias, has_addend;
  Activation activation;
  bool tensor_float_32, deterministic;
  std::int64_t batch, in, out, filter_in;
  std::array<std::int64_t, 3> x, y, window, stride, dilation, pad;
  std::int64_t alignment;  ///< in bytes, of all operands

  auto operator<=>(const ConvolutionProblem&) const = default;
  /// "convolution forward float 32x56x56x64 …"
  std::string text() const;
};

/// A handle of the library's, which serves one thread at a time.
struct CudnnHandle {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
};

/// The operands' addresses, which are the parameters of the call in this order.
struct ConvolutionAddresses {
  void* x = nullptr;
  void* filter = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;
  const void* addend = nullptr;
  void* workspace = nullptr;
};

/// A convolution as a graph of cuDNN's operations: the convolution and what follows it.
class ConvolutionGraph {
 public:
  /// Throws Failure.
  ConvolutionGraph(cudnnHandle_t handle, const ConvolutionProblem& problem);

  /// False if cuDNN does not know graphs of this form.
  bool supported() const { return supported_; }
  const Descriptor& descriptor() const { return graph_; }

 private:
  Descriptor tensor(std::int64_t id, const std::vector<std::int64_t>& sizes,
                    const std::vector<std::int64_t>& strides, bool is_virtual) const;
  Descriptor y_like(std::int64_t id, bool is_virtual) const;
  void add_convolution(std::int64_t result);
  void add_pointwise(cudnnPointwiseMode_t mode, std::int64_t from, const Descriptor* with,
                     std::int64_t to);
  std::vector<std::int64_t> spatial(const std::array<std::int64_t, 3>& of_axes) const;

  const ConvolutionProblem problem_;
  std::vector<Descriptor> parts_, operations_;
  Descriptor graph_;
  bool supported_ = false;
};

/// A convolution with its engine chosen.
class ConvolutionPlan final : public LibraryCall {
 public:
  ConvolutionPlan(std::shared_ptr<CudnnHandle> handle,
                  std::shared_ptr<const ConvolutionGraph> graph, Descriptor engine, Descriptor plan,
                  const ConvolutionProblem& problem);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  void issue(CUstream stream, void* const* values) const override;
  void execute(CUstream stream, const ConvolutionAddresses& at) const;

 private:
  const std::shared_ptr<CudnnHandle> handle_;
  const std::shared_ptr<const ConvolutionGraph> graph_;  // the plan may refer to it
  const Descriptor engine_, plan_;
  const bool has_bias_, has_addend_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace tandem::cuda
