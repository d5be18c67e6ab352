#include "tandem/ops/control_flow.h"

#include <algorithm>
#include <memory>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/functional_calls.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem::internal {
namespace {

void check_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const char* what,
                const char* first, const char* second) {
  if (a.size() != b.size()) {
    throw InvalidArgumentError(
        cat(what, ": ", first, " has ", a.size(), " tensors but ", second, " has ", b.size(), "."));
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype() != b[i].dtype()) {
      throw InvalidArgumentError(cat(what, ": tensor ", i, " is ", a[i].dtype(), " in ", first,
                                     " but ", b[i].dtype(), " in ", second,
                                     ". Use td::cast so that they agree."));
    }
  }
}

}  // namespace

std::vector<Tensor> flat_cond(const Tensor& pred, const FlatBranch& then_branch,
                              const FlatBranch& else_branch) {
  Trace* outer = thread_context().trace;
  if (!outer) return static_cast<bool>(pred) ? then_branch() : else_branch();
  const OpRegistry& ops = outer->ops();
  Trace then_trace(ops, "cond_true", outer), else_trace(ops, "cond_false", outer);
  std::vector<Tensor> then_results, else_results;
  {
    ThreadContextScope scope(tracing_context(then_trace));
    then_results = then_branch();
    for (const Tensor& t : then_results) then_trace.resolve(t);
  }
  // Both functions take the same arguments: what either captures, in one order.
  {
    ThreadContextScope scope(tracing_context(else_trace));
    for (const Tensor& t : then_trace.captures()) else_trace.resolve(t);
    else_results = else_branch();
    for (const Tensor& t : else_results) else_trace.resolve(t);
  }
  check_same(then_results, else_results, "td::cond", "the true branch", "the false branch");
  {
    ThreadContextScope scope(tracing_context(then_trace));
    for (const Tensor& t : else_trace.captures()) then_trace.resolve(t);
  }
  const std::vector<Tensor> inputs = else_trace.captures();
  const FunctionRef then_function = then_trace.finish(then_results);
  const FunctionRef else_function = else_trace.finish(else_results);
  return call_if(pred, inputs, then_function, else_function);
}

std::vector<Tensor> flat_switch_case(const Tensor& index, const std::vector<FlatBranch>& branches) {
  if (branches.empty()) throw InvalidArgumentError("td::switch_case needs at least one branch.");
  Trace* outer = thread_context().trace;
  if (!outer) {
    const std::int32_t at = index.item<std::int32_t>();
    const bool inside = at >= 0 && static_cast<std::size_t>(at) < branches.size();
    return inside ? branches[static_cast<std::size_t>(at)]() : branches.back()();
  }
  // All functions take the same arguments: each begins with the captures of the one before, and in
  // the end gets what the later ones captured.
  std::vector<std::unique_ptr<Trace>> traces;
  std::vector<std::vector<Tensor>> results;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    traces.push_back(std::make_unique<Trace>(outer->ops(), cat("case_", b), outer));
    ThreadContextScope scope(tracing_context(*traces[b]));
    if (b > 0) {
      for (const Tensor& t : traces[b - 1]->captures()) traces[b]->resolve(t);
    }
    results.push_back(branches[b]());
    for (const Tensor& t : results[b]) traces[b]->resolve(t);
    if (b > 0)
      check_same(results[0], results[b], "td::switch_case", "the first branch", "a later branch");
  }
  const std::vector<Tensor> inputs = traces.back()->captures();
  std::vector<FunctionRef> functions;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    {
      ThreadContextScope scope(tracing_context(*traces[b]));
      for (const Tensor& t : inputs) traces[b]->resolve(t);
    }
    functions.push_back(traces[b]->finish(results[b]));
  }
  return call_case(index, inputs, functions);
}

namespace {

std::vector<Tensor> eager_while(const std::function<Tensor(const std::vector<Tensor>&)>& condition,
                                const FlatStep& body, std::vector<Tensor> state,
                                const WhileOptions& options) {
  for (std::int64_t i = 0; options.maximum_iterations < 0 || i < options.maximum_iterations; ++i) {
    if (!static_cast<bool>(condition(state))) break;
    std::vector<Tensor> next = body(state);
    check_same(state, next, "td::while_loop", "the state", "the body's result");
    state = std::move(next);
  }
  return state;
}

}  // namespace

std::vector<Tensor> flat_while(const std::function<Tensor(const std::vector<Tensor>&)>& condition,
                               const FlatStep& body, std::vector<Tensor> state,
                               const WhileOptions& options) {
  Trace* outer = thread_context().trace;
  if (!outer) return eager_while(condition, body, std::move(state), options);
  if (options.maximum_iterations >= 0) {
    // The bound becomes part of the state: a counter in front.
    const Tensor limit(options.maximum_iterations);
    WhileOptions unbounded = options;
    unbounded.maximum_iterations = -1;
    if (!unbounded.shape_invariants.empty()) {
      unbounded.shape_invariants.insert(unbounded.shape_invariants.begin(), PartialShape::scalar());
    }
    const auto rest = [](const std::vector<Tensor>& all) {
      return std::vector<Tensor>(all.begin() + 1, all.end());
    };
    std::vector<Tensor> counted{Tensor(std::int64_t{0})};
    counted.insert(counted.end(), state.begin(), state.end());
    return rest(flat_while(
        [&](const std::vector<Tensor>& all) { return all[0] < limit && condition(rest(all)); },
        [&](const std::vector<Tensor>& all) {
          std::vector<Tensor> next{all[0] + std::int64_t{1}};
          for (Tensor& t : body(rest(all))) next.push_back(std::move(t));
          return next;
        },
        std::move(counted), unbounded));
  }
  const OpRegistry& ops = outer->ops();
  std::vector<PartialShape> shapes = options.shape_invariants;
  if (!shapes.empty() && shapes.size() != state.size()) {
    throw InvalidArgumentError(cat("td::while_loop: ", shapes.size(),
                                   " shape invariants were given for ", state.size(),
                                   " loop variables."));
  }
  if (shapes.empty()) {
    for (const Tensor& t : state) shapes.push_back(t.partial_shape());
  }
  // Sizes that the body changes are left open and the body is traced again, until the shapes hold.
  for (int attempt = 0;; ++attempt) {
    Trace body_trace(ops, "while_body", outer), condition_trace(ops, "while_cond", outer);
    const auto add_args = [&](Trace& trace) {
      std::vector<Tensor> args;
      for (std::size_t i = 0; i < state.size(); ++i)
        args.push_back(trace.add_arg(state[i].dtype(), shapes[i], cat("state_", i)));
      return args;
    };
    std::vector<Tensor> results;
    std::vector<Output> captured;
    {
      ThreadContextScope scope(tracing_context(body_trace));
      results = body(add_args(body_trace));
      check_same(state, results, "td::while_loop", "the state", "the body's result");
      for (const Tensor& t : results) body_trace.resolve(t);
    }
    bool hold = true;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const PartialShape relaxed = shapes[i].relax(results[i].partial_shape());
      if (relaxed == shapes[i]) continue;
      if (!options.shape_invariants.empty() || attempt > 4) {
        throw InvalidArgumentError(cat("td::while_loop: variable ", i,
                                       " enters the loop with shape ", shapes[i], " but has shape ",
                                       results[i].partial_shape(),
                                       " after one iteration. Give a "
                                       "shape invariant that covers both."));
      }
      shapes[i] = relaxed;
      hold = false;
    }
    if (!hold) continue;
    Tensor go_on;
    {
      ThreadContextScope scope(tracing_context(condition_trace));
      const std::vector<Tensor> args = add_args(condition_trace);
      for (const Tensor& t : body_trace.captures()) condition_trace.resolve(t);
      go_on = condition(args);
      condition_trace.resolve(go_on);
    }
    // Captured tensors are further state that the body forwards as it is.
    std::vector<Tensor> inputs = std::move(state);
    {
      ThreadContextScope scope(tracing_context(body_trace));
      for (const Tensor& t : condition_trace.captures()) {
        results.push_back(body_trace.symbol(body_trace.resolve(t)));
        inputs.push_back(t);
      }
    }
    const FunctionRef condition_function =
        condition_trace.finish(std::span<const Tensor>(&go_on, 1));
    const FunctionRef body_function = body_trace.finish(results);
    std::vector<Tensor> outputs = call_while(inputs, condition_function, body_function);
    outputs.resize(shapes.size());
    return outputs;
  }
}

}  // namespace tandem::internal
