#include "tandem/data/stages/condition.h"

#include <optional>
#include <utility>

#include "tandem/graph/graph.h"

namespace tandem::data {
namespace {

// Few ops are called as fast as a plan of them runs.
constexpr int kWorthwhile = 3;

int count_ops(const ElementProgram& program) {
  int ops = 0;
  for (const Node* node : program.function().graph().topological_order()) {
    ops += node->kind() != NodeKind::kArg && node->kind() != NodeKind::kConst ? 1 : 0;
  }
  return ops;
}

}  // namespace

Condition::Condition(ElementPredicate predicate, const DatasetBase& input)
    : predicate_(std::move(predicate)), input_(input) {}

const std::shared_ptr<const ElementProgram>& Condition::program() const {
  std::call_once(tracing_, [this] { trace(); });
  return program_;
}

void Condition::trace() const {
  if (!predicate_.function()) return;
  auto program = trace_map(*predicate_.function(), input_, std::nullopt);
  if (!program || program->spec() != ElementSpec{{DType::kBool, PartialShape::scalar()}}) return;
  pays_ = count_ops(*program) >= kWorthwhile;
  program_ = std::move(program);
}

bool Condition::test(const Element& element) const {
  const ElementProgram* program = this->program().get();
  if (!pays_ || !program->worth_running(element)) return predicate_.test(element);
  Array result;
  program->run_kept(element, {&result, 1});
  return *result.data<bool>();
}

}  // namespace tandem::data
