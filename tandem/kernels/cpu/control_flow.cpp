#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/device/memory_space.h"
#include "tandem/graph/function.h"
#include "tandem/graph/kernel.h"

namespace tandem {
namespace {

template <class T>
bool nonzero(const Array& a) {
  return *a.data<T>() != T{};
}

// TensorFlow's rule: a scalar number counts if it is not zero, a scalar string or a tensor if it is
// not empty.
bool is_true(const Array& a) {
  if (a.rank() != 0) return a.num_elements() != 0;
  switch (a.dtype()) {
    case DType::kBool: return *a.data<bool>();
    case DType::kFloat: return nonzero<float>(a);
    case DType::kDouble: return nonzero<double>(a);
    case DType::kInt8: return nonzero<std::int8_t>(a);
    case DType::kInt16: return nonzero<std::int16_t>(a);
    case DType::kInt32: return nonzero<std::int32_t>(a);
    case DType::kInt64: return nonzero<std::int64_t>(a);
    case DType::kUint8: return nonzero<std::uint8_t>(a);
    case DType::kString: return !a.data<std::string>()->empty();
    default:
      throw InvalidArgumentError(
          cat("A value of dtype ", a.dtype(), " cannot serve as a condition."));
  }
}

void if_kernel(KernelContext& c) {
  const auto& branch = c.attr<FunctionRef>(is_true(c.input(0)) ? "then_branch" : "else_branch");
  std::vector<Array> args;
  for (int i = 1; i < c.num_inputs(); ++i) args.push_back(c.input(i));
  std::vector<Array> results = c.functions().run(*branch, std::move(args), c);
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, std::move(results.at(static_cast<std::size_t>(i))));
}

// An index outside of the list means the last branch.
void case_kernel(KernelContext& c) {
  const auto& branches = c.attr<std::vector<FunctionRef>>("branches");
  if (c.input(0).rank() != 0) {
    throw InvalidArgumentError(
        cat("branch_index must be scalar, but has shape ", c.input(0).shape(), "."));
  }
  if (branches.empty()) throw InvalidArgumentError("Case needs at least one branch.");
  const std::int32_t index = *c.input(0).data<std::int32_t>();
  const bool inside = index >= 0 && static_cast<std::size_t>(index) < branches.size();
  const FunctionRef& branch = inside ? branches[static_cast<std::size_t>(index)] : branches.back();
  std::vector<Array> args;
  for (int i = 1; i < c.num_inputs(); ++i) args.push_back(c.input(i));
  std::vector<Array> results = c.functions().run(*branch, std::move(args), c);
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, std::move(results.at(static_cast<std::size_t>(i))));
}

void while_kernel(KernelContext& c) {
  const Function& condition = *c.attr<FunctionRef>("cond");
  const Function& body = *c.attr<FunctionRef>("body");
  std::vector<Array> state;
  for (int i = 0; i < c.num_inputs(); ++i) state.push_back(c.input(i));
  constexpr std::int64_t kMostUncomputed = 1000;
  for (std::int64_t trips = 0;; ++trips) {
    if (c.cancellation()) c.cancellation()->check();
    if (trips > kMostUncomputed && !c.device().properties().computes) {
      throw FailedPreconditionError(
          cat("The loop has gone round ", trips, " times on ", c.device().name(),
              ", which does not compute, so a condition on floats never ends it. State how often "
              "it goes round with WhileOptions::maximum_iterations."));
    }
    const std::vector<Array> go_on = c.functions().run(condition, state, c);
    if (!is_true(copy_to_host(go_on.at(0)))) break;
    // Moved in, so that the body may write over what it is the last to read.
    state = c.functions().run(body, std::move(state), c);
  }
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, std::move(state.at(static_cast<std::size_t>(i))));
}

const KernelRegistration kIf{{.op = "If", .run = if_kernel}};
const KernelRegistration kStatelessIf{{.op = "StatelessIf", .run = if_kernel}};
const KernelRegistration kCase{{.op = "Case", .run = case_kernel}};
const KernelRegistration kStatelessCase{{.op = "StatelessCase", .run = case_kernel}};
const KernelRegistration kWhile{{.op = "While", .run = while_kernel}};
const KernelRegistration kStatelessWhile{{.op = "StatelessWhile", .run = while_kernel}};

}  // namespace
}  // namespace tandem
