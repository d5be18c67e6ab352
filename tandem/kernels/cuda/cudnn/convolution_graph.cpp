#include "tandem/kernels/cuda/cudnn/convolution_graph.h"

#include <optional>
#include <utility>
#include <vector>

namespace tandem::cuda {
namespace {

// By which the addresses of tensors are given.
constexpr std::int64_t kX = 1, kFilter = 2, kY = 3, kBias = 4, kAddend = 5, kFirstVirtual = 10;

using Sizes = std::vector<std::int64_t>;

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
Sizes strides_of(const Sizes& sizes, bool channels_last) {
  Sizes strides(sizes.size());
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

// What lies along the axes of places.
Sizes spatial(const ConvolutionProblem& p, const std::array<std::int64_t, 3>& of_axes) {
  return {of_axes.begin() + (p.volumes ? 0 : 1), of_axes.end()};
}

class Builder {
 public:
  explicit Builder(const ConvolutionProblem& problem) : p_(problem), graph_(problem.alignment) {}

  OperationGraph build(cudnnHandle_t handle) {
    const Descriptor& x = tensor(kX, p_.batch, p_.in, p_.x);
    const Descriptor& filter = tensor(kFilter, p_.out, p_.filter_in, p_.window);
    std::vector<std::pair<cudnnPointwiseMode_t, const Descriptor*>> following;
    if (p_.has_bias) {
      Sizes sizes(p_.volumes ? 5 : 4, 1);
      sizes[1] = p_.out;
      following.emplace_back(CUDNN_POINTWISE_ADD, &graph_.add({.id = kBias,
                                                               .sizes = sizes,
                                                               .strides = strides_of(sizes, true),
                                                               .type = data_type_of(p_.type)}));
    }
    if (p_.has_addend)
      following.emplace_back(CUDNN_POINTWISE_ADD, &tensor(kAddend, p_.batch, p_.out, p_.y));
    if (p_.activation == Activation::kRelu)
      following.emplace_back(CUDNN_POINTWISE_RELU_FWD, nullptr);
    if (p_.activation == Activation::kGeluTanh)
      following.emplace_back(CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, nullptr);
    std::int64_t next = kFirstVirtual;
    const auto result = [&](bool last) -> const Descriptor& {
      return tensor(last ? kY : next++, p_.batch, p_.out, p_.y, !last);
    };
    const Descriptor* y = &result(following.empty());
    add_convolution(x, filter, *y);
    for (std::size_t i = 0; i < following.size(); ++i) {
      const Descriptor* const to = &result(i + 1 == following.size());
      graph_.add_pointwise(following[i].first, *y, following[i].second, *to);
      y = to;
    }
    graph_.finish(handle);
    return std::move(graph_);
  }

 private:
  // What is between two operations stays as sums are.
  const Descriptor& tensor(std::int64_t id, std::int64_t batch, std::int64_t channels,
                           const std::array<std::int64_t, 3>& axes, bool is_virtual = false) {
    Sizes sizes{batch, channels};
    for (const std::int64_t size : spatial(p_, axes)) sizes.push_back(size);
    return graph_.add({.id = id,
                       .sizes = sizes,
                       .strides = strides_of(sizes, p_.channels_last),
                       .type = is_virtual ? CUDNN_DATA_FLOAT : data_type_of(p_.type),
                       .is_virtual = is_virtual});
  }

  void add_convolution(const Descriptor& x, const Descriptor& filter, const Descriptor& y) {
    const Sizes pad = spatial(p_, p_.pad), dilation = spatial(p_, p_.dilation);
    const Sizes stride = spatial(p_, p_.stride);
    Descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
        .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(pad.size()))
        .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span(dilation))
        .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span(stride))
        .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span(pad))
        .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span(pad))
        .finalize();
    const Names& names = kNames[static_cast<std::size_t>(p_.part)];
    Descriptor operation(names.operation);
    operation.set(names.alpha, 1.0f)
        .set(names.beta, 0.0f)
        .set(names.window, graph_.keep(std::move(window)))
        .set(names.x, x)
        .set(names.filter, filter)
        .set(names.y, y)
        .finalize();
    graph_.add_operation(std::move(operation));
  }

  // Names of the attributes by part: alpha, beta, the window, and the three tensors.
  struct Names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t alpha, beta, window, x, filter, y;
  };
  static constexpr Names kNames[] = {
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

  const ConvolutionProblem& p_;
  OperationGraph graph_;
};

}  // namespace

PlanRequest ConvolutionProblem::request() const {
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
  if (deterministic) text += " deterministic";
  return {.text = text,
          .exact = type == Type::kFloat && !tensor_float_32,
          .deterministic = deterministic};
}

std::shared_ptr<const OperationGraph> graph_of(cudnnHandle_t handle,
                                               const ConvolutionProblem& problem) {
  return std::make_shared<const OperationGraph>(Builder(problem).build(handle));
}

}  // namespace tandem::cuda
