#include "tandem/kernels/cuda/cudnn/convolution_plan.h"

#include <utility>

namespace tandem::cuda {
namespace {

// By which the addresses of tensors are given.
constexpr std::int64_t kX = 1, kFilter = 2, kY = 3, kBias = 4, kAddend = 5, kFirstVirtual = 10;

cudnnDataType_t data_type(Type type) {
  switch (type) {
    case Type::kHalf: return CUDNN_DATA_HALF;
    case Type::kBFloat16: return CUDNN_DATA_BFLOAT16;
    default: return CUDNN_DATA_FLOAT;
  }
}

const char* name_of(Type type) {
  switch (type) {
    case Type::kHalf: return "half";
    case Type::kBFloat16: return "bfloat16";
    default: return "float";
  }
}

const char* name_of(ConvolutionPart part) {
  switch (part) {
    case ConvolutionPart::kInputGradient: return "input gradient";
    case ConvolutionPart::kFilterGradient: return "filter gradient";
    case ConvolutionPart::kForward: break;
  }
  return "forward";
}

std::string text_of(const std::array<std::int64_t, 3>& of_axes) {
  return std::to_string(of_axes[0]) + 'x' + std::to_string(of_axes[1]) + 'x' +
         std::to_string(of_axes[2]);
}

// cuDNN's dimensions are batch, channels, axes; in memory the channels come last or second.
std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& sizes, bool channels_last) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  if (channels_last) {
    strides[1] = 1;
    stride = sizes[1];
  }
  for (std::size_t i = sizes.size(); i-- > 2;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  if (!channels_last) {
    strides[1] = stride;
    stride *= sizes[1];
  }
  strides[0] = stride;
  return strides;
}

}  // namespace

std::string ConvolutionProblem::text() const {
  std::string text = std::string("convolution ") + name_of(part) + ' ' + name_of(type);
  if (tensor_float_32) text += " tf32";
  text += channels_last ? " channels last " : " channels first ";
  text += std::to_string(batch) + " of " + text_of(x) + 'x' + std::to_string(in) + " to " +
          text_of(y) + 'x' + std::to_string(out) + " window " + text_of(window) + 'x' +
          std::to_string(filter_in) + " stride " + text_of(stride) + " dilation " +
          text_of(dilation) + " pad " + text_of(pad);
  if (has_bias) text += " bias";
  if (has_addend) text += " addend";
  if (activation != Activation::kNone)
    text += " activation " + std::to_string(static_cast<int>(activation));
  text += " alignment " + std::to_string(alignment);
  return deterministic ? text + " deterministic" : text;
}

// ---- The graph ----

ConvolutionGraph::ConvolutionGraph(cudnnHandle_t handle, const ConvolutionProblem& problem)
    : problem_(problem), graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  std::vector<std::pair<cudnnPointwiseMode_t, const Descriptor*>> following;
  parts_.reserve(32);  // operations refer to what lies here
  if (problem.has_bias) {
    std::vector<std::int64_t> sizes(problem.volumes ? 5 : 4, 1);
    sizes[1] = problem.out;
    parts_.push_back(tensor(kBias, sizes, strides_of(sizes, true), false));
    following.emplace_back(CUDNN_POINTWISE_ADD, &parts_.back());
  }
  if (problem.has_addend) {
    parts_.push_back(y_like(kAddend, false));
    following.emplace_back(CUDNN_POINTWISE_ADD, &parts_.back());
  }
  if (problem.activation == Activation::kRelu)
    following.emplace_back(CUDNN_POINTWISE_RELU_FWD, nullptr);
  if (problem.activation == Activation::kGeluTanh)
    following.emplace_back(CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, nullptr);
  std::int64_t result = following.empty() ? kY : kFirstVirtual;
  add_convolution(result);
  for (std::size_t i = 0; i < following.size(); ++i) {
    const std::int64_t next = i + 1 == following.size() ? kY : result + 1;
    add_pointwise(following[i].first, result, following[i].second, next);
    result = next;
  }
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle)
      .set_all(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  supported_ = graph_.finalize_if_supported();
}

std::vector<std::int64_t> ConvolutionGraph::spatial(
    const std::array<std::int64_t, 3>& of_axes) const {
  return {of_axes.begin() + (problem_.volumes ? 0 : 1), of_axes.end()};
}

Descriptor ConvolutionGraph::tensor(std::int64_t id, const std::vector<std::int64_t>& sizes,
                                    const std::vector<std::int64_t>& strides,
                                    bool is_virtual) const {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  // What is between two operations stays as sums are.
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, is_virtual ? CUDNN_DATA_FLOAT : data_type(problem_.type))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(sizes))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span(strides))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, problem_.alignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual)
      .finalize();
  return made;
}

Descriptor ConvolutionGraph::y_like(std::int64_t id, bool is_virtual) const {
  std::vector<std::int64_t> sizes{problem_.batch, problem_.out};
  for (const std::int64_t size : spatial(problem_.y)) sizes.push_back(size);
  return tensor(id, sizes, strides_of(sizes, problem_.channels_last), is_virtual);
}

void ConvolutionGraph::add_convolution(std::int64_t result) {
  const std::vector<std::int64_t> pad = spatial(problem_.pad);
  const std::vector<std::int64_t> dilation = spatial(problem_.dilation);
  const std::vector<std::int64_t> stride = spatial(problem_.stride);
  Descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(pad.size()))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span(dilation))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span(stride))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span(pad))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span(pad))
      .finalize();
  std::vector<std::int64_t> x{problem_.batch, problem_.in},
      filter{problem_.out, problem_.filter_in};
  for (const std::int64_t size : spatial(problem_.x)) x.push_back(size);
  for (const std::int64_t size : spatial(problem_.window)) filter.push_back(size);
  Descriptor x_tensor = tensor(kX, x, strides_of(x, problem_.channels_last), false);
  Descriptor filter_tensor =
      tensor(kFilter, filter, strides_of(filter, problem_.channels_last), false);
  Descriptor y_tensor = y_like(result, result != kY);

  // Names of the attributes by part: alpha, beta, the window, and the three tensors.
  struct Names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t alpha, beta, window, x, filter, y;
  };
  constexpr Names kNames[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
  const Names& names = kNames[static_cast<std::size_t>(problem_.part)];
  Descriptor operation(names.operation);
  operation.set(names.alpha, 1.0f)
      .set(names.beta, 0.0f)
      .set(names.window, window)
      .set(names.x, x_tensor)
      .set(names.filter, filter_tensor)
      .set(names.y, y_tensor)
      .finalize();
  operations_.push_back(std::move(operation));
  for (Descriptor* part : {&window, &x_tensor, &filter_tensor, &y_tensor})
    parts_.push_back(std::move(*part));
}

void ConvolutionGraph::add_pointwise(cudnnPointwiseMode_t mode, std::int64_t from,
                                     const Descriptor* with, std::int64_t to) {
  Descriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.set(CUDNN_ATTR_POINTWISE_MODE, mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT)
      .finalize();
  Descriptor x = y_like(from, true), y = y_like(to, to != kY);
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (with) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *with);
  operation.finalize();
  operations_.push_back(std::move(operation));
  for (Descriptor* part : {&pointwise, &x, &y}) parts_.push_back(std::move(*part));
}

// ---- The plan ----

ConvolutionPlan::ConvolutionPlan(std::shared_ptr<CudnnHandle> handle,
                                 std::shared_ptr<const ConvolutionGraph> graph, Descriptor engine,
                                 Descriptor plan, const ConvolutionProblem& problem)
    : handle_(std::move(handle)),
      graph_(std::move(graph)),
      engine_(std::move(engine)),
      plan_(std::move(plan)),
      has_bias_(problem.has_bias),
      has_addend_(problem.has_addend),
      workspace_bytes_(
          static_cast<std::size_t>(plan_.get_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE))) {}

void ConvolutionPlan::issue(CUstream stream, void* const* values) const {
  execute(stream, *static_cast<const ConvolutionAddresses*>(values[0]));
}

void ConvolutionPlan::execute(CUstream stream, const ConvolutionAddresses& at) const {
  std::vector<std::int64_t> ids{kX, kFilter, kY};
  std::vector<void*> pointers{at.x, at.filter, at.y};
  if (has_bias_) {
    ids.push_back(kBias);
    pointers.push_back(const_cast<void*>(at.bias));
  }
  if (has_addend_) {
    ids.push_back(kAddend);
    pointers.push_back(const_cast<void*>(at.addend));
  }
  void* const workspace[] = {at.workspace};
  Descriptor variants(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  variants.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids))
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(pointers))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span<void* const>(workspace))
      .finalize();
  std::lock_guard lock(handle_->mutex);
  check(cudnn().p_cudnnSetStream(handle_->handle, stream), "cudnnSetStream");
  check(cudnn().p_cudnnBackendExecute(handle_->handle, plan_.handle(), variants.handle()),
        "cudnnBackendExecute");
}

}  // namespace tandem::cuda
