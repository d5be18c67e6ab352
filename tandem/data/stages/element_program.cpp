#include "tandem/data/stages/element_program.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/stages/call_list.h"
#include "tandem/device/device_spec.h"
#include "tandem/graph/rng_position.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem::data {
namespace {

// The pipeline is no part of what its user traces, differentiates or places.
ThreadContext context_for_tracing() {
  ThreadContext context = thread_context();
  context.trace = nullptr;
  context.recorders.clear();
  context.devices.clear();
  context.draws = nullptr;
  return context;
}

// A traced function's plan runs on the host inside the thread that consumes, which is what makes it
// cheap. Ops for other devices are refused rather than moved in silence: functions that are called
// run where they ask.
void check_devices(const Graph& graph) {
  for (const Node* node : graph.topological_order()) {
    const auto type = DeviceSpec::parse(node->requested_device()).type;
    if (!type || *type == "CPU") continue;
    throw UnimplementedError(cat("The function asks for ", node->requested_device(), " for ",
                                 node->name(),
                                 ", but what is traced runs on the host's CPU. Without "
                                 "`traced = true` it is called for each element, and runs there."));
  }
}

// Fewer elements are not worth a trace.
constexpr std::int64_t kFewElements = 16;

}  // namespace

void trace_functions(const DatasetBase& dataset) {
  if (const auto* stage = dynamic_cast<const TracingStage*>(&dataset)) {
    stage->program();
    return;
  }
  for (const DatasetBase* input : dataset.inputs()) trace_functions(*input);
}

bool dtypes_known(const ElementSpec& spec) {
  return std::none_of(spec.begin(), spec.end(),
                      [](const TensorSpec& s) { return s.dtype == DType::kInvalid; });
}

ElementProgram::ElementProgram(const ElementFn& fn, const ElementSpec& input) : input_(input) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const TensorSpec& s : input) {
    dtypes.push_back(s.dtype);
    shapes.push_back(s.shape);
    same_sizes_ = same_sizes_ && s.shape.is_fully_known();
  }
  ThreadContextScope scope(context_for_tracing());
  const std::uint64_t reported = unknown_dim_queries();
  function_ = trace_function("map", dtypes, shapes, [&](std::span<const Tensor> args) {
    ThreadContext& thread = thread_context();
    thread.draws = std::make_shared<RngPosition>(RngPosition::Stream(), 0, thread.trace);
    Element element(args.begin(), args.end());
    fn.apply(element);
    for (const Tensor& t : element) spec_.push_back({t.dtype(), t.partial_shape()});
    return element;
  });
  asked_unknown_sizes_ = unknown_dim_queries() != reported;
  check_devices(function_.graph());
  for (const Tensor& t : function_.captures()) captures_.push_back(t.array());
}

bool ElementProgram::stateless() const { return !function_.function()->stateful(); }

bool ElementProgram::may_draw() const {
  if (stateless()) return false;
  const auto nodes = function_.graph().topological_order();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
    if (!node->op().traits.stateful) return false;
    if (node->op().traits.keeps_state) return true;
    return std::any_of(node->attrs().begin(), node->attrs().end(), [](const AttrMap::Entry& attr) {
      return attr.value.get_if<FunctionRef>() != nullptr ||
             attr.value.get_if<std::vector<FunctionRef>>() != nullptr;
    });
  });
}

bool ElementProgram::worth_running(const Element& element) const {
  if (same_sizes_) return true;
  const auto has = [&](const std::vector<Shape>& sizes) {
    return std::equal(sizes.begin(), sizes.end(), element.begin(), element.end(),
                      [](const Shape& size, const Tensor& t) { return size == t.array().shape(); });
  };
  std::lock_guard lock(mutex_);
  if (std::any_of(planned_.begin(), planned_.end(), has)) return true;
  if (planned_.size() == kMaxPlans) return false;
  std::vector<Shape> sizes;
  for (const Tensor& t : element) sizes.push_back(t.array().shape());
  planned_.push_back(std::move(sizes));
  return true;
}

void ElementProgram::check(const Element& element) const {
  bool fits = element.size() == input_.size();
  for (std::size_t i = 0; fits && i < element.size(); ++i) {
    const Array& array = element[i].array();
    fits = array.dtype() == input_[i].dtype && input_[i].shape.is_compatible(array.shape());
  }
  if (fits) return;
  std::string has;
  for (const Tensor& t : element) has += cat(has.empty() ? "" : ", ", t.dtype(), t.shape());
  throw InvalidArgumentError(cat("The function was traced for elements of ", to_string(input_),
                                 ", but an element is (", has, ")."));
}

// One call of the program, of a checked element.
class ElementProgram::Call {
 public:
  Call(const ElementProgram& program, const Element& element)
      : program_(program), args_(element.size() + program.captures_.size()) {
    for (std::size_t i = 0; i < element.size(); ++i) args_[i] = element[i].array();
    std::copy(program.captures_.begin(), program.captures_.end(),
              args_.items().begin() + static_cast<std::ptrdiff_t>(element.size()));
  }
  void run(std::span<const Array> places, std::span<Array> results) {
    FunctionExecutor::call_between(*program_.function_.function(), args_.items(), places, results,
                                   *Runtime::current().devices().front());
  }

 private:
  const ElementProgram& program_;
  CallList<Array> args_;
};

void ElementProgram::run(Element& element, std::span<const Array> places,
                         std::span<Array> results) const {
  check(element);
  Call call(*this, element);
  element.clear();  // the program may then take over their memory
  call.run(places, results);
}

void ElementProgram::run_kept(const Element& element, std::span<Array> results) const {
  check(element);
  Call(*this, element).run({}, results);
}

void ElementProgram::apply(Element& element) const {
  CallList<Array> results(spec_.size());
  run(element, {}, results.items());
  element.clear();
  for (Array& result : results.items()) element.emplace_back(std::move(result));
}

std::shared_ptr<const ElementProgram> trace_map(const ElementFn& fn, const DatasetBase& input,
                                                std::optional<bool> traced) {
  if (!traced.value_or(fn.stateless())) return nullptr;
  if (traced) return std::make_shared<const ElementProgram>(fn, input.element_spec());
  const std::int64_t elements = input.cardinality();
  if (elements >= 0 && elements < kFewElements) return nullptr;
  try {
    trace_functions(input);
    if (input.num_components() < 0) return nullptr;
    const ElementSpec& spec = input.element_spec();
    if (!dtypes_known(spec)) return nullptr;
    auto program = std::make_shared<const ElementProgram>(fn, spec);
    return program->asked_unknown_sizes() ? nullptr : program;
  } catch (const std::exception&) {
    return nullptr;  // it reads values, say; an element will throw what is wrong with it
  }
}

std::shared_ptr<const ElementProgram> trace_for_op(const ElementFn& fn,
                                                   std::shared_ptr<const ElementProgram> program,
                                                   const DatasetBase& input, const char* stage) {
  if (program) return program;
  try {
    return trace_map(fn, input, true);
  } catch (const Error& error) {
    throw UnimplementedError(cat("The function of a ", stage, " cannot be traced: ", error.what()));
  }
}

ElementFn by_program(const ElementFn& fn, std::shared_ptr<const ElementProgram> program) {
  if (!program) return fn;
  return fn.with_implementation([program, fn](Element& element) {
    if (program->worth_running(element)) {
      program->apply(element);
    } else {
      fn.apply(element);
    }
  });
}

}  // namespace tandem::data
