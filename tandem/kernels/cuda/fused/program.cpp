#include "tandem/kernels/cuda/fused/program.h"

#include <algorithm>

namespace tandem::cuda {
namespace {

struct Fusible {
  const char* op;
  const char* function;
  int elements;
};

constexpr Fusible kFusible[] = {
#define TANDEM_CUDA_FUSIBLE(OP, FUNCTION, ELEMENTS) {OP, #FUNCTION, ELEMENTS},
#include "tandem/kernels/cuda/elementwise/fusible.inc"
#undef TANDEM_CUDA_FUSIBLE
};

const Fusible& fusible(const std::string& op) {
  for (const Fusible& one : kFusible) {
    if (op == one.op) return one;
  }
  not_on_gpu("op " + op + " cannot be part of a generated kernel");
}

}  // namespace

FusedProgram FusedProgram::read(const std::vector<std::string>& ops, const Sizes& operands,
                                int num_inputs, const Sizes& results) {
  FusedProgram program;
  program.num_inputs = num_inputs;
  // The attributes number results of ops from -1 down.
  const auto value_of = [&](std::int64_t number, std::size_t ops_before) {
    const bool is_input = number >= 0 && number < num_inputs;
    const bool is_result = number < 0 && -1 - number < static_cast<std::int64_t>(ops_before);
    if (!is_input && !is_result) refuse("there is no operand " + std::to_string(number));
    return static_cast<int>(is_input ? number : num_inputs - 1 - number);
  };
  std::size_t next = 0;
  const auto take = [&] {
    if (next == operands.size()) refuse("`operands` is too short for `ops`");
    return operands[next++];
  };
  for (std::size_t k = 0; k < ops.size(); ++k) {
    const Fusible& op = fusible(ops[k]);
    FusedProgram::Step step{op.function, op.elements, {}};
    const std::int64_t count = take();
    for (std::int64_t i = 0; i < count; ++i) step.operands.push_back(value_of(take(), k));
    if (step.operands.empty() || (op.elements == 1 && step.operands.size() > 1)) {
      refuse("op " + ops[k] + " does not take " + std::to_string(count) + " operands");
    }
    program.steps.push_back(std::move(step));
  }
  if (program.steps.empty()) refuse("`ops` must name an op at least");
  if (next != operands.size()) refuse("`operands` is too long for `ops`");
  for (const std::int64_t number : results) {
    program.results.push_back(value_of(number, ops.size()));
  }
  if (results.empty()) program.results.push_back(num_inputs + static_cast<int>(ops.size()) - 1);
  return program;
}

}  // namespace tandem::cuda
