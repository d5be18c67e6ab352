#include "tandem/graph/internal/replacements.h"

#include <vector>

namespace tandem::passes {

void Replacements::add(Output from, Output to) {
  to = resolve(to);
  if (!(to == from)) by_output_[from] = to;
}

Output Replacements::resolve(Output output) {
  std::vector<Output> passed;
  auto found = by_output_.find(output);
  while (found != by_output_.end()) {
    passed.push_back(output);
    output = found->second;
    found = by_output_.find(output);
  }
  for (const Output& before : passed) by_output_[before] = output;  // chains are walked once
  return output;
}

void Replacements::resolve_inputs(Node* node) {
  if (by_output_.empty()) return;
  for (std::size_t i = 0; i < node->inputs().size(); ++i) {
    const Output now = node->inputs()[i];
    if (!now.node) continue;
    if (const Output to = resolve(now); !(to == now))
      f_.graph.set_input(node, static_cast<int>(i), to);
  }
}

void Replacements::finish() {
  if (by_output_.empty()) return;
  for (const auto& node : f_.graph.nodes()) resolve_inputs(node.get());
  for (Output& result : f_.results) result = resolve(result);
}

}  // namespace tandem::passes
