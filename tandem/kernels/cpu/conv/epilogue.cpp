#include "tandem/kernels/cpu/conv/epilogue.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/half.h"

namespace tandem::cpu {
namespace {

bool read_activation(const std::string& name, Activation& activation) {
  static constexpr std::pair<const char*, Activation> kNames[] = {
      {"Relu", Activation::kRelu},      {"Relu6", Activation::kRelu6},
      {"Elu", Activation::kElu},        {"LeakyRelu", Activation::kLeakyRelu},
      {"Tanh", Activation::kTanh},      {"Sigmoid", Activation::kSigmoid},
      {"GeluExact", Activation::kGelu}, {"GeluApproximate", Activation::kGeluTanh},
      {"Swish", Activation::kSwish}};
  for (const auto& [known, value] : kNames) {
    if (name == known) {
      activation = value;
      return true;
    }
  }
  return false;
}

float as_float(const Array& a, std::int64_t i) {
  return a.dtype() == DType::kFloat ? a.data<float>()[i]
                                    : static_cast<float>(a.data<BFloat16>()[i]);
}

}  // namespace

Epilogue read_epilogue(const KernelContext& c, int first_arg) {
  Epilogue e;
  e.alpha = c.attr<float>("leakyrelu_alpha");
  const auto& fused = c.attr<std::vector<std::string>>("fused_ops");
  std::size_t next = 0;
  int arg = first_arg;
  const auto take = [&](const char* op, const Array*& value) {
    if (next == fused.size() || fused[next] != op) return;
    ++next;
    if (arg < c.num_inputs()) value = &c.input(arg);
    ++arg;
  };
  take("BiasAdd", e.bias);
  take("Add", e.addend);
  if (next < fused.size() && read_activation(fused[next], e.activation)) ++next;
  if (next != fused.size()) {
    throw UnimplementedError(cat("Nothing is fused with ", fused[next], " in this place."));
  }
  if (arg != c.num_inputs()) {
    throw InvalidArgumentError(cat("The fused ops take ", arg - first_arg, " further inputs, not ",
                                   c.num_inputs() - first_arg, "."));
  }
  return e;
}

void check_bias(const Epilogue& e, std::int64_t channels) {
  if (e.bias && (e.bias->rank() != 1 || e.bias->shape()[0] != channels)) {
    throw InvalidArgumentError(
        cat("The bias must have shape [", channels, "], not ", e.bias->shape()));
  }
}

float activated(Activation activation, float alpha, float x) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return x < 0 ? 0.0f : x;
    case Activation::kRelu6: return x < 0 ? 0.0f : x > 6 ? 6.0f : x;
    case Activation::kElu: return x < 0 ? std::expm1(x) : x;
    case Activation::kLeakyRelu: return x < 0 ? alpha * x : x;
    case Activation::kTanh: return std::tanh(x);
    case Activation::kSigmoid: return 1 / (1 + std::exp(-x));
    case Activation::kGelu: return 0.5f * x * std::erfc(-x * 0.70710678f);
    case Activation::kGeluTanh:
      return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
    case Activation::kSwish: return x / (1 + std::exp(-x));
  }
  return x;
}

void apply_epilogue(KernelContext& c, const Epilogue& e, const Array& sums, std::int64_t channels,
                    Array& out) {
  const std::int64_t count = out.num_elements(), of_sums = sums.num_elements();
  const std::int64_t of_addend = e.addend ? e.addend->num_elements() : 0;
  c.intra_op().parallel_for(count, 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float x = as_float(sums, i % of_sums);
      if (e.bias) x += as_float(*e.bias, i % channels);
      if (e.addend) x += as_float(*e.addend, i % of_addend);
      x = activated(e.activation, e.alpha, x);
      if (out.dtype() == DType::kFloat) {
        out.data<float>()[i] = x;
      } else {
        out.data<BFloat16>()[i] = BFloat16(x);
      }
    }
  });
}

}  // namespace tandem::cpu
