// Words that strings are split into only to be looked up in a table become numbers in one op, which
// makes no strings of them. It takes in what the strings go through before: small letters, and the
// removal of punctuation.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/fusion_pass.h"
#include "tandem/graph/fusion_target.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/graph/rewrite.h"

namespace tandem::passes {
namespace {

bool is_op(const Node& node, const char* name) { return node.op().name == name; }

// The text of a constant string, or null.
const std::string* text_of(const Output& value) {
  if (value.node->kind() != NodeKind::kConst) return nullptr;
  const Array& array = *value.node->attr<std::shared_ptr<const Array>>("value");
  return array.dtype() == DType::kString && array.rank() == 0 ? array.data<std::string>() : nullptr;
}

bool is_given(const Output& value) {
  return value.node->kind() == NodeKind::kConst || value.node->kind() == NodeKind::kArg;
}

class Fuser {
 public:
  Fuser(MutableFunction& f, const OpRegistry& ops) : f_(f), ops_(ops), uses_(f) {}

  bool run() {
    std::vector<Node*> finds;
    for (Node* node : f_.graph.topological_order()) {
      if (is_op(*node, "LookupTableFindV2")) finds.push_back(node);
    }
    bool changed = false;
    for (Node* find : finds) changed = try_at(find) || changed;
    if (changed || (f_.target && !finds.empty())) prune(f_);
    return changed;
  }

 private:
  // Nothing waits for the node, and it waits for nothing.
  bool is_free(const Node& node) const {
    return node.control_inputs().empty() && uses_.waiting_for(&node) == 0;
  }
  bool together(const Node& a, const Node& b) const {
    return f_.target ? f_.target->together(a, b) : a.requested_device() == b.requested_device();
  }
  // Whether the node is one op's that only the chain reads, on the device of the others.
  bool is_step(const Node& node, const Node& find) const {
    return uses_.of(Output{const_cast<Node*>(&node), 0}) == 1 && is_free(node) &&
           together(node, find);
  }

  bool try_at(Node* find) {
    const auto& given = find->inputs();
    Node* split = given[1].node;
    if (!is_op(*split, "StringSplitV2") || given[1].index != 1 || uses_.of(given[1]) != 1) {
      return false;
    }
    const std::string* separator = text_of(split->inputs()[1]);
    if (separator == nullptr || !separator->empty() || split->attr<std::int64_t>("maxsplit") >= 0 ||
        !is_free(*split) || !is_free(*find) || !together(*split, *find)) {
      return false;
    }
    // Nothing else may come between the op's inputs and its outputs.
    if (!is_given(given[0]) || !is_given(given[2])) return false;
    if (const DType dtype = find->output_dtype(0);
        dtype == DType::kString || dtype == DType::kResource || dtype == DType::kVariant) {
      return false;
    }

    std::vector<const Node*> replaced{split, find};
    Output text = split->inputs()[0];
    Graph::NodeSpec spec;
    if (const Node& step = *text.node; is_step(step, *find)) {
      const std::string* pattern = nullptr;
      const std::string* rewrite = nullptr;
      if (is_op(step, "RegexReplace")) {
        pattern = text_of(step.inputs()[1]);
        rewrite = text_of(step.inputs()[2]);
      } else if (is_op(step, "StaticRegexReplace")) {
        pattern = &step.attr<std::string>("pattern");
        rewrite = &step.attr<std::string>("rewrite");
      }
      if (pattern && rewrite && !pattern->empty() && rewrite->empty() &&
          step.attr<bool>("replace_global")) {
        spec.attrs.set("removed", *pattern);
        replaced.insert(replaced.begin(), &step);
        text = step.inputs()[0];
      }
    }
    if (const Node& step = *text.node; is_op(step, "StringLower") && is_step(step, *find) &&
                                       step.attr<std::string>("encoding").empty()) {
      spec.attrs.set("lower", true);
      replaced.insert(replaced.begin(), &step);
      text = step.inputs()[0];
    }
    spec.op = &ops_.get("_SplitAndFind");
    spec.attrs.set("Tout", find->output_dtype(0));
    spec.inputs = {given[0], text, given[2]};
    spec.name = cat(find->name(), "/fused");
    spec.device = find->requested_device();
    spec.where = find->where();
    Node* fused = f_.graph.add(std::move(spec));
    if (f_.target && !f_.target->accepts({&fused, 1}, replaced)) return false;
    uses_.added(fused);
    for (const auto& [from, to] : {std::pair(Output{split, 0}, 0), std::pair(Output{find, 0}, 1),
                                   std::pair(Output{split, 2}, 2)}) {
      f_.replace(from, {fused, to});
      uses_.replaced(from, {fused, to});
    }
    return true;
  }

  MutableFunction& f_;
  const OpRegistry& ops_;
  UseCounts uses_;
};

const FusionPassRegistration kFuseLookup{
    {.name = "lookup",
     .enabled = [](const OptimizerOptions& options) { return options.remapping; },
     .run = [](MutableFunction& f, const OpRegistry& ops,
               Evaluator&) { return Fuser(f, ops).run(); }}};

}  // namespace
}  // namespace tandem::passes
