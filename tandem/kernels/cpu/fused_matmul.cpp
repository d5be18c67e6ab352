// _FusedMatMul: checks, and the fused ops by name.

#include "tandem/kernels/cpu/onednn/fused_matmul.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"

namespace tandem::cpu {
namespace {

bool read_activation(const std::string& name, Activation& activation) {
  static constexpr std::pair<const char*, Activation> kNames[] = {
      {"Relu", Activation::kRelu}, {"Relu6", Activation::kRelu6},
      {"Elu", Activation::kElu},   {"LeakyRelu", Activation::kLeakyRelu},
      {"Tanh", Activation::kTanh}, {"Sigmoid", Activation::kSigmoid}};
  for (const auto& [known, value] : kNames) {
    if (name == known) {
      activation = value;
      return true;
    }
  }
  return false;
}

float activated(Activation activation, float alpha, float x) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return std::max(x, 0.0f);
    case Activation::kRelu6: return std::min(std::max(x, 0.0f), 6.0f);
    case Activation::kElu: return x < 0 ? std::expm1(x) : x;
    case Activation::kLeakyRelu: return x < 0 ? alpha * x : x;
    case Activation::kTanh: return std::tanh(x);
    case Activation::kSigmoid: return 1 / (1 + std::exp(-x));
  }
  return x;
}

void fused_matmul(KernelContext& c) {
  const Array &a = c.input(0), &b = c.input(1);
  if (a.rank() != 2 || b.rank() != 2) {
    throw InvalidArgumentError(
        cat("a and b must be matrices, but have shapes ", a.shape(), " and ", b.shape()));
  }
  onednn::FusedMatMul w;
  w.transpose_a = c.attr<bool>("transpose_a");
  w.transpose_b = c.attr<bool>("transpose_b");
  w.m = a.shape()[w.transpose_a ? 1 : 0];
  w.k = a.shape()[w.transpose_a ? 0 : 1];
  w.n = b.shape()[w.transpose_b ? 0 : 1];
  w.alpha = c.attr<float>("leakyrelu_alpha");
  if (b.shape()[w.transpose_b ? 1 : 0] != w.k) {
    throw InvalidArgumentError(
        cat("Matrix size-incompatible: In[0]: ", a.shape(), ", In[1]: ", b.shape()));
  }
  const auto& fused = c.attr<std::vector<std::string>>("fused_ops");
  std::size_t next = 0;
  if (fused.empty() || fused[next++] != "BiasAdd") {
    throw UnimplementedError("A fused product begins with BiasAdd.");
  }
  if (next < fused.size() && fused[next] == "Add") {
    w.adds = true;
    ++next;
  }
  if (next < fused.size() && read_activation(fused[next], w.activation)) ++next;
  if (next != fused.size()) {
    throw UnimplementedError(cat("Products are not fused with ", fused[next], " in this place."));
  }
  if (c.num_inputs() != (w.adds ? 4 : 3)) {
    throw InvalidArgumentError(cat("The fused ops take ", w.adds ? 2 : 1, " further inputs, not ",
                                   c.num_inputs() - 2, "."));
  }
  const Array& bias = c.input(2);
  if (bias.rank() != 1 || bias.shape()[0] != w.n) {
    throw InvalidArgumentError(cat("The bias must have shape [", w.n, "], not ", bias.shape()));
  }
  const Shape shape{w.m, w.n};
  if (w.adds && !(c.input(3).shape() == shape)) {
    throw InvalidArgumentError(
        cat("What is added must have shape ", shape, ", not ", c.input(3).shape()));
  }
  Array& out = c.allocate_output(0, shape);
  float* to = out.data<float>();
  if (out.num_elements() == 0) return;
  if (w.adds) std::copy_n(c.input(3).data<float>(), out.num_elements(), to);
  if (w.k == 0) {
    for (std::int64_t i = 0; i < out.num_elements(); ++i) {
      const float sum = bias.data<float>()[i % w.n] + (w.adds ? to[i] : 0.0f);
      to[i] = activated(w.activation, w.alpha, sum);
    }
    return;
  }
  onednn::fused_matmul(c, w, a.data<float>(), b.data<float>(), bias.data<float>(), to);
}

const KernelRegistration kFusedMatMul{{.op = "_FusedMatMul",
                                       .name = "oneDNN",
                                       .types = {{"T", {DType::kFloat}}},
                                       .run = fused_matmul}};

}  // namespace
}  // namespace tandem::cpu
