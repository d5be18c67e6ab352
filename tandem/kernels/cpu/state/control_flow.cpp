#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

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

std::vector<Array> branch_args(const KernelContext& c) {
  std::vector<Array> args;
  for (int i = 1; i < c.num_inputs(); ++i) args.push_back(c.input(i));
  return args;
}

const Function& branch_of_if(const KernelContext& c) {
  return *c.attr<FunctionRef>(is_true(c.input(0)) ? "then_branch" : "else_branch");
}

// An index outside of the list means the last branch.
const Function& branch_of_case(const KernelContext& c) {
  const auto& branches = c.attr<std::vector<FunctionRef>>("branches");
  if (c.input(0).rank() != 0) {
    throw InvalidArgumentError(
        cat("branch_index must be scalar, but has shape ", c.input(0).shape(), "."));
  }
  if (branches.empty()) throw InvalidArgumentError("Case needs at least one branch.");
  const std::int32_t index = is_computed(c.input(0)) ? *c.input(0).data<std::int32_t>() : 0;
  const bool inside = index >= 0 && static_cast<std::size_t>(index) < branches.size();
  return *(inside ? branches[static_cast<std::size_t>(index)] : branches.back());
}

template <const Function& (*choose)(const KernelContext&)>
void branch_kernel(KernelContext& c) {
  set_results(c, c.functions().run(choose(c), branch_args(c), c));
}

template <const Function& (*choose)(const KernelContext&)>
void branch_kernel_async(KernelContext& c, KernelDone done) {
  c.functions().run_async(
      choose(c), branch_args(c), c,
      [&c, done = std::move(done)](std::exception_ptr error, std::vector<Array> results) {
        if (!error) set_results(c, std::move(results));
        done(std::move(error));
      });
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

std::vector<Array> inputs_of(const KernelContext& c) {
  std::vector<Array> values;
  for (int i = 0; i < c.num_inputs(); ++i) values.push_back(c.input(i));
  return values;
}

// Whether a loop of so many trips goes on, by its condition's value on the host.
bool goes_on(const KernelContext& c, const Function& condition, const Array& value,
             std::int64_t trips) {
  constexpr std::int64_t kMaxUnmaterialized = 1000;
  if (!is_true(value)) return false;
  if (trips >= kMaxUnmaterialized && !is_computed(value) && !counts(condition)) {
    throw FailedPreconditionError(
        cat("The loop ran ", trips, " iterations on ", c.device().name(),
            ", but its condition was not computed and never ends it: it depends on values of a "
            "device that does not compute. State its number of iterations with "
            "WhileOptions::maximum_iterations."));
  }
  return true;
}

void while_kernel(KernelContext& c) {
  const Function& condition = *c.attr<FunctionRef>("cond");
  const Function& body = *c.attr<FunctionRef>("body");
  std::vector<Array> state = inputs_of(c);
  for (std::int64_t trips = 0;; ++trips) {
    if (c.cancellation()) c.cancellation()->check();
    const Array value = copy_to_host_unchecked(c.functions().run(condition, state, c).at(0));
    if (!goes_on(c, condition, value, trips)) break;
    // Moved in, so that the body may write over what it is the last to read.
    state = c.functions().run(body, std::move(state), c);
  }
  set_results(c, std::move(state));
}

// A While that no thread waits for. What calls back before the call that it answers has returned is
// taken up by the thread that made the call, in a loop: an iteration takes no stack.
class AsyncWhile : public std::enable_shared_from_this<AsyncWhile> {
 public:
  AsyncWhile(KernelContext& c, KernelDone done)
      : c_(c),
        condition_(*c.attr<FunctionRef>("cond")),
        body_(*c.attr<FunctionRef>("body")),
        state_(inputs_of(c)),
        done_(std::move(done)) {}

  void run() {
    do {
      answered_.store(false, std::memory_order_relaxed);
      if (!next()) return;
    } while (answered_.exchange(true, std::memory_order_acq_rel));
  }

 private:
  enum class At { kCondition, kCopy, kBody };

  // Takes up the last answer and makes the next call; false when the loop is over.
  bool next() {
    try {
      if (error_) std::rethrow_exception(error_);
      if (!begun_ || at_ == At::kBody) {
        if (c_.cancellation()) c_.cancellation()->check();
        if (begun_) state_ = std::move(results_);
        begun_ = true;
        at_ = At::kCondition;
        c_.functions().run_async(condition_, state_, c_, answer());
        return true;
      }
      if (at_ == At::kCondition) {
        at_ = At::kCopy;
        c_.functions().copy_to_host_async(
            std::move(results_.at(0)),
            [self = shared_from_this()](std::exception_ptr error, Array value) {
              std::vector<Array> values;
              values.push_back(std::move(value));
              self->take(std::move(error), std::move(values));
            });
        return true;
      }
      if (goes_on(c_, condition_, results_.at(0), trips_++)) {
        at_ = At::kBody;
        // Moved in, so that the body may write over what it is the last to read.
        c_.functions().run_async(body_, std::move(state_), c_, answer());
        return true;
      }
      set_results(c_, std::move(state_));
    } catch (...) {
      done_(std::current_exception());
      return false;
    }
    done_(nullptr);
    return false;
  }

  FunctionRunner::Done answer() {
    return [self = shared_from_this()](std::exception_ptr error, std::vector<Array> results) {
      self->take(std::move(error), std::move(results));
    };
  }

  void take(std::exception_ptr error, std::vector<Array> results) {
    error_ = std::move(error);
    results_ = std::move(results);
    if (answered_.exchange(true, std::memory_order_acq_rel)) run();
  }

  KernelContext& c_;
  const Function& condition_;
  const Function& body_;
  std::vector<Array> state_;
  std::vector<Array> results_;
  std::exception_ptr error_;
  const KernelDone done_;
  At at_ = At::kCondition;
  bool begun_ = false;
  std::int64_t trips_ = 0;
  std::atomic<bool> answered_{false};
};

void while_kernel_async(KernelContext& c, KernelDone done) {
  std::make_shared<AsyncWhile>(c, std::move(done))->run();
}

void to_bool(KernelContext& c) {
  *c.allocate_output(0, Shape{}).data<bool>() = is_true(c.input(0));
}

const KernelRegistration kToBool{{.op = "ToBool", .run = to_bool}};
const KernelRegistration kIf{{.op = "If",
                              .run = branch_kernel<branch_of_if>,
                              .run_async = branch_kernel_async<branch_of_if>}};
const KernelRegistration kStatelessIf{{.op = "StatelessIf",
                                       .run = branch_kernel<branch_of_if>,
                                       .run_async = branch_kernel_async<branch_of_if>}};
const KernelRegistration kCase{{.op = "Case",
                                .run = branch_kernel<branch_of_case>,
                                .run_async = branch_kernel_async<branch_of_case>}};
const KernelRegistration kStatelessCase{{.op = "StatelessCase",
                                         .run = branch_kernel<branch_of_case>,
                                         .run_async = branch_kernel_async<branch_of_case>}};
const KernelRegistration kWhile{
    {.op = "While", .run = while_kernel, .run_async = while_kernel_async}};
const KernelRegistration kStatelessWhile{
    {.op = "StatelessWhile", .run = while_kernel, .run_async = while_kernel_async}};

}  // namespace
}  // namespace tandem
