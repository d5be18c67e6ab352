// Calls that become part of their caller, and functional control flow that becomes that of
// TensorFlow 1: the graphs as text, and what they compute.

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/graph/inline_calls.h"
#include "tandem/graph/lower_control_flow.h"
#include "tandem/graph/passes.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {
namespace {

template <class E, class F>
std::string thrown(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

const OpRegistry& ops() { return Runtime::current().ops(); }

FunctionRef finished(MutableFunction f) {
  return std::make_shared<const Function>("expanded", std::move(f.graph), std::move(f.args),
                                          std::move(f.results), std::move(f.control_results));
}

using Pass = bool (*)(MutableFunction&, const OpRegistry&, const ExpandOptions&);

FunctionRef after(Pass pass, const FunctionRef& function, const ExpandOptions& options = {}) {
  MutableFunction f(*function);
  EXPECT_TRUE(pass(f, ops(), options));
  return finished(std::move(f));
}

// Lines with the devices that nodes ask for, without shapes.
std::string text(const FunctionRef& f) {
  std::string lines;
  for (const auto& node : f->body().nodes()) {
    if (node->kind() == NodeKind::kArg) continue;
    lines += cat(node->name(), " = ", node->op().name, '(');
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      const Output in = node->inputs()[i];
      lines += cat(i ? ", " : "", in.node->name(), in.index ? cat(':', in.index) : "");
    }
    lines += ')';
    for (const Node* before : node->control_inputs()) lines += cat(" ^", before->name());
    if (!node->requested_device().empty()) lines += cat(" @", node->requested_device());
    lines += '\n';
  }
  lines += "return";
  for (const Output& r : f->results())
    lines += cat(' ', r.node->name(), r.index ? cat(':', r.index) : "");
  for (const Node* effect : f->control_results()) lines += cat(" ^", effect->name());
  return lines + '\n';
}

bool holds(const FunctionRef& f, const std::function<bool(const Node&)>& is) {
  for (const auto& node : f->body().nodes())
    if (is(*node)) return true;
  return false;
}

bool calls(const Node& node) { return calls_functions(node.kind()); }

// (variable, x): assigns x to the variable, returns 2 * x and the sum of the variable and x.
FunctionRef assigning() {
  FlowBuilder b;
  const Output variable = b.arg(DType::kResource, PartialShape::scalar()),
               x = b.arg(DType::kFloat, PartialShape::scalar());
  Node* write = b.add("AssignVariableOp", {variable, x}, {}, {}, "write");
  Node* read = b.add("ReadVariableOp", {variable}, {{"dtype", DType::kFloat}}, {write}, "read");
  Node* sum = b.add("AddV2", {{read, 0}, x}, {}, {}, "sum");
  Node* two =
      b.add("Const", {}, {{"value", Array::scalar(2.0f)}, {"dtype", DType::kFloat}}, {}, "two");
  Node* twice = b.add("Mul", {{two, 0}, x}, {}, {}, "twice");
  b.graph.set_requested_device(sum, "/device:CPU:0");
  b.graph.set_requested_device(twice, "/task:1");
  return b.finish({{twice, 0}, {sum, 0}}, {write});
}

TEST(InlineCalls, KeepNamesDevicesAndOrder) {
  FlowBuilder b;
  const Output variable = b.arg(DType::kResource, PartialShape::scalar()),
               x = b.arg(DType::kFloat, PartialShape::scalar());
  Node* before = b.add("AssignAddVariableOp", {variable, x}, {}, {}, "before");
  Node* call =
      b.add("StatefulPartitionedCall", {variable, x},
            {{"f", assigning()}, {"Tout", std::vector<DType>(2, DType::kFloat)}}, {before}, "call");
  b.graph.set_requested_device(call, "/job:worker/device:GPU:0");
  Node* read = b.add("ReadVariableOp", {variable}, {{"dtype", DType::kFloat}}, {call}, "read");
  const FunctionRef f = b.finish({{call, 0}, {call, 1}, {read, 0}}, {call});
  EXPECT_EQ(text(f),
            "before = AssignAddVariableOp(arg, arg_1)\n"
            "call = StatefulPartitionedCall(arg, arg_1) ^before @/job:worker/device:GPU:0\n"
            "read = ReadVariableOp(arg) ^call\n"
            "return call call:1 read ^call\n");
  EXPECT_EQ(
      text(after(passes::inline_calls, f)),
      "before = AssignAddVariableOp(arg, arg_1)\n"
      "read = ReadVariableOp(arg) ^call/output_control\n"
      "call/input_control = NoOp() ^before @/job:worker/device:GPU:0\n"
      "call/write = AssignVariableOp(arg, arg_1) ^call/input_control @/job:worker/device:GPU:0\n"
      "call/read = ReadVariableOp(arg) ^call/write @/job:worker/device:GPU:0\n"
      "call/sum = AddV2(call/read, arg_1) @/job:worker/device:CPU:0\n"
      "call/two = Const() @/job:worker/device:GPU:0\n"
      "call/twice = Mul(call/two, arg_1) @/job:worker/task:1/device:GPU:0\n"
      "call/output_0 = Identity(call/twice) ^call/write @/job:worker/device:GPU:0\n"
      "call/output_control = NoOp() ^call/write ^call/output_0 ^call/sum ^call/input_control "
      "@/job:worker/device:GPU:0\n"
      "return call/output_0 call/sum read ^call/output_control\n");
}

// A function that adds 1 on /device:GPU:1 if asked to, and one that calls it.
FunctionRef add_one(const std::string& device) {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape::scalar());
  Node* sum = b.add("AddV2", {x, b.constant(Array::scalar(1.0f))}, {}, {}, "sum");
  b.graph.set_requested_device(sum, device);
  return b.finish({{sum, 0}});
}

FunctionRef calling(const FunctionRef& f, const std::string& name, int times = 1) {
  FlowBuilder b;
  Output x = b.arg(DType::kFloat, PartialShape::scalar());
  for (int i = 0; i < times; ++i) {
    x = {b.add("PartitionedCall", {x}, {{"f", f}, {"Tout", std::vector<DType>{DType::kFloat}}}, {},
               name),
         0};
  }
  return b.finish({x});
}

TEST(InlineCalls, GoThroughCallsOfAnyDepth) {
  const FunctionRef f = calling(calling(add_one("/device:GPU:1"), "inner"), "outer", 2);
  EXPECT_EQ(text(after(passes::inline_calls, f)),
            "outer/inner/Const = Const()\n"
            "outer/inner/sum = AddV2(arg, outer/inner/Const) @/device:GPU:1\n"
            "outer_1/inner/Const = Const()\n"
            "outer_1/inner/sum = AddV2(outer/inner/sum, outer_1/inner/Const) @/device:GPU:1\n"
            "return outer_1/inner/sum\n");
}

TEST(InlineCalls, AreThoseThatWereChosen) {
  const FunctionRef plain = calling(add_one(""), "plain");
  const FunctionRef spread = calling(add_one("/device:GPU:1"), "spread");
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape::scalar());
  std::vector<Output> results;
  for (const FunctionRef& f : {plain, spread}) {
    Node* call = b.add("PartitionedCall", {x},
                       {{"f", f}, {"Tout", std::vector<DType>{DType::kFloat}}}, {}, "call");
    b.graph.set_requested_device(call, "/device:GPU:0");
    results.push_back({call, 0});
  }
  const FunctionRef f =
      after(passes::inline_calls, b.finish(results), {.choose = passes::spans_devices});
  EXPECT_EQ(text(f),
            "call = PartitionedCall(arg) @/device:GPU:0\n"
            "call_1/spread/Const = Const() @/device:GPU:0\n"
            "call_1/spread/sum = AddV2(arg, call_1/spread/Const) @/device:GPU:1\n"
            "return call call_1/spread/sum\n");
}

TEST(InlineCalls, RefuseRecursion) {
  FlowBuilder b;
  const Output x = b.arg(DType::kFloat, PartialShape::scalar());
  const FunctionRef leaf = add_one("");
  Node* call = b.add("PartitionedCall", {x},
                     {{"f", leaf}, {"Tout", std::vector<DType>{DType::kFloat}}}, {}, "again");
  const FunctionRef f = b.finish({{call, 0}});
  auto& body = const_cast<Graph&>(f->body());
  body.set_attr(body.find("again"), "f", f);
  const std::string message = thrown<InvalidArgumentError>([&] {
    MutableFunction caller(*calling(f, "first"));
    passes::inline_calls(caller, ops());
  });
  EXPECT_NE(message.find("'flow' cannot be expanded at 'first/again' (PartitionedCall)"),
            std::string::npos)
      << message;
  body.set_attr(body.find("again"), "f", leaf);  // else it would keep itself
}

TEST(InlineCalls, AreBounded) {
  FunctionRef f = add_one("");
  for (int i = 0; i < 30; ++i) f = calling(f, "call", 2);
  EXPECT_NE(thrown<ResourceExhaustedError>([&] {
              MutableFunction caller(*f);
              passes::inline_calls(caller, ops(), {.max_nodes = 10'000});
            }).find("more than 10000 nodes"),
            std::string::npos);
  for (int i = 0; i < 300; ++i) f = calling(i == 0 ? add_one("") : f, "call");
  EXPECT_NE(thrown<FailedPreconditionError>([&] {
              MutableFunction caller(*f);
              passes::inline_calls(caller, ops());
            }).find("more than 200 calls deep"),
            std::string::npos);
}

TEST(LowerControlFlow, OfAnIf) {
  FlowBuilder b;
  const Output pred = b.arg(DType::kBool, PartialShape::scalar()),
               x = b.arg(DType::kFloat, PartialShape::scalar());
  Node* node = b.add("StatelessIf", {pred, x},
                     {{"then_branch", add_one("/device:GPU:1")},
                      {"else_branch", calling(add_one(""), "call")},
                      {"Tout", std::vector<DType>{DType::kFloat}}},
                     {}, "if");
  const FunctionRef f = b.finish({{node, 0}});
  EXPECT_EQ(text(after(passes::lower_control_flow, f)),
            "if/pred_id = Identity(arg)\n"
            "if/pivot = Switch(if/pred_id, if/pred_id)\n"
            "if/else/pivot = Identity(if/pivot)\n"
            "if/Switch = Switch(arg_1, if/pred_id)\n"
            "if/else/call = PartitionedCall(if/Switch)\n"
            "if/then/pivot = Identity(if/pivot:1)\n"
            "if/then/Const = Const() ^if/then/pivot\n"
            "if/then/sum = AddV2(if/Switch:1, if/then/Const) @/device:GPU:1\n"
            "if/Merge = Merge(if/else/call, if/then/sum)\n"
            "return if/Merge\n");
  EXPECT_FALSE(holds(after(passes::expand_functions, f), calls));
}

TEST(LowerControlFlow, OfACase) {
  FlowBuilder b;
  const Output index = b.arg(DType::kInt32, PartialShape::scalar()),
               x = b.arg(DType::kFloat, PartialShape::scalar());
  const std::vector<FunctionRef> branches{add_one(""), add_one("/device:GPU:1")};
  Node* node =
      b.add("StatelessCase", {index, x},
            {{"branches", branches}, {"Tout", std::vector<DType>{DType::kFloat}}}, {}, "case");
  EXPECT_EQ(text(after(passes::lower_control_flow, b.finish({{node, 0}}))),
            "case/branch_index = Identity(arg)\n"
            "case/branch_0/index = Const() ^case/branch_index\n"
            "case/branch_0/pred = Equal(case/branch_index, case/branch_0/index)\n"
            "case/branch_0/switch = Switch(case/branch_0/pred, case/branch_0/pred)\n"
            "case/branch_0/pivot = Identity(case/branch_0/switch:1)\n"
            "case/Switch = Switch(arg_1, case/branch_0/pred)\n"
            "case/branch_0/Const = Const() ^case/branch_0/pivot\n"
            "case/branch_0/sum = AddV2(case/Switch:1, case/branch_0/Const)\n"
            "case/branch_1/first = Const() ^case/branch_index\n"
            "case/branch_1/below = Less(case/branch_index, case/branch_1/first)\n"
            "case/branch_1/index = Const() ^case/branch_index\n"
            "case/branch_1/above = GreaterEqual(case/branch_index, case/branch_1/index)\n"
            "case/branch_1/pred = LogicalOr(case/branch_1/below, case/branch_1/above)\n"
            "case/branch_1/switch = Switch(case/branch_1/pred, case/branch_1/pred)\n"
            "case/branch_1/pivot = Identity(case/branch_1/switch:1)\n"
            "case/Switch_1 = Switch(arg_1, case/branch_1/pred)\n"
            "case/branch_1/Const = Const() ^case/branch_1/pivot\n"
            "case/branch_1/sum = AddV2(case/Switch_1:1, case/branch_1/Const) @/device:GPU:1\n"
            "case/Merge = Merge(case/branch_0/sum, case/branch_1/sum)\n"
            "return case/Merge\n");
}

// (i, variable) while i < 3: adds i to the variable.
FunctionRef counting() {
  FlowBuilder condition;
  const Output c = condition.arg(DType::kFloat, PartialShape::scalar());
  condition.arg(DType::kResource, PartialShape::scalar());
  Node* less = condition.add("Less", {c, condition.constant(Array::scalar(3.0f))}, {}, {}, "less");
  const FunctionRef cond = condition.finish({{less, 0}});
  FlowBuilder body;
  const Output i = body.arg(DType::kFloat, PartialShape::scalar()),
               v = body.arg(DType::kResource, PartialShape::scalar());
  Node* write = body.add("AssignAddVariableOp", {v, i}, {}, {}, "write");
  Node* next = body.add("AddV2", {i, body.constant(Array::scalar(1.0f))}, {}, {}, "next");
  const FunctionRef round = body.finish({{next, 0}, v}, {write});
  FlowBuilder b;
  const Output start = b.arg(DType::kFloat, PartialShape::scalar()),
               variable = b.arg(DType::kResource, PartialShape::scalar());
  Node* loop = b.add("While", {start, variable},
                     {{"cond", cond}, {"body", round}, {"parallel_iterations", 4}}, {}, "while");
  Node* read = b.add("ReadVariableOp", {variable}, {{"dtype", DType::kFloat}}, {loop}, "read");
  return b.finish({{loop, 0}, {read, 0}});
}

TEST(LowerControlFlow, OfAWhile) {
  const FunctionRef f = after(passes::lower_control_flow, counting());
  EXPECT_EQ(text(f),
            "read = ReadVariableOp(arg_1) ^while/done\n"
            "while/Enter = Enter(arg)\n"
            "while/Merge = Merge(while/Enter, while/NextIteration)\n"
            "while/Enter_1 = Enter(arg_1)\n"
            "while/cond/Const = Const() ^while/Merge\n"
            "while/cond/less = Less(while/Merge, while/cond/Const)\n"
            "while/LoopCond = LoopCond(while/cond/less)\n"
            "while/Switch = Switch(while/Merge, while/LoopCond)\n"
            "while/Switch_1 = Switch(while/Enter_1, while/LoopCond)\n"
            "while/body/pivot = Identity(while/Switch:1)\n"
            "while/body/write = AssignAddVariableOp(while/Switch_1:1, while/Switch:1)\n"
            "while/body/Const = Const() ^while/body/pivot\n"
            "while/body/next = AddV2(while/Switch:1, while/body/Const)\n"
            "while/NextIteration = NextIteration(while/body/next) ^while/body/write\n"
            "while/Exit = Exit(while/Switch)\n"
            "while/done = NoOp() ^while/Exit ^while/Exit_1\n"
            "while/Exit_1 = Exit(while/Switch_1)\n"
            "return while/Exit read\n");
  const Node* enter = f->body().find("while/Enter");
  ASSERT_NE(enter, nullptr);
  EXPECT_EQ(enter->attr<std::string>("frame_name"), "while");
  EXPECT_EQ(enter->attr<std::int64_t>("parallel_iterations"), 4);
  EXPECT_FALSE(enter->attr<bool>("is_constant"));
  EXPECT_TRUE(f->body().find("while/Enter_1")->attr<bool>("is_constant"));
}

// ---- What they compute ----

// Runs a function as it was traced and expanded, with the same arguments, and compares.
void expect_equal_results(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& body,
                          const std::vector<std::vector<Tensor>>& calls_with) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const Tensor& t : calls_with[0]) {
    dtypes.push_back(t.dtype());
    shapes.push_back(PartialShape::unknown());
  }
  const ConcreteFunction traced = trace_function("traced", dtypes, shapes, body);
  ASSERT_TRUE(holds(traced.function(), calls)) << traced.graph().to_string();
  const FunctionRef expanded = after(passes::expand_functions, traced.function());
  EXPECT_FALSE(holds(expanded, calls)) << text(expanded);
  for (const std::vector<Tensor>& args : calls_with) {
    const std::vector<Tensor> wanted = traced.call(args);
    std::vector<Tensor> all = args;
    all.insert(all.end(), traced.captures().begin(), traced.captures().end());
    const std::vector<Tensor> got = call_function(expanded, all);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i].array(), wanted[i].array()) << i << "\n" << text(expanded);
  }
}

TEST(ExpandFunctions, BranchesInLoopsInCallsInBranches) {
  const auto collatz = function([](Tensor n) {
    const auto [steps, last] =
        while_loop([](Tensor, Tensor k) { return k > 1; },
                   [](Tensor i, Tensor k) {
                     const Tensor next = cond(
                         k % 2 == 0, [&] { return floordiv(k, 2); },
                         [&] {
                           return cond(
                               k > 0, [&] { return 3 * k + 1; }, [&] { return k; });
                         });
                     return std::pair(i + 1, next);
                   },
                   std::pair(Tensor(0), n));
    return steps + last;
  });
  expect_equal_results(
      [&](std::span<const Tensor> a) {
        const std::vector<std::function<Tensor()>> branches{
            [&] { return a[0]; }, [&] { return collatz(a[0] * a[0]); }, [&] { return a[0] - 1; }};
        return std::vector<Tensor>{
            cond(
                a[0] > 0, [&] { return collatz(a[0]); }, [&] { return -collatz(-a[0]); }),
            switch_case(a[0] % 4, branches)};
      },
      {{Tensor(7)}, {Tensor(-27)}, {Tensor(6)}, {Tensor(97)}, {Tensor(4)}});
}

TEST(ExpandFunctions, EffectsStayInOrder) {
  Variable v(Tensor(1.0f));
  const auto scale = function([&](Tensor by) {
    const Tensor before = v.value();
    v.assign(v.value() * by);
    return before;
  });
  const auto body = [&](std::span<const Tensor> a) {
    v.assign(a[0]);
    const Tensor first = scale(a[1]);
    v.assign_add(Tensor(1.0f));
    const auto [i, seen] = while_loop([&](Tensor, Tensor) { return v.value() < 100.0f; },
                                      [&](Tensor k, Tensor) {
                                        const Tensor read = v.value();
                                        cond(
                                            k % 2 == 0, [&] { return scale(Tensor(3.0f)); },
                                            [&] {
                                              v.assign_add(Tensor(0.5f));
                                              return read;
                                            });
                                        return std::pair(k + 1, v.value() + read);
                                      },
                                      std::pair(Tensor(0), Tensor(0.0f)));
    return std::vector<Tensor>{first, cast(i, DType::kFloat), seen, v.value()};
  };
  expect_equal_results(body, {{Tensor(2.0f), Tensor(3.0f)}, {Tensor(200.0f), Tensor(1.0f)}});
}

TEST(ExpandFunctions, ValuesThatOnlyPassALoop) {
  expect_equal_results(
      [](std::span<const Tensor> a) {
        const auto [i, x, y, z] = while_loop(
            [](Tensor k, Tensor, Tensor, Tensor) { return k < 5; },
            [](Tensor k, Tensor p, Tensor q, Tensor r) { return std::tuple(k + 1, q, p, r); },
            std::tuple(Tensor(0), a[0], a[1], a[2]));
        return std::vector<Tensor>{i, x, y, z};
      },
      {{Tensor{1.0f}, Tensor{2.0f, 3.0f}, Tensor(4)}});
}

TEST(ExpandFunctions, LoopsThatRunNoTimes) {
  expect_equal_results(
      [](std::span<const Tensor> a) {
        const auto [k, x] =
            while_loop([](Tensor i, Tensor) { return i < 0; },
                       [](Tensor i, Tensor v) { return std::pair(i + 1, v * 2.0f); },
                       std::pair(Tensor(0), a[0]));
        return std::vector<Tensor>{k, x + 1.0f};
      },
      {{Tensor(3.0f)}});
}

TEST(ExpandFunctions, ConditionsOfAnyType) {
  for (const Tensor& pred : {Tensor(0.0f), Tensor(2.5f), Tensor{0, 0}, Tensor(0)}) {
    FlowBuilder b;
    const Output p = b.arg(pred.dtype()), x = b.arg(DType::kFloat, PartialShape::scalar());
    Node* node = b.add("StatelessIf", {p, x},
                       {{"then_branch", add_one("")},
                        {"else_branch", calling(calling(add_one(""), "a"), "b", 2)},
                        {"Tout", std::vector<DType>{DType::kFloat}}});
    const FunctionRef f = b.finish({{node, 0}});
    EXPECT_EQ(run_float(f, {pred, Tensor(1.0f)}),
              run_float(after(passes::expand_functions, f), {pred, Tensor(1.0f)}));
  }
}

// What cannot fit in a branch that is not taken does no harm.
TEST(ExpandFunctions, ShapesThatDoNotFitAreTheKernels) {
  FlowBuilder wrong;
  const Output a = wrong.arg(DType::kFloat);
  const FunctionRef product = wrong.finish({wrong.add1("MatMul", {a, a})});
  FlowBuilder right;
  const FunctionRef same = right.finish({right.add1("Neg", {right.arg(DType::kFloat)})});
  FlowBuilder b;
  const Output pred = b.arg(DType::kBool, PartialShape::scalar()), x = b.arg(DType::kFloat, {3});
  Node* node = b.add("StatelessIf", {pred, x},
                     {{"then_branch", product},
                      {"else_branch", same},
                      {"Tout", std::vector<DType>{DType::kFloat}}});
  const FunctionRef f = after(passes::lower_control_flow, b.finish({{node, 0}}));
  const Tensor three{1.0f, 2.0f, 3.0f};
  EXPECT_EQ(run(f, {Tensor(false), three})[0].to_vector<float>(), (std::vector<float>{-1, -2, -3}));
  EXPECT_THROW(run(f, {Tensor(true), three}), InvalidArgumentError);
}

// A call in a branch of TensorFlow 1 that is not taken does not run, not even what has no inputs.
TEST(ExpandFunctions, CallsThatAreDeadStayDead) {
  FlowBuilder inner;
  const Output variable = inner.arg(DType::kResource, PartialShape::scalar());
  inner.arg(DType::kFloat, PartialShape::scalar());
  Node* write = inner.add("AssignVariableOp", {variable, inner.constant(Array::scalar(7.0f))});
  const Output seven = inner.constant(Array::scalar(7.0f));
  const FunctionRef assign = inner.finish({seven}, {write});
  FlowBuilder b;
  const Output pred = b.arg(DType::kBool, PartialShape::scalar()),
               v = b.arg(DType::kResource, PartialShape::scalar()),
               x = b.arg(DType::kFloat, PartialShape::scalar());
  Node* split = b.add("Switch", {x, pred});
  Node* call = b.add("StatefulPartitionedCall", {v, {split, 1}},
                     {{"f", assign}, {"Tout", std::vector<DType>{DType::kFloat}}});
  Node* merge = b.add("Merge", {{split, 0}, {call, 0}});
  const FunctionRef f = after(passes::inline_calls, b.finish({{merge, 0}}));
  Variable state(Tensor(1.0f));
  EXPECT_EQ(run_float(f, {Tensor(false), state.handle(), Tensor(2.0f)}), 2.0f);
  EXPECT_EQ(state.value().item<float>(), 1.0f);
  EXPECT_EQ(run_float(f, {Tensor(true), state.handle(), Tensor(2.0f)}), 7.0f);
  EXPECT_EQ(state.value().item<float>(), 7.0f);
}

}  // namespace
}  // namespace tandem
