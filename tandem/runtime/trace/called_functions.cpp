#include "tandem/runtime/trace/called_functions.h"

#include <algorithm>

namespace tandem {
namespace {

void add_called(const Graph& graph, std::vector<const Function*>& called) {
  const auto add = [&](const FunctionRef& f) {
    if (!f || std::find(called.begin(), called.end(), f.get()) != called.end()) return;
    called.push_back(f.get());
    add_called(f->body(), called);
  };
  for (const auto& node : graph.nodes()) {
    if (!calls_functions(node->kind())) continue;
    for (const auto& attr : node->attrs()) {
      if (const auto* one = attr.value.get_if<FunctionRef>()) add(*one);
      if (const auto* many = attr.value.get_if<std::vector<FunctionRef>>())
        std::for_each(many->begin(), many->end(), add);
    }
  }
}

}  // namespace

std::vector<const Function*> called_functions(const Graph& graph) {
  std::vector<const Function*> called;
  add_called(graph, called);
  return called;
}

}  // namespace tandem
