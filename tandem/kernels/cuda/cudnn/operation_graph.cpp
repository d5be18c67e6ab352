#include "tandem/kernels/cuda/cudnn/operation_graph.h"

#include <utility>

namespace tandem::cuda {

cudnnDataType_t data_type_of(Type type) {
  switch (type) {
    case Type::kHalf: return CUDNN_DATA_HALF;
    case Type::kBFloat16: return CUDNN_DATA_BFLOAT16;
    default: return CUDNN_DATA_FLOAT;
  }
}

OperationGraph::OperationGraph(std::int64_t alignment)
    : alignment_(alignment), graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {}

const Descriptor& OperationGraph::keep(Descriptor part) {
  return parts_.emplace_back(std::move(part));
}

const Descriptor& OperationGraph::add(const GraphTensor& tensor) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, tensor.type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(tensor.sizes))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span(tensor.strides))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment_)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.is_virtual)
      .finalize();
  if (!tensor.is_virtual) operands_.push_back(tensor.id);
  return keep(std::move(made));
}

const Descriptor& OperationGraph::add_number(std::int64_t id, std::size_t axes, float value) {
  const std::vector<std::int64_t> ones(axes, 1);
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(ones))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span(ones))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, static_cast<std::int64_t>(sizeof(float)))
      .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true)
      .finalize();
  number_id_ = id;
  number_ = value;
  return keep(std::move(made));
}

void OperationGraph::add_pointwise(cudnnPointwiseMode_t mode, const Descriptor& x,
                                   const Descriptor* with, const Descriptor& y) {
  Descriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.set(CUDNN_ATTR_POINTWISE_MODE, mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT)
      .finalize();
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(std::move(pointwise)))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (with) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *with);
  operation.finalize();
  add_operation(std::move(operation));
}

void OperationGraph::add_matmul(const Descriptor& a, const Descriptor& b, const Descriptor& c) {
  Descriptor matmul(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  matmul.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c)
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, keep(std::move(matmul)))
      .finalize();
  add_operation(std::move(operation));
}

void OperationGraph::add_reduction(cudnnReduceTensorOp_t op, const Descriptor& x,
                                   const Descriptor& y) {
  Descriptor reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_REDUCTION_OPERATOR, op)
      .finalize();
  Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, keep(std::move(reduction)))
      .finalize();
  add_operation(std::move(operation));
}

void OperationGraph::finish(cudnnHandle_t handle) {
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle)
      .set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  supported_ = graph_.finalize_if_supported();
}

}  // namespace tandem::cuda
