#include "tests/unit/graph/graph_util.h"

#include "tandem/graph/inference_context.h"
#include "tandem/graph/rewrite.h"

namespace tandem {
namespace {

const OpRegistration kConst{{.name = "TestConst",
                             .outputs = "output: dtype",
                             .attrs = "value: tensor; dtype: type",
                             .shape =
                                 [](InferenceContext& c) {
                                   c.set_output(
                                       0, c.attr<std::shared_ptr<const Array>>("value")->shape());
                                 },
                             .traits = {.kind = NodeKind::kConst}}};

const OpRegistration kArg{
    {.name = "TestArg",
     .outputs = "output: T",
     .attrs = "T: type; shape: shape = unknown",
     .shape = [](InferenceContext& c) { c.set_output(0, c.attr<PartialShape>("shape")); },
     .traits = {.kind = NodeKind::kArg}}};

bool add_rewrite(RewriteContext& c) {
  return c.is_constant(1, 0) && c.replace_with(c.node().inputs()[0]);
}

const OpRegistration kAdd{{.name = "TestAdd",
                           .inputs = "x: T, y: T",
                           .outputs = "z: T",
                           .attrs = "T: {float, int32}",
                           .shape = shapes::broadcast_binary,
                           .traits = {.elementwise = true, .commutative = true, .may_reuse = 3},
                           .rewrite = add_rewrite,
                           .doc = "Adds."}};

const OpRegistration kNegate{{.name = "TestNegate",
                              .inputs = "x: T",
                              .outputs = "y: T",
                              .attrs = "T: numbers; mode: {'A', 'B'} = 'A'",
                              .shape = shapes::unchanged,
                              .gradient = not_differentiable,
                              .traits = {.elementwise = true}}};

const OpRegistration kSplitInTwo{
    {.name = "TestSplitInTwo", .inputs = "x: T", .outputs = "a: T, b: T", .attrs = "T: type"}};

const OpRegistration kJoin{{.name = "TestJoin",
                            .inputs = "values: N * T, axis: int32",
                            .outputs = "output: T",
                            .attrs = "N: int >= 2; T: type"}};

const OpRegistration kTuple{{.name = "TestTuple",
                             .inputs = "first: int32, values: Tin, last: float",
                             .outputs = "outputs: Tin",
                             .attrs = "Tin: list(type) >= 1"}};

const OpRegistration kEffect{{.name = "TestEffect",
                              .inputs = "x: T",
                              .outputs = "y: T",
                              .attrs = "T: type",
                              .shape = shapes::unchanged,
                              .traits = {.stateful = true}}};

const OpRegistration kShapeOf{{.name = "TestShapeOf",
                               .inputs = "x: T",
                               .outputs = "shape: int32",
                               .attrs = "T: type",
                               .shape =
                                   [](InferenceContext& c) {
                                     c.set_output(0, c.input(0).has_rank()
                                                         ? PartialShape{c.input(0).rank()}
                                                         : PartialShape{-1});
                                   },
                               .traits = {.value = ShapeValue::kShapeOfInput}}};

const OpRegistration kPack{{.name = "TestPack",
                            .inputs = "values: N * T",
                            .outputs = "output: T",
                            .attrs = "N: int >= 1; T: {int32, int64}",
                            .shape = [](InferenceContext& c) { c.set_output(0, {c.num_inputs()}); },
                            .traits = {.value = ShapeValue::kPackOfInputs}}};

const OpRegistration kElement{{.name = "TestElement",
                               .inputs = "vector: int32, at: int32",
                               .outputs = "element: int32",
                               .shape = shapes::scalar,
                               .traits = {.value = ShapeValue::kSliceOfShape}}};

const OpRegistration kReshape{{.name = "TestReshape",
                               .inputs = "x: T, shape: int32",
                               .outputs = "y: T",
                               .attrs = "T: type",
                               .shape =
                                   [](InferenceContext& c) {
                                     c.require_rank(1, 1);
                                     c.set_output(0, c.input_as_shape(1));
                                   },
                               .traits = {.shares_memory = 1, .host_inputs = 2}}};

void never(KernelContext&) {}
const char* refuses_rank_2(const KernelContext& c) {
  return c.input(0).rank() == 2 ? "rank 2 is not for this one" : nullptr;
}
const char* refuses_empty(const KernelContext& c) {
  return c.input(0).num_elements() == 0 ? "nothing to add" : nullptr;
}

const KernelRegistration kAddReference{{.op = "TestAdd",
                                        .kernel_class = "test",
                                        .types = {{"T", {DType::kFloat, DType::kInt32}}},
                                        .run = never}};
const KernelRegistration kAddFast{{.op = "TestAdd",
                                   .name = "fast",
                                   .kernel_class = "test",
                                   .types = {{"T", {DType::kFloat}}},
                                   .priority = 20,
                                   .run = never,
                                   .accepts = refuses_rank_2}};
const KernelRegistration kAddMiddle{{.op = "TestAdd",
                                     .name = "middle",
                                     .kernel_class = "test",
                                     .types = {{"T", {DType::kFloat}}},
                                     .priority = 10,
                                     .run = never,
                                     .accepts = refuses_rank_2}};
const KernelRegistration kNegateOnly{{.op = "TestNegate",
                                      .name = "only",
                                      .kernel_class = "test",
                                      .types = {{"T", {DType::kFloat}}},
                                      .run = never,
                                      .accepts = refuses_empty}};
const KernelRegistration kTupleKernel{{.op = "TestTuple",
                                       .kernel_class = "test",
                                       .types = {{"Tin", {DType::kFloat, DType::kString}}},
                                       .run = never}};

}  // namespace

const OpRegistry& test_ops() {
  static const OpRegistry registry;
  return registry;
}

Node* Builder::arg(const std::string& name, DType dtype, const PartialShape& shape) {
  args.push_back(add("TestArg", name, {}, {{"T", dtype}, {"shape", shape}}));
  return args.back();
}

Node* Builder::constant(const std::string& name, const Array& value) {
  return add("TestConst", name, {}, {{"value", value}, {"dtype", value.dtype()}});
}

Node* Builder::add(std::string_view op, const std::string& name, std::vector<Output> inputs,
                   AttrMap attrs) {
  Graph::NodeSpec spec;
  spec.op = &test_ops().get(op);
  spec.name = name;
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  return graph.add(std::move(spec));
}

std::optional<std::vector<Array>> AddingEvaluator::evaluate(const Node& node,
                                                            std::span<const Array> inputs) {
  ++asked;
  if (node.op().name != "TestAdd" || inputs[0].dtype() != DType::kFloat) return std::nullopt;
  if (!(inputs[0].shape() == inputs[1].shape())) throw InvalidArgumentError("shapes differ");
  Array sum(DType::kFloat, inputs[0].shape());
  for (std::int64_t i = 0; i < sum.num_elements(); ++i) {
    sum.data<float>()[i] = inputs[0].data<float>()[i] + inputs[1].data<float>()[i];
  }
  return std::vector<Array>{sum};
}

}  // namespace tandem
