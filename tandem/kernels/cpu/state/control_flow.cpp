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
// What was not computed counts as true; of booleans that is so already (device_kernel.h), and what
// was combined with others of them is as these say.
bool is_true(const Array& a) {
  if (a.rank() != 0) return a.num_elements() != 0;
  if (!is_computed(a) && a.dtype() != DType::kBool) return true;
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

void set_results(KernelContext& c, std::vector<Array> results) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, std::move(results.at(static_cast<std::size_t>(i))));
  }
}

void if_kernel(KernelContext& c) {
  const auto& branch = c.attr<FunctionRef>(is_true(c.input(0)) ? "then_branch" : "else_branch");
  std::vector<Array> args;
  for (int i = 1; i < c.num_inputs(); ++i) args.push_back(c.input(i));
  set_results(c, c.functions().run(*branch, std::move(args), c));
}

// An index outside of the list means the last branch.
void case_kernel(KernelContext& c) {
  const auto& branches = c.attr<std::vector<FunctionRef>>("branches");
  if (c.input(0).rank() != 0) {
    throw InvalidArgumentError(
        cat("branch_index must be scalar, but has shape ", c.input(0).shape(), "."));
  }
  if (branches.empty()) throw InvalidArgumentError("Case needs at least one branch.");
  const std::int32_t index = is_computed(c.input(0)) ? *c.input(0).data<std::int32_t>() : 0;
  const bool inside = index >= 0 && static_cast<std::size_t>(index) < branches.size();
  const FunctionRef& branch = inside ? branches[static_cast<std::size_t>(index)] : branches.back();
  std::vector<Array> args;
  for (int i = 1; i < c.num_inputs(); ++i) args.push_back(c.input(i));
  set_results(c, c.functions().run(*branch, std::move(args), c));
}

// True for `i < n && …` of integers, which td::while_loop makes of maximum_iterations.
bool counts(const Function& condition) {
  const Node& result = *condition.results().at(0).node;
  if (result.op().name != "LogicalAnd") return false;
  const auto compares_integers = [](const Output& side) {
    const std::string& op = side.node->op().name;
    if (op != "Less" && op != "LessEqual") return false;
    const Output counter = side.node->inputs()[0];
    return is_integer(counter.node->output_dtype(counter.index));
  };
  return std::any_of(result.inputs().begin(), result.inputs().end(), compares_integers);
}

void while_kernel(KernelContext& c) {
  const Function& condition = *c.attr<FunctionRef>("cond");
  const Function& body = *c.attr<FunctionRef>("body");
  std::vector<Array> state;
  for (int i = 0; i < c.num_inputs(); ++i) state.push_back(c.input(i));
  constexpr std::int64_t kMaxUnmaterialized = 1000;
  for (std::int64_t trips = 0;; ++trips) {
    if (c.cancellation()) c.cancellation()->check();
    const Array go_on = copy_to_host_unchecked(c.functions().run(condition, state, c).at(0));
    if (!is_true(go_on)) break;
    if (trips >= kMaxUnmaterialized && !is_computed(go_on) && !counts(condition)) {
      throw FailedPreconditionError(cat(
          "The loop ran ", trips, " iterations on ", c.device().name(),
          "; its condition was not computed and never ends it, because it depends on values of a "
          "device that does not compute. State the number of iterations with "
          "WhileOptions::maximum_iterations."));
    }
    // Moved in, so that the body may write over what it is the last to read.
    state = c.functions().run(body, std::move(state), c);
  }
  set_results(c, std::move(state));
}

void to_bool(KernelContext& c) {
  *c.allocate_output(0, Shape{}).data<bool>() = is_true(c.input(0));
}

const KernelRegistration kToBool{{.op = "ToBool", .run = to_bool}};
const KernelRegistration kIf{{.op = "If", .run = if_kernel}};
const KernelRegistration kStatelessIf{{.op = "StatelessIf", .run = if_kernel}};
const KernelRegistration kCase{{.op = "Case", .run = case_kernel}};
const KernelRegistration kStatelessCase{{.op = "StatelessCase", .run = case_kernel}};
const KernelRegistration kWhile{{.op = "While", .run = while_kernel}};
const KernelRegistration kStatelessWhile{{.op = "StatelessWhile", .run = while_kernel}};

}  // namespace
}  // namespace tandem
