#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "tandem/kernels/cuda/cudnn/descriptor.h"
#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

cudnnDataType_t data_type_of(Type type);

/// A tensor of a graph. Virtual ones are what is between two operations and in no memory.
struct GraphTensor {
  std::int64_t id = 0;
  std::vector<std::int64_t> sizes, strides;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool is_virtual = false;
};

/// A graph of cuDNN's operations: tensors and operations are added, then it is finished. Functions
/// throw Failure.
class OperationGraph {
 public:
  /// `alignment`: in bytes, of the tensors in memory.
  explicit OperationGraph(std::int64_t alignment);

  /// Tensors stay where they are as long as the graph. Those in memory are operands, in the order
  /// in which they are added.
  const Descriptor& add(const GraphTensor& tensor);
  /// A number that the host gives, for tensors with so many axes.
  const Descriptor& add_number(std::int64_t id, std::size_t axes, float value);
  /// What an operation refers to, already finalized.
  const Descriptor& keep(Descriptor part);
  void add_operation(Descriptor operation) { operations_.push_back(std::move(operation)); }
  /// y = mode(x, with).
  void add_pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* with,
                     const Descriptor& y);
  /// c = a b, for the last two axes.
  void add_matmul(const Descriptor& a, const Descriptor& b, const Descriptor& c);
  /// Along the axes that have one entry in y.
  void add_reduction(cudnnReduceTensorOp_t op, const Descriptor& x, const Descriptor& y);
  void finish(cudnnHandle_t handle);

  /// Once finished: false if cuDNN does not know graphs of this form.
  bool supported() const { return supported_; }
  const Descriptor& descriptor() const { return graph_; }
  /// The ids of the operands.
  const std::vector<std::int64_t>& operands() const { return operands_; }
  std::optional<std::int64_t> number_id() const { return number_id_; }
  const float& number() const { return number_; }

 private:
  const std::int64_t alignment_;
  std::deque<Descriptor> parts_;
  std::vector<Descriptor> operations_;
  std::vector<std::int64_t> operands_;
  std::optional<std::int64_t> number_id_;
  float number_ = 0;
  Descriptor graph_;
  bool supported_ = false;
};

}  // namespace tandem::cuda
