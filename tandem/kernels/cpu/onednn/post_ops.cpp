#include "tandem/kernels/cpu/onednn/post_ops.h"

#include <cstring>

namespace tandem::cpu::onednn {

dnnl::primitive_attr epilogue_attr(const Epilogue& e) {
  dnnl::post_ops ops;
  if (e.addend) ops.append_sum(1.0f);
  const auto append = [&](dnnl::algorithm algorithm, float a, float b) {
#if DNNL_VERSION_MAJOR >= 3
    ops.append_eltwise(algorithm, a, b);
#else
    ops.append_eltwise(1.0f, algorithm, a, b);
#endif
  };
  switch (e.activation) {
    case Activation::kNone: break;
    case Activation::kRelu: append(dnnl::algorithm::eltwise_relu, 0, 0); break;
    case Activation::kRelu6: append(dnnl::algorithm::eltwise_clip, 0, 6); break;
    case Activation::kElu: append(dnnl::algorithm::eltwise_elu, 1, 0); break;
    case Activation::kLeakyRelu: append(dnnl::algorithm::eltwise_relu, e.alpha, 0); break;
    case Activation::kTanh: append(dnnl::algorithm::eltwise_tanh, 0, 0); break;
    case Activation::kSigmoid: append(dnnl::algorithm::eltwise_logistic, 0, 0); break;
    case Activation::kGelu: append(dnnl::algorithm::eltwise_gelu_erf, 0, 0); break;
    case Activation::kGeluTanh: append(dnnl::algorithm::eltwise_gelu_tanh, 0, 0); break;
    case Activation::kSwish: append(dnnl::algorithm::eltwise_swish, 1, 0); break;
  }
  dnnl::primitive_attr attr = user_scratch();
  attr.set_post_ops(ops);
  return attr;
}

std::int64_t epilogue_kind(const Epilogue& e) {
  return static_cast<std::int64_t>(e.activation) * 4 + (e.bias ? 1 : 0) + (e.addend ? 2 : 0);
}

std::int64_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace tandem::cpu::onednn
