#include "tandem/graph/function_shapes.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/internal/infer_node.h"

namespace tandem {
namespace {

constexpr int kDeepest = 50;

using Values = std::vector<KnownValue>;

struct Answers {
  FunctionRef function;
  std::vector<std::pair<Values, Values>> by_args;
};

struct Memory {
  std::unordered_map<const Function*, Answers> answers;
  int depth = 0;
};

thread_local std::optional<Memory> memory;

struct Deeper {
  Deeper() { ++memory->depth; }
  ~Deeper() { --memory->depth; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
};

// Small bodies may be inferred for more shapes than large ones.
std::size_t most_answers(const Function& f) {
  return std::clamp<std::size_t>(100'000 / (f.body().num_nodes() + 1), 4, 64);
}

Values of_any_call(const Function& f) {
  Values values;
  for (PartialShape& shape : f.result_shapes()) values.push_back({std::move(shape), std::nullopt});
  return values;
}

// What is known in a body that runs for one call.
class CallOutputs final : public internal::KnownOutputs {
 public:
  explicit CallOutputs(const Function& f)
      : shapes_(static_cast<std::size_t>(f.body().id_limit())) {}

  const PartialShape& shape(Output output) const override {
    const auto& known = shapes_[static_cast<std::size_t>(output.node->id())];
    return known.empty() ? KnownOutputs::shape(output)
                         : known[static_cast<std::size_t>(output.index)];
  }
  std::optional<PartialShape> held(const Node& arg) const override {
    const auto found = held_.find(&arg);
    return found == held_.end() ? std::nullopt : std::optional(found->second);
  }

  void set(const Node& node, std::vector<PartialShape> shapes) {
    shapes_[static_cast<std::size_t>(node.id())] = std::move(shapes);
  }
  void set_arg(const Node& arg, const KnownValue& value) {
    // A function may be called with other shapes than it was traced for.
    const PartialShape& own = arg.output_shape(0);
    set(arg, {own.is_compatible(value.shape) ? own.merge(value.shape) : value.shape});
    if (value.held) held_.emplace(&arg, *value.held);
  }

 private:
  std::vector<std::vector<PartialShape>> shapes_;
  std::unordered_map<const Node*, PartialShape> held_;
};

std::vector<const Node*> needed_in_order(const Function& f) {
  const std::vector<Node*> order = f.body().topological_order();
  std::vector<bool> needed(static_cast<std::size_t>(f.body().id_limit()), false);
  for (const Output& r : f.results()) needed[static_cast<std::size_t>(r.node->id())] = true;
  std::vector<const Node*> nodes;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    if (!needed[static_cast<std::size_t>((*at)->id())]) continue;
    nodes.push_back(*at);
    for (const Output& in : (*at)->inputs()) needed[static_cast<std::size_t>(in.node->id())] = true;
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

Values infer_body(const Function& f, const Values& args) {
  CallOutputs known(f);
  for (std::size_t i = 0; i < args.size(); ++i) known.set_arg(*f.args()[i], args[i]);
  for (const Node* node : needed_in_order(f)) {
    if (node->kind() == NodeKind::kArg) continue;
    try {
      known.set(*node, internal::infer_outputs(*node, known));
    } catch (const Error&) {  // its own shapes are those of any call
    }
  }
  Values results;
  for (const Output& r : f.results())
    results.push_back({known.shape(r), internal::held_shape(r, known)});
  return results;
}

}  // namespace

InferenceMemory::InferenceMemory() : outermost_(!memory) {
  if (outermost_) memory.emplace();
}

InferenceMemory::~InferenceMemory() {
  if (outermost_) memory.reset();
}

std::vector<KnownValue> infer_results(const FunctionRef& function,
                                      const std::vector<KnownValue>& args) {
  const InferenceMemory scope;
  if (args.size() != function->args().size() || memory->depth == kDeepest)
    return of_any_call(*function);
  // Inferring the body adds functions, which moves none of those that are there.
  Answers& answers = memory->answers[function.get()];
  answers.function = function;
  for (const auto& [known_args, results] : answers.by_args) {
    if (known_args == args) return results;
  }
  if (answers.by_args.size() >= most_answers(*function)) return of_any_call(*function);
  const Deeper deeper;
  Values results = infer_body(*function, args);
  answers.by_args.emplace_back(args, results);
  return results;
}

}  // namespace tandem
