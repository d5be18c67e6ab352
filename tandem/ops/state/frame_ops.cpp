// The ops of TensorFlow 1 control flow. In graphs the executor carries them out itself (see
// docs/architecture.md); called eagerly they merely pass values on, as in TensorFlow.

#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

void switch_shape(InferenceContext& c) {
  c.require_rank(1, 0);
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(0));
}

void merge_shape(InferenceContext& c) {
  PartialShape all = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) all = all.relax(c.input(i));
  c.set_output(0, std::move(all));
  c.set_output(1, PartialShape::scalar());
}

void loop_cond_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.set_output(0, PartialShape::scalar());
}

void enter_shape(InferenceContext& c) {
  if (c.attr<std::string>("frame_name").empty())
    c.fail("The Enter must have a frame name: 'frame_name' is empty.");
  c.set_output(0, c.input(0));
}

void switch_gradient(GradientContext& g);
void merge_gradient(GradientContext& g);

const OpRegistration kSwitch{{
    .name = "Switch",
    .inputs = "data: T, pred: bool",
    .outputs = "output_false: T, output_true: T",
    .attrs = "T: type",
    .shape = switch_shape,
    .gradient = switch_gradient,
    .traits = {.kind = NodeKind::kSwitch, .host_inputs = 0b10},
    .doc = "Forwards data to the output that pred chooses; the other output is dead.",
}};

const OpRegistration kRefSwitch{{
    .name = "RefSwitch",
    .inputs = "data: Ref(T), pred: bool",
    .outputs = "output_false: Ref(T), output_true: Ref(T)",
    .attrs = "T: type",
    .shape = switch_shape,
    .traits = {.kind = NodeKind::kSwitch, .host_inputs = 0b10},
    .doc = "As Switch, for a reference.",
}};

const OpRegistration kMerge{{
    .name = "Merge",
    .inputs = "inputs: N * T",
    .outputs = "output: T, value_index: int32",
    .attrs = "T: type; N: int >= 1",
    .shape = merge_shape,
    .gradient = merge_gradient,
    .traits = {.kind = NodeKind::kMerge, .host_outputs = 0b10},
    .doc = "The first input that arrives alive, and which one it was.",
}};

const OpRegistration kRefMerge{{
    .name = "RefMerge",
    .inputs = "inputs: Ref(N * T)",
    .outputs = "output: Ref(T), value_index: int32",
    .attrs = "T: type; N: int >= 1",
    .shape = merge_shape,
    .traits = {.kind = NodeKind::kMerge, .host_outputs = 0b10},
    .doc = "As Merge, for references.",
}};

const OpRegistration kEnter{{
    .name = "Enter",
    .inputs = "data: T",
    .outputs = "output: T",
    .attrs = "T: type; frame_name: string; is_constant: bool = false; "
             "parallel_iterations: int = 10",
    .shape = enter_shape,
    .traits = {.kind = NodeKind::kEnter},
    .doc = "Hands data into the loop frame_name: to its first iteration, or to all if is_constant.",
}};

const OpRegistration kRefEnter{{
    .name = "RefEnter",
    .inputs = "data: Ref(T)",
    .outputs = "output: Ref(T)",
    .attrs = "T: type; frame_name: string; is_constant: bool = false; "
             "parallel_iterations: int = 10",
    .shape = enter_shape,
    .traits = {.kind = NodeKind::kEnter},
    .doc = "As Enter, for a reference.",
}};

const OpRegistration kExit{{
    .name = "Exit",
    .inputs = "data: T",
    .outputs = "output: T",
    .attrs = "T: type",
    .shape = shapes::unchanged,
    .traits = {.kind = NodeKind::kExit},
    .doc = "Hands data out of its loop.",
}};

const OpRegistration kRefExit{{
    .name = "RefExit",
    .inputs = "data: Ref(T)",
    .outputs = "output: Ref(T)",
    .attrs = "T: type",
    .shape = shapes::unchanged,
    .traits = {.kind = NodeKind::kExit},
    .doc = "As Exit, for a reference.",
}};

const OpRegistration kNextIteration{{
    .name = "NextIteration",
    .inputs = "data: T",
    .outputs = "output: T",
    .attrs = "T: type",
    .shape = shapes::unchanged,
    .traits = {.kind = NodeKind::kNextIteration},
    .doc = "Hands data to the next iteration of its loop.",
}};

const OpRegistration kRefNextIteration{{
    .name = "RefNextIteration",
    .inputs = "data: Ref(T)",
    .outputs = "output: Ref(T)",
    .attrs = "T: type",
    .shape = shapes::unchanged,
    .traits = {.kind = NodeKind::kNextIteration},
    .doc = "As NextIteration, for a reference.",
}};

const OpRegistration kLoopCond{{
    .name = "LoopCond",
    .inputs = "input: bool",
    .outputs = "output: bool",
    .shape = loop_cond_shape,
    .gradient = not_differentiable,
    .traits = {.kind = NodeKind::kLoopCond, .host_inputs = 1, .host_outputs = 1},
    .doc = "Marks the condition of a loop; its output is its input.",
}};

const OpRegistration kControlTrigger{{
    .name = "ControlTrigger",
    .shape = shapes::none,
    .gradient = not_differentiable,
    .traits = {.stateful = true, .runs_when_dead = true},
    .doc = "Does nothing, after its control inputs; it runs also when they are dead.",
}};

const OpRegistration kAbort{{
    .name = "Abort",
    .attrs = "error_msg: string = ''; exit_without_error: bool = false",
    .shape = shapes::none,
    .gradient = not_differentiable,
    .traits = {.stateful = true},
    .doc = "Fails with error_msg (AbortedError), or, if exit_without_error, does nothing. "
           "TensorFlow ends the process instead.",
}};

bool eager() { return thread_context().trace == nullptr; }

// The gradient of the output that was not taken is dead, so the Merge takes the other.
void switch_gradient(GradientContext& g) {
  if (eager()) return g.set(0, g.grad(static_cast<bool>(g.input(1)) ? 1 : 0));
  g.set(0, call(kMerge, {g.grad(0), g.grad(1)})[0]);
}

void merge_gradient(GradientContext& g) {
  const Tensor& taken = g.output(1);
  if (eager()) {
    const int i = taken.item<std::int32_t>();
    return g.set(i, g.grad(0));
  }
  for (int i = 0; i < g.num_inputs(); ++i)
    if (g.needs(i)) g.set(i, call(kSwitch, {g.grad(0), taken == i})[1]);
}

}  // namespace
}  // namespace tandem
