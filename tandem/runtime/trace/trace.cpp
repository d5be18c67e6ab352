#include "tandem/runtime/trace.h"

#include <algorithm>
#include <atomic>
#include <cctype>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/device/device_spec.h"
#include "tandem/graph/collective_op.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/eager/eager_choice.h"
#include "tandem/runtime/execute/undefined_hint.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

std::uint64_t next_trace_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Trace::Trace(const OpRegistry& ops, std::string name, Trace* outer)
    : ops_(ops), name_(std::move(name)), id_(next_trace_id()), outer_(outer) {}
Trace::~Trace() = default;

Tensor Trace::symbol(Output output) {
  Tensor tensor(new TensorImpl);
  tensor.impl()->node = output;
  tensor.impl()->graph = graph_.life();
  tensor.impl()->trace_id = id_;
  return tensor;
}

namespace {

Node* add_arg_node(Graph& graph, const OpRegistry& ops, DType dtype, const PartialShape& shape,
                   const std::string& name, std::size_t index) {
  Graph::NodeSpec spec;
  spec.op = &ops.of_kind(NodeKind::kArg);
  spec.name = name;
  spec.attrs = AttrMap{{"T", dtype}, {"index", static_cast<std::int64_t>(index)}};
  Node* node = graph.add(std::move(spec));
  graph.set_output_shape(node, 0, shape);
  return node;
}

}  // namespace

namespace {

// A variable's own name, as far as nodes can have it.
std::string name_of_captured(const TensorImpl& impl) {
  const Array& value = impl.array;
  if (impl.symbolic() || value.dtype() != DType::kResource || value.num_elements() != 1)
    return "captured";
  const ResourceHandle& handle = *value.data<ResourceHandle>();
  if (handle.empty()) return "captured";
  const std::string& name = handle.info().name;
  const bool fits = !name.empty() && std::isalnum(static_cast<unsigned char>(name[0])) &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) || c == '_' || c == '/' || c == '.' || c == '-';
                    });
  return fits ? name : "captured";
}

}  // namespace

Tensor Trace::add_arg(DType dtype, const PartialShape& shape, const std::string& name) {
  args_.push_back(add_arg_node(graph_, ops_, dtype, shape, name, args_.size()));
  return symbol({args_.back(), 0});
}

Output Trace::resolve(const Tensor& tensor) {
  if (!tensor.defined()) {
    throw InvalidArgumentError(
        cat("An undefined tensor was passed to an op. Give it a value first.",
            undefined_tensor_hint()));
  }
  const TensorImpl* impl = tensor.impl();
  if (impl->symbolic() && impl->trace_id == id_) return impl->node;
  if (!impl->symbolic() && impl->trace_id == id_) {  // a value made in the course of the trace
    const auto found = constants_.find(impl);
    if (found != constants_.end()) return found->second;
    Graph::NodeSpec spec;
    spec.op = &ops_.of_kind(NodeKind::kConst);
    spec.name = thread_context().name_scope + "Const";
    spec.attrs = AttrMap{{"value", impl->array}, {"dtype", impl->array.dtype()}};
    const Output output{graph_.add(std::move(spec)), 0};
    constants_.emplace(impl, output);
    constants_kept_.push_back(tensor);
    return output;
  }
  if (impl->symbolic()) {
    const Trace* owner = outer_;
    while (owner && owner->id_ != impl->trace_id) owner = owner->outer_;
    if (!owner) {
      throw FailedPreconditionError(
          cat("Tensor '", impl->symbol().name(),
              "' belongs to another function, whose tracing has ended or which does "
              "not enclose '",
              name_, "'. Return it from that function and pass it in as an argument."));
    }
  }
  const auto found = captured_.find(impl);
  if (found != captured_.end()) return found->second;
  Node* arg = add_arg_node(graph_, ops_, tensor.dtype(), tensor.partial_shape(),
                           name_of_captured(*impl), 0);
  // A handle informs shape functions of the variable behind it.
  if (tensor.dtype() == DType::kResource && !impl->symbolic())
    graph_.set_attr(arg, "_handle", impl->array);
  capture_args_.push_back(arg);
  captures_.push_back(tensor);
  captured_.emplace(impl, Output{arg, 0});
  return {arg, 0};
}

std::vector<Tensor> Trace::add_op(const OpDef& op, std::span<const Tensor> inputs,
                                  const AttrMap& attrs) {
  Graph::NodeSpec spec;
  spec.op = &op;
  const ThreadContext& context = thread_context();
  spec.name = context.name_scope + op.name;
  spec.attrs = attrs;
  spec.inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) spec.inputs.push_back(resolve(input));
  if (!context.devices.empty()) spec.device = context.devices.back();
  if (!spec.device.empty()) check_device_index(Runtime::current(), DeviceSpec::parse(spec.device));
  // A scope within goes first.
  if (!colocations_.empty() && spec.device.empty()) {
    const Colocation& with = colocations_.back();
    spec.attrs.set("_class", std::vector<std::string>{"loc:@" + with.name});
    spec.device = with.device;  // for what optimization does before anything is placed
  }
  spec.where = StackTrace::capture();
  Node* node = graph_.add(std::move(spec));
  if (op.traits.stateful) order_stateful(node);
  std::vector<Tensor> outputs;
  outputs.reserve(static_cast<std::size_t>(node->num_outputs()));
  for (int i = 0; i < node->num_outputs(); ++i) outputs.push_back(symbol({node, i}));
  return outputs;
}

void Trace::begin_colocation(const Node& node) {
  colocations_.push_back({node.name(), node.requested_device()});
}
void Trace::end_colocation() { colocations_.pop_back(); }

void Trace::order_stateful(Node* node) {
  effects_.push_back(node);
  bool touches_resource = false;
  for (const Output& in : node->inputs()) {
    if (in.node->output_dtype(in.index) != DType::kResource) continue;
    touches_resource = true;
    Touch& touch = resources_[in.node];
    if (node->op().traits.reads_only) {
      if (touch.last_writer) graph_.add_control_input(node, touch.last_writer);
      touch.readers.push_back(node);
    } else {
      if (touch.last_writer) graph_.add_control_input(node, touch.last_writer);
      for (Node* reader : touch.readers) graph_.add_control_input(node, reader);
      touch.readers.clear();
      touch.last_writer = node;
    }
  }
  // Random generators keep state of their own: their order among each other shows nowhere.
  // Functions may do anything.
  const OpDef& op = node->op();
  if (op.traits.keeps_state || (touches_resource && node->kind() == NodeKind::kPlain) ||
      is_collective(op))
    return;
  if (last_effect_) graph_.add_control_input(node, last_effect_);
  last_effect_ = node;
}

FunctionRef Trace::finish(std::span<const Tensor> results, bool may_optimize) {
  std::vector<Output> outputs;
  for (const Tensor& r : results) outputs.push_back(resolve(r));
  std::vector<Node*> args = args_;
  for (Node* arg : capture_args_) {
    graph_.set_attr(arg, "index", static_cast<std::int64_t>(args.size()));
    args.push_back(arg);
  }
  std::vector<Node*> effects;
  for (Node* node : effects_) {
    if (!node->op().traits.reads_only && !node->op().traits.keeps_state) effects.push_back(node);
  }
  return std::make_shared<const Function>(name_, std::move(graph_), std::move(args),
                                          std::move(outputs), std::move(effects), may_optimize);
}

TraceScope::TraceScope(Trace* trace) : saved_(thread_context().trace) {
  thread_context().trace = trace;
}
TraceScope::~TraceScope() { thread_context().trace = saved_; }

ThreadContext tracing_context(Trace& trace) {
  ThreadContext context = thread_context();
  context.trace = &trace;
  context.recorders.clear();
  context.name_scope.clear();
  return context;
}

}  // namespace tandem
