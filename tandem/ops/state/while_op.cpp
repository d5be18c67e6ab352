#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/graph/function.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/functional_calls.h"
#include "tandem/ops/internal/result_shapes.h"
#include "tandem/ops/list_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/resource_variable_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/gradient_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::internal {
namespace {

// What holds before every iteration: what holds before the first, less what the body changes. A
// loop that goes on changing more is given up on, value by value and in the end as a whole.
void while_shape(InferenceContext& c) {
  constexpr int kExact = 4, kMax = 16;
  const auto& body = c.attr<FunctionRef>("body");
  std::vector<KnownValue> state = known_args(c, 0);
  for (int round = 0;; ++round) {
    const std::vector<KnownValue> next = known_results(c, body, state);
    bool holds = next.size() == state.size();
    for (std::size_t i = 0; i < std::min(state.size(), next.size()); ++i) {
      KnownValue both = either(state[i], next[i]);
      if (both == state[i]) continue;
      state[i] = round < kExact ? std::move(both) : KnownValue{};
      holds = false;
    }
    if (holds) break;
    if (round == kMax) {
      std::fill(state.begin(), state.end(), KnownValue{});
      break;
    }
  }
  set_results(c, state);
}

void while_gradient(GradientContext& g);

#define TANDEM_WHILE_ATTRS                                                                        \
  "T: list(type); cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: " \
  "int = 10"

const OpRegistration kWhile{{
    .name = "While",
    .inputs = "input: T",
    .outputs = "output: T",
    .attrs = TANDEM_WHILE_ATTRS,
    .shape = while_shape,
    .gradient = while_gradient,
    .traits = {.kind = NodeKind::kWhile, .stateful = true},
    .flops = flops::loop,
    .doc = "Applies body to its own output, beginning with input, as long as cond of it is true.",
}};

const OpRegistration kStatelessWhile{{
    .name = "StatelessWhile",
    .inputs = "input: T",
    .outputs = "output: T",
    .attrs = TANDEM_WHILE_ATTRS,
    .shape = while_shape,
    .gradient = while_gradient,
    .traits = {.kind = NodeKind::kWhile},
    .flops = flops::loop,
    .doc = "As While, for functions without side effects.",
}};

using Tensors = std::vector<Tensor>;

Tensors join(std::initializer_list<std::span<const Tensor>> parts) {
  Tensors all;
  for (const auto& p : parts) all.insert(all.end(), p.begin(), p.end());
  return all;
}

FunctionRef trace(const std::string& name, const std::vector<DType>& dtypes,
                  const std::vector<PartialShape>& shapes,
                  const std::function<Tensors(std::span<const Tensor>)>& body) {
  const ConcreteFunction f = trace_function(name, dtypes, shapes, body);
  if (!f.captures().empty())
    throw InternalError(cat("function ", name, " of a loop captured outside tensors"));
  return f.function();
}

// The differentiable loop counts its iterations and keeps, for each value that the body's gradient
// needs, a list with one element an iteration. State: counter, the loop's own state, the lists. The
// gradient runs the other way: state: counter, gradients of the values in the loop's state, sums of
// the gradients of resources, the lists.
struct WhileGradient {
  WhileGradient(FunctionRef c, FunctionRef b)
      : condition(std::move(c)), body(std::move(b)), gradient(differentiate(body)) {
    if (!gradient) return;
    const std::vector<DType> all = gradient->forward->result_dtypes();
    kept.assign(all.begin() + static_cast<std::ptrdiff_t>(body->results().size()), all.end());
    for (int a : gradient->arg_grads) {
      if (body->arg_dtypes()[static_cast<std::size_t>(a)] == DType::kResource)
        resources.push_back(a);
    }
  }

  std::size_t size() const { return body->args().size(); }

  std::vector<DType> forward_dtypes() const {
    std::vector<DType> types{DType::kInt32};
    for (DType t : body->arg_dtypes()) types.push_back(t);
    types.insert(types.end(), kept.size(), DType::kVariant);
    return types;
  }
  std::vector<PartialShape> forward_shapes() const {
    std::vector<PartialShape> shapes{PartialShape::scalar()};
    for (const Node* arg : body->args()) shapes.push_back(arg->output_shape(0));
    shapes.insert(shapes.end(), kept.size(), PartialShape::scalar());
    return shapes;
  }

  FunctionRef forward_condition() const {
    return trace("while_forward_cond", forward_dtypes(), forward_shapes(),
                 [&](std::span<const Tensor> in) {
                   return call_function(condition, in.subspan(1, size()));
                 });
  }
  FunctionRef forward_body() const {
    return trace(
        "while_forward_body", forward_dtypes(), forward_shapes(), [&](std::span<const Tensor> in) {
          Tensors all = call_function(gradient->forward, in.subspan(1, size()));
          Tensors out{in[0] + 1};
          out.insert(out.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size()));
          for (std::size_t k = 0; k < kept.size(); ++k)
            out.push_back(list_ops::push_back(in[1 + size() + k], all[size() + k]));
          return out;
        });
  }

  std::vector<DType> backward_dtypes() const {
    std::vector<DType> types{DType::kInt32};
    const std::vector<DType> results = body->result_dtypes();
    for (int r : gradient->result_grads) types.push_back(results[static_cast<std::size_t>(r)]);
    for (int a : resources) types.push_back(resource_dtype(a));
    types.insert(types.end(), kept.size(), DType::kVariant);
    return types;
  }

  FunctionRef backward_condition(const std::vector<DType>& dtypes) const {
    return trace("while_backward_cond", dtypes, unknown(dtypes.size()),
                 [&](std::span<const Tensor> in) { return Tensors{in[0] > 0}; });
  }
  FunctionRef backward_body(const std::vector<DType>& dtypes) const {
    return trace(
        "while_backward_body", dtypes, unknown(dtypes.size()), [&](std::span<const Tensor> in) {
          const std::size_t values = gradient->result_grads.size();
          const auto grads = in.subspan(1, values), sums = in.subspan(1 + values, resources.size());
          const auto lists = in.subspan(1 + values + resources.size());
          Tensors args(grads.begin(), grads.end()), shorter;
          for (std::size_t k = 0; k < kept.size(); ++k) {
            auto [list, value] =
                list_ops::pop_back(lists[k], kept[k], gradient->backward_arg_shape(values + k));
            shorter.push_back(std::move(list));
            args.push_back(std::move(value));
          }
          const Tensors found = call_function(gradient->backward, args);
          const auto of_arg = [&](int a) -> Tensor {
            const auto at = std::find(gradient->arg_grads.begin(), gradient->arg_grads.end(), a);
            return at == gradient->arg_grads.end()
                       ? Tensor()
                       : found[static_cast<std::size_t>(at - gradient->arg_grads.begin())];
          };
          Tensors out{in[0] - 1};
          for (std::size_t v = 0; v < values; ++v) {
            const Tensor g = of_arg(gradient->result_grads[v]);
            out.push_back(g.defined() ? g : zeros_like(grads[v]));
          }
          for (std::size_t r = 0; r < resources.size(); ++r)
            out.push_back(sums[r] + of_arg(resources[r]));
          return join({out, shorter});
        });
  }

  FunctionRef condition, body;
  std::shared_ptr<const FunctionGradient> gradient;
  std::vector<DType> kept;     // dtypes of the values kept for each iteration
  std::vector<int> resources;  // arguments that are variables with gradients

  DType resource_dtype(int a) const {
    const auto at = std::find(gradient->arg_grads.begin(), gradient->arg_grads.end(), a);
    return gradient->backward
        ->result_dtypes()[static_cast<std::size_t>(at - gradient->arg_grads.begin())];
  }

 private:
  static std::vector<PartialShape> unknown(std::size_t n) { return std::vector<PartialShape>(n); }
};

Tensors call_while_op(const Tensors& inputs, const FunctionRef& condition, const FunctionRef& body,
                      AttrMap attrs) {
  attrs.set("cond", condition);
  attrs.set("body", body);
  return call(condition->stateful() || body->stateful() ? kWhile : kStatelessWhile, inputs, attrs);
}

// The lists that a loop keeps for its gradient, after the counter and the state, have no gradient
// of their own here.
void refuse_second_derivative(const GradientContext& g) {
  const AttrValue* body = g.find_attr("_original_body");
  bool asked = body == nullptr;
  const int state =
      asked ? 0 : 1 + static_cast<int>(g.attr<FunctionRef>("_original_body")->args().size());
  for (int i = state; i < g.num_outputs(); ++i) asked = asked || g.grad_or_undefined(i).defined();
  for (int i = state; i < g.num_inputs(); ++i) asked = asked || g.needs(i);
  if (asked) {
    throw UnimplementedError(
        "Second derivatives through a traced td::while_loop are not supported. Take them eagerly, "
        "or write the loop out in C++ while tracing.");
  }
}

void while_gradient(GradientContext& g) {
  refuse_second_derivative(g);
  const WhileGradient w(g.attr<FunctionRef>("_original_cond"),
                        g.attr<FunctionRef>("_original_body"));
  Tensors state{g.output(0)};
  for (int r : w.gradient->result_grads) state.push_back(g.grad(r + 1));
  for (int a : w.resources)
    state.push_back(zeros_like(read_variable(g.input(a + 1), w.resource_dtype(a))));
  for (std::size_t k = 0; k < w.kept.size(); ++k)
    state.push_back(g.output(static_cast<int>(1 + w.size() + k)));
  const std::vector<DType> dtypes = w.backward_dtypes();
  const Tensors out =
      call_while_op(state, w.backward_condition(dtypes), w.backward_body(dtypes), {});
  std::size_t at = 1;
  for (int r : w.gradient->result_grads) g.set(r + 1, out[at++]);
  for (int a : w.resources) g.set(a + 1, out[at++]);
}

}  // namespace

std::vector<Tensor> call_while(const std::vector<Tensor>& inputs, const FunctionRef& condition,
                               const FunctionRef& body) {
  if (is_recording(inputs)) {
    const WhileGradient w(condition, body);
    if (w.gradient) {
      Tensors state{Tensor(0)};
      state.insert(state.end(), inputs.begin(), inputs.end());
      for (DType t : w.kept) state.push_back(list_ops::empty_tensor_list(t));
      const Tensors out = call_while_op(state, w.forward_condition(), w.forward_body(),
                                        {{"_original_cond", condition}, {"_original_body", body}});
      return {out.begin() + 1, out.begin() + 1 + static_cast<std::ptrdiff_t>(inputs.size())};
    }
  }
  return call_while_op(inputs, condition, body, {});
}

}  // namespace tandem::internal
