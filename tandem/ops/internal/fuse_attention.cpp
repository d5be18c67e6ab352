#include "tandem/ops/internal/fuse_attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/graph/internal/attention_axes.h"
#include "tandem/graph/rewrite.h"
#include "tandem/ops/internal/contraction.h"

namespace tandem::internal {
namespace {

// The one element of a constant.
std::optional<float> constant_number(const Output& o) {
  const Array* value = free_constant(o);
  if (!value || value->num_elements() != 1) return std::nullopt;
  switch (value->dtype()) {
    case DType::kFloat: return *value->data<float>();
    case DType::kHalf: return static_cast<float>(*value->data<Half>());
    case DType::kBFloat16: return static_cast<float>(*value->data<BFloat16>());
    default: return std::nullopt;
  }
}

bool is_all_true(const Output& o) {
  const Array* value = is_op(o, "Fill") ? free_constant(o.node->inputs()[1]) : free_constant(o);
  if (!value || value->dtype() != DType::kBool) return false;
  const bool* at = value->data<bool>();
  return std::all_of(at, at + value->num_elements(), [](bool b) { return b; });
}

// A mask as small as it is known to be.
Output smallest_mask(Output o) {
  while (true) {
    if (is_op(o, "BroadcastTo")) {
      o = o.node->inputs()[0];
    } else if (is_op(o, "LogicalAnd") && is_all_true(o.node->inputs()[0])) {
      o = o.node->inputs()[1];
    } else if (is_op(o, "LogicalAnd") && is_all_true(o.node->inputs()[1])) {
      o = o.node->inputs()[0];
    } else {
      return o;
    }
  }
}

Array number(DType dtype, float value) {
  Array a(dtype, Shape{});
  if (dtype == DType::kHalf) {
    *a.data<Half>() = Half(value);
  } else if (dtype == DType::kBFloat16) {
    *a.data<BFloat16>() = BFloat16(value);
  } else {
    *a.data<float>() = value;
  }
  return a;
}

// Looks for an attention from its end to its beginning.
class Attention {
 public:
  explicit Attention(RewriteContext& r) : r_(r) {}

  bool find() {
    const auto p = contraction({&r_.node(), 0});
    if (!p) return false;
    for (const bool first : {true, false}) {
      const LabelledOperand& probabilities = first ? p->a : p->b;
      value_ = first ? p->b : p->a;
      output_ = p->result;
      scores_ = probabilities.axes;
      probabilities_ = probabilities.value;
      steps_.clear();
      if (!scores_.empty() && has_label(value_.axes, scores_.back()) &&
          !has_label(output_, scores_.back()) && follow(probabilities.value, false)) {
        return true;
      }
    }
    return false;
  }

  void replace() {
    std::vector<Output> inputs{query_.value, key_.value, value_.value};
    take_scale();
    name_masks();
    std::vector<std::string> ops;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      ops.push_back(step->op);
      inputs.insert(inputs.end(), step->args.begin(), step->args.end());
    }
    Node* fused = r_.add("_FusedAttention", std::move(inputs),
                         AttrMap{{"fused_ops", ops}, {"axes", axes_}, {"scale", scale_}});
    r_.graph().set_output_shape(fused, 0, r_.node().output_shape(0));
    r_.replace({&r_.node(), 0}, {fused, 0});
  }

 private:
  static constexpr std::size_t kMaxSteps = 8;
  static constexpr int kInner = -1;  // the label of what query and key are multiplied along
  struct Step {
    std::string op;
    std::vector<Output> args;
  };

  // Constant factors of the scores before anything else is done to them.
  void take_scale() {
    while (!steps_.empty()) {
      const Step& first = steps_.back();
      const bool divides = first.op == "RealDiv";
      if (!divides && first.op != "Mul") return;
      const std::optional<float> factor = constant_number(first.args[0]);
      if (!factor) return;
      int exponent = 0;
      // 1 / 3 is rounded, which shows where large numbers are added to the scores.
      const bool exact = !divides || std::frexp(*factor, &exponent) == 0.5f;
      if (!(exact || dtype() != DType::kFloat)) return;
      scale_ = divides ? scale_ / *factor : scale_ * *factor;
      steps_.pop_back();
    }
  }

  // Replacing scores by a finite number that is lower than any, or probabilities by zero, is a
  // mask.
  void name_masks() {
    const float lowest = dtype() == DType::kHalf ? -3e4f : -1e8f;
    bool softmax = true;  // comes before the step
    for (Step& step : steps_) {
      if (step.op == "Softmax") softmax = false;
      if (step.op != "SelectV2") continue;
      const std::optional<float> other = constant_number(step.args[1]);
      if (!other || !std::isfinite(*other)) continue;
      if (softmax ? *other == 0 : *other <= lowest) step = {"Mask", {step.args[0]}};
    }
  }
  DType dtype() const { return r_.node().output_dtype(0); }

  // Those of TensorFlow 1, in which a new constant would lie outside.
  bool has_loops() const {
    const auto& nodes = r_.graph().nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const auto& node) { return node->kind() == NodeKind::kEnter; });
  }

  bool may_take(const Node& node) const {
    return node.control_inputs().empty() && node.requested_device() == r_.node().requested_device();
  }

  // What of the chain from probabilities to scores ends with `o`, which so many read of what is
  // found; a softmax comes after it if `softmax`.
  bool follow(const Output& o, bool softmax, int readers = 1) {
    if (o.index != 0 || !may_take(*o.node) || r_.uses().of(o.node) != readers ||
        steps_.size() > kMaxSteps)
      return false;
    const Node& node = *o.node;
    const auto& in = node.inputs();
    const std::string_view op = node.op().name;
    if (op == "Softmax") return !softmax && take("Softmax", {}, in[0], o, true);
    if (op == "Mul" || op == "AddV2" || op == "Add") {
      const char* name = op == "Mul" ? "Mul" : "AddV2";
      return take(name, {in[1]}, in[0], o, softmax) || take(name, {in[0]}, in[1], o, softmax);
    }
    if (op == "Sub" || op == "RealDiv") return take(std::string(op), {in[1]}, in[0], o, softmax);
    if (op == "SelectV2") return take_select(o, softmax);
    if (!softmax) return false;
    if (const auto order = transpose_order(o)) {
      const Output before_it = in[0];
      return r_.uses().of(before_it.node) == 1 && begin(before_it, labels_before(*order, scores_));
    }
    return begin(o, scores_);
  }

  // A step from `from` to `to`, and all before it.
  bool take(std::string op, std::vector<Output> args, const Output& from, const Output& to,
            bool softmax) {
    const PartialShape& shape = shape_of(to);
    if (!shape.is_fully_known() || !(shape_of(from) == shape)) return false;
    for (const Output& arg : args)
      if (!shape_of(arg).is_fully_known()) return false;
    steps_.push_back({std::move(op), std::move(args)});
    if (follow(from, softmax)) return true;
    steps_.pop_back();
    return false;
  }

  bool take_select(const Output& o, bool softmax) {
    const auto& in = o.node->inputs();
    const Output keep = smallest_mask(in[0]), other = in[2];
    if (take("SelectV2", {keep, other}, in[1], o, softmax)) return true;
    // where(keep, x, zeros_like(x)), and where(keep, x, x - c) as a sum.
    const bool zeros = is_op(other, "ZerosLike") && !has_loops(), less = is_op(other, "Sub");
    if (!(zeros || less) || !(other.node->inputs()[0] == in[1]) || r_.uses().of(other.node) != 1 ||
        !(shape_of(in[1]) == shape_of(o)) || !shape_of(keep).is_fully_known())
      return false;
    const DType dtype = o.node->output_dtype(0);
    const std::optional<float> by =
        less ? constant_number(other.node->inputs()[1]) : std::optional<float>();
    if (less && !by) return false;
    const Output zero = r_.add_constant(number(dtype, 0));
    if (zeros) {
      steps_.push_back({"SelectV2", {keep, zero}});
    } else {
      const Output lowered = r_.add_constant(number(dtype, -*by));
      Node* addend = r_.add("SelectV2", {keep, zero, lowered}, {});
      r_.graph().set_output_shape(addend, 0, shape_of(keep));
      steps_.push_back({"AddV2", {{addend, 0}}});
    }
    if (follow(in[1], softmax, 2)) return true;
    steps_.pop_back();
    return false;
  }

  // The product that makes the scores, whose axes have these labels.
  bool begin(const Output& o, const Labels& axes) {
    auto p = contraction(o);
    if (!p || !may_take(*o.node) || p->result.size() != axes.size()) return false;
    // What is summed over must be one axis of both: "td,sx->ts" is another product.
    const auto sums_alone = [&](const Labels& labels, const Labels& others) {
      return std::any_of(labels.begin(), labels.end(), [&](int label) {
        return !has_label(p->result, label) && !has_label(others, label);
      });
    };
    if (sums_alone(p->a.axes, p->b.axes) || sums_alone(p->b.axes, p->a.axes)) return false;
    const auto rename = [&](Labels& labels) {
      for (int& label : labels) {
        const auto at = std::find(p->result.begin(), p->result.end(), label);
        label =
            at == p->result.end() ? kInner : axes[static_cast<std::size_t>(at - p->result.begin())];
      }
    };
    rename(p->a.axes);
    rename(p->b.axes);
    const int keys = scores_.back();
    const bool turned = has_label(p->a.axes, keys);
    query_ = turned ? p->b : p->a;
    key_ = turned ? p->a : p->b;
    if (has_label(query_.axes, keys) || !has_label(key_.axes, keys)) return false;
    scale_ = 1;
    return name_axes();
  }

  // Gives every label its letter, and operands the order of what they are made of.
  bool name_axes() {
    letters_.assign(1, {kInner, 'D'});
    const auto named = [&](int label) {
      return std::any_of(letters_.begin(), letters_.end(),
                         [&](const auto& known) { return known.first == label; });
    };
    letters_.emplace_back(scores_.back(), 'S');
    // Queries are an axis of scores that keys and values lack, the last one if there are several.
    for (std::size_t i = scores_.size() - 1; i-- > 0;) {
      const int label = scores_[i];
      if (has_label(query_.axes, label) && !has_label(key_.axes, label) &&
          !has_label(value_.axes, label) && has_label(output_, label)) {
        letters_.emplace_back(label, 'T');
        break;
      }
    }
    if (letters_.size() != 3 || scores_.size() > 4) return false;
    for (const int label : scores_)
      if (!named(label)) letters_.emplace_back(label, letters_.size() == 3 ? 'B' : 'N');
    for (const int label : value_.axes) {
      if (named(label)) continue;
      if (!has_label(output_, label)) return false;
      letters_.emplace_back(label, 'E');
    }
    for (LabelledOperand* operand : {&query_, &key_, &value_}) look_through(*operand);
    axes_ = {text(query_.axes), text(key_.axes), text(scores_), text(value_.axes), text(output_)};
    try {
      AttentionAxes::read(axes_);
    } catch (const InvalidArgumentError&) {
      return false;  // a layout that the op does not have
    }
    return is_gain();
  }

  // Operands in another order than that of the scores' matrices would have to be converted to it.
  // Without that, two products and a softmax are as fast while scores stay in the cache of a core,
  // and faster than turning keys for a few queries.
  bool is_gain() const {
    constexpr std::int64_t kOwnCache = std::int64_t{2} << 20;  // bytes, of most server processors
    constexpr std::int64_t kFewQueries = 64;
    const std::string batches = axes_[AttentionAxes::kScores].substr(0, scores_.size() - 2);
    for (const std::string& axes : axes_) {
      std::size_t next = 0;  // batches are all in front, in this order
      for (std::size_t i = 0; i + 2 < axes.size(); ++i) {
        next = batches.find(axes[i], next);
        if (next == std::string::npos) return true;
      }
    }
    const PartialShape& scores = shape_of(probabilities_);
    return scores.num_elements() * static_cast<std::int64_t>(sizeof(float)) >= kOwnCache &&
           scores.dim(scores.rank() - 2) >= kFewQueries;
  }

  char letter(int label) const {
    for (const auto& [known, letter] : letters_)
      if (known == label) return letter;
    return '?';
  }
  std::string text(const Labels& labels) const {
    std::string all;
    for (const int label : labels) all += letter(label);
    return all;
  }

  // Reads what a transpose reads, and multiplies scores by what it was multiplied by.
  void look_through(LabelledOperand& operand) {
    while (operand.value.index == 0) {
      const Node& node = *operand.value.node;
      if (!may_take(node)) return;
      if (const auto order = transpose_order(operand.value)) {
        const Labels axes = labels_before(*order, operand.axes);
        const char last = letter(axes.back());
        if (last == 'B' || last == 'N') return;
        operand = {node.inputs()[0], axes};
        continue;
      }
      if (&operand == &value_ || !is_op(operand.value, "Mul") || r_.uses().of(&node) != 1) return;
      const auto& in = node.inputs();
      const std::optional<float> first = constant_number(in[0]);
      const std::optional<float> factor = first ? first : constant_number(in[1]);
      const Output& rest = in[first ? 1 : 0];
      if (!factor || !(shape_of(rest) == shape_of(operand.value))) return;
      scale_ *= *factor;
      operand.value = rest;
    }
  }

  RewriteContext& r_;
  Output probabilities_;
  Labels scores_, output_;
  LabelledOperand query_, key_, value_;
  std::vector<Step> steps_;  // the last one first
  std::vector<std::pair<int, char>> letters_;
  std::vector<std::string> axes_;
  float scale_ = 1;
};

}  // namespace

bool fuse_attention(RewriteContext& r) {
  Attention attention(r);
  if (!attention.find()) return false;
  attention.replace();
  return true;
}

bool fuse_attention_transpose(RewriteContext& r) {
  const auto order = transpose_order({&r.node(), 0});
  const Output in = r.node().inputs()[0];
  if (!order || !is_op(in, "_FusedAttention") || r.uses().of(in.node) != 1) return false;
  auto axes = in.node->attr<std::vector<std::string>>("axes");
  std::string& output = axes.back();
  if (order->size() != output.size()) return false;
  std::string turned;
  for (const std::int64_t axis : *order) turned += output[static_cast<std::size_t>(axis)];
  if (turned.back() != 'E') return false;
  output = turned;
  AttrMap attrs = in.node->attrs();
  attrs.set("axes", axes);
  Node* fused = r.add("_FusedAttention", in.node->inputs(), std::move(attrs));
  r.graph().set_output_shape(fused, 0, r.node().output_shape(0));
  r.replace({&r.node(), 0}, {fused, 0});
  return true;
}

}  // namespace tandem::internal
