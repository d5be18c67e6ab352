#include "tandem/kernels/cuda/linalg/epilogue.h"

#include <utility>

namespace tandem::cuda {
namespace {

constexpr std::pair<const char*, Activation> kNames[] = {
    {"Relu", Activation::kRelu},      {"Relu6", Activation::kRelu6},
    {"Elu", Activation::kElu},        {"LeakyRelu", Activation::kLeakyRelu},
    {"Tanh", Activation::kTanh},      {"Sigmoid", Activation::kSigmoid},
    {"GeluExact", Activation::kGelu}, {"GeluApproximate", Activation::kGeluTanh},
    {"Swish", Activation::kSwish}};

}  // namespace

Epilogue read_epilogue(const KernelCall& call, int first, std::int64_t& rows,
                       std::int64_t columns) {
  Epilogue e;
  e.alpha = call.attr_float("leakyrelu_alpha");
  const std::vector<std::string> fused = call.attr_strings("fused_ops");
  std::size_t next = 0;
  int arg = first;
  if (next < fused.size() && fused[next] == "BiasAdd") {
    ++next;
    const TensorView bias = call.input(arg++);
    if (bias.rank() != 1 || bias.count != columns)
      refuse("The bias must have shape [" + std::to_string(columns) + "]");
    e.bias = bias.data;
    e.float_bias = bias.type == Type::kFloat;
  }
  if (next < fused.size() && fused[next] == "Add") {
    ++next;
    const TensorView addend = call.input(arg++);
    if (addend.rank() == 0 || addend.sizes.back() != columns)
      refuse("Incompatible shapes (what is added)");
    const std::int64_t own = columns == 0 ? 0 : addend.count / columns;
    if (own != rows && own != 1 && rows != 1) refuse("Incompatible shapes (what is added)");
    e.addend = addend.data;
    e.addend_row = own == 1 ? 0 : columns;
    e.float_addend = addend.type == Type::kFloat;
    if (rows == 1) rows = own;
  }
  for (const auto& [name, activation] : kNames) {
    if (next >= fused.size() || fused[next] != name) continue;
    e.activation = activation;
    ++next;
    break;
  }
  if (next != fused.size()) not_on_gpu("nothing is fused with " + fused[next] + " in this place");
  if (arg != call.num_inputs()) refuse("The fused ops take another number of inputs");
  return e;
}

}  // namespace tandem::cuda
