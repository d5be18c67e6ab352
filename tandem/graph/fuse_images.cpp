// A resize takes in the elementwise ops that follow it, and the decoding of the JPEG image before
// it: one op reads lines, makes rows of them and finishes each row while it is in the nearest
// cache.

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/internal/fusible.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/graph/rewrite.h"

namespace tandem::passes {
namespace {

constexpr std::size_t kMostOps = 64;
constexpr std::size_t kMostArgs = 24;

bool is_op(const Node& node, std::string_view name) { return node.op().name == name; }

bool is_constant_zero(const Output& in) {
  if (in.node->kind() != NodeKind::kConst) return false;
  const Array& value = *in.node->attr<std::shared_ptr<const Array>>("value");
  if (value.num_elements() != 1) return false;
  if (value.dtype() == DType::kInt32) return value.data<std::int32_t>()[0] == 0;
  return value.dtype() == DType::kInt64 && value.data<std::int64_t>()[0] == 0;
}

// An index expression that does nothing but what `mask` says to the first axis: x[newaxis], x[0].
bool only_first_entry(const Node& node, std::string_view mask) {
  if (!is_op(node, "StridedSlice") || node.attr<std::int64_t>(mask) != 1) return false;
  const auto other = mask == "new_axis_mask" ? "shrink_axis_mask" : "new_axis_mask";
  return node.attr<std::int64_t>(other) == 0 &&
         node.inputs()[1].node->output_shape(0) == PartialShape({1});
}

// [height, width, channels] as a batch of one.
bool makes_batch(const Node& node) {
  if (node.output_dtype(0) == DType::kInvalid || node.inputs().empty()) return false;
  const Output in = node.inputs()[0];
  const PartialShape& from = in.node->output_shape(in.index);
  if (!from.has_rank() || from.rank() != 3) return false;
  return (is_op(node, "ExpandDims") && is_constant_zero(node.inputs()[1])) ||
         only_first_entry(node, "new_axis_mask");
}

// The image of a batch of one.
bool takes_from_batch(const Node& node) {
  if (node.inputs().empty()) return false;
  const Output in = node.inputs()[0];
  const PartialShape& from = in.node->output_shape(in.index);
  if (!from.has_rank() || from.rank() != 4 || from.dim(0) != 1) return false;
  return (is_op(node, "Squeeze") &&
          node.attr<std::vector<std::int64_t>>("squeeze_dims") == std::vector<std::int64_t>{0}) ||
         (only_first_entry(node, "shrink_axis_mask") && is_constant_zero(node.inputs()[1]));
}

// The attribute `method` of the fused op for one that resizes; null for others.
const char* method_of(const Node& node) {
  if (is_op(node, "ResizeBilinear")) return "bilinear";
  if (is_op(node, "ResizeNearestNeighbor")) return "nearest";
  if (is_op(node, "ResizeBicubic")) return "bicubic";
  return is_op(node, "ResizeArea") ? "area" : nullptr;
}

// All of these may find a JPEG image.
bool is_decode(const Node& node) {
  if (is_op(node, "DecodeImage") || is_op(node, "DecodePng"))
    return node.output_dtype(0) == DType::kUint8;
  return is_op(node, "DecodeJpeg") || is_op(node, "_DecodeJpegOfSize") ||
         is_op(node, "DecodeAndCropJpeg");
}

// Whether each row of a value of shape `whole` has its part of the operand.
bool broadcasts_to(const PartialShape& operand, const PartialShape& whole) {
  if (!operand.has_rank() || operand.rank() > whole.rank()) return false;
  for (int i = 1; i <= operand.rank(); ++i) {
    const std::int64_t dim = operand.dim(operand.rank() - i);
    if (dim != 1 && (dim < 0 || dim != whole.dim(whole.rank() - i))) return false;
  }
  return true;
}

// Ops on one value after another, from a resize on. All but the last have no other reader.
struct Chain {
  Node* resize = nullptr;
  Node* widen = nullptr;  // makes float of what the nearest pixels are
  bool is_image = false;  // taken from a batch of one
  std::vector<Node*> steps;
  std::vector<Node*> nodes;  // all of them
};

// Steps as the attributes and further inputs of an op whose program begins with a row.
struct Program {
  std::vector<std::string> ops;
  std::vector<std::int64_t> operands;
  std::vector<Output> args;
  DType result = DType::kFloat;

  // Input 0 is the row, and then what the latest op has made of it.
  std::int64_t latest() const { return -static_cast<std::int64_t>(ops.size()); }
  std::int64_t operand(const Output& in, const Node* previous, std::int64_t made) {
    if (in.node == previous) return made;
    const auto known = std::find(args.begin(), args.end(), in);
    const std::int64_t number = 1 + (known - args.begin());
    if (known == args.end()) args.push_back(in);
    return number;
  }

  void append(const Node& step, const Node* previous) {
    result = step.output_dtype(0);
    const std::int64_t made = latest();
    if (!is_op(step, "_FusedElementwise")) {
      if (!is_fusible_dtype(result)) return;  // a last cast, which is no part of the program
      const std::vector<Output> values = value_inputs(step);
      ops.push_back(step.op().name);
      operands.push_back(static_cast<std::int64_t>(values.size()));
      for (const Output& in : values) operands.push_back(operand(in, previous, made));
      return;
    }
    const auto first = static_cast<std::int64_t>(ops.size());
    const auto& names = step.attr<std::vector<std::string>>("ops");
    const auto& numbers = step.attr<std::vector<std::int64_t>>("operands");
    ops.insert(ops.end(), names.begin(), names.end());
    for (std::size_t at = 0; at < numbers.size();) {
      std::int64_t left = numbers[at++];
      operands.push_back(left);
      for (; left > 0; --left, ++at) {
        const std::int64_t number = numbers[at];
        operands.push_back(
            number < 0 ? number - first
                       : operand(step.inputs()[static_cast<std::size_t>(number)], previous, made));
      }
    }
  }
};

class Fuser {
 public:
  Fuser(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator)
      : f_(f), ops_(ops), evaluator_(evaluator), uses_(f) {}

  bool run() {
    const std::vector<Node*> order = f_.graph.topological_order();
    bool changed = false;
    for (auto node = order.rbegin(); node != order.rend(); ++node)
      if (uses_.of(*node) != 0 && uses_.waiting_for(*node) == 0) changed = try_at(*node) || changed;
    if (changed) prune(f_);
    return changed;
  }

 private:
  // Only `reader` reads it, and nobody waits for it.
  bool is_read_only_by(const Node* node, const Node* reader) const {
    const auto& inputs = reader->inputs();
    return uses_.of(node) == std::count_if(inputs.begin(), inputs.end(),
                                           [&](const Output& in) { return in.node == node; });
  }

  bool is_step(const Node& node, bool is_last) {
    if (node.num_outputs() != 1 || node.kind() != NodeKind::kPlain) return false;
    const DType dtype = node.output_dtype(0);
    if (!is_last && dtype != DType::kFloat) return false;
    if (is_op(node, "_FusedElementwise")) return true;
    if (is_op(node, "Cast") && (dtype == DType::kHalf || dtype == DType::kDouble))
      return !node.attr<bool>("Truncate");
    return is_fusible(node, evaluator_);
  }

  // A step whose operands have parts for each row.
  bool takes_rows(const Node& node, const PartialShape& shape) {
    const std::vector<Output> values = value_inputs(node);
    return node.output_shape(0) == shape &&
           std::all_of(values.begin(), values.end(), [&](const Output& in) {
             return in.node->output_shape(in.index) == shape ||
                    broadcasts_to(in.node->output_shape(in.index), shape);
           });
  }

  // The resize that gives `node` its value: itself, or one that it takes an image from.
  bool begins(Node* node, Chain& chain) {
    chain.is_image = takes_from_batch(*node);
    chain.resize = node;
    if (chain.is_image) {
      chain.resize = node->inputs()[0].node;
      if (!is_read_only_by(chain.resize, node)) return false;
      chain.nodes.push_back(node);
    }
    chain.nodes.push_back(chain.resize);
    return method_of(*chain.resize) && chain.resize->kind() == NodeKind::kPlain;
  }

  // Follows the value of `node` back to a resize. Steps are found last first.
  bool follow(Node* node, const PartialShape& shape, bool is_last, Chain& chain) {
    if (chain.nodes.size() > kMostOps) return false;
    if (Chain whole = chain; begins(node, whole)) {
      if (node->output_dtype(0) != DType::kFloat) return false;
      chain = std::move(whole);
      return true;
    }
    if (is_op(*node, "Cast") && node->output_dtype(0) == DType::kFloat) {
      Chain whole = chain;
      Node* from = node->inputs()[0].node;
      whole.widen = node;
      whole.nodes.push_back(node);
      if (is_read_only_by(from, node) && begins(from, whole) &&
          is_op(*whole.resize, "ResizeNearestNeighbor")) {
        chain = std::move(whole);
        return true;
      }
    }
    if (!is_step(*node, is_last) || !takes_rows(*node, shape)) return false;
    chain.steps.push_back(node);
    chain.nodes.push_back(node);
    for (const Output& in : value_inputs(*node)) {
      if (in.node->num_outputs() != 1 || !(in.node->output_shape(0) == shape) ||
          !is_read_only_by(in.node, node))
        continue;
      if (follow(in.node, shape, false, chain)) return true;
    }
    chain.steps.pop_back();
    chain.nodes.pop_back();
    return false;
  }

  static bool on_cpu(const Node& node) {
    return node.requested_device().empty() ||
           node.requested_device().find("CPU") != std::string::npos;
  }

  bool try_at(Node* root) {
    if (root->num_outputs() != 1 || !on_cpu(*root)) return false;
    const PartialShape& shape = root->output_shape(0);
    Chain chain;
    if (!shape.has_rank() || !follow(root, shape, true, chain)) return false;
    if (!std::all_of(chain.nodes.begin(), chain.nodes.end(), [&](const Node* node) {
          return node->requested_device() == root->requested_device();
        }))
      return false;
    std::reverse(chain.steps.begin(), chain.steps.end());

    Program program;
    const Node* previous = value_of_resize(chain, root);
    for (const Node* step : chain.steps) {
      program.append(*step, previous);
      previous = step;
    }
    if (program.args.size() > kMostArgs || program.ops.size() > kMostOps) return false;

    Graph::NodeSpec spec;
    const Output images = chain.resize->inputs()[0];
    Output image;
    if (makes_batch(*images.node)) image = images.node->inputs()[0];
    if (chain.is_image && !image.node) return false;
    if (image.node && is_read_only_by(images.node, chain.resize) &&
        is_read_only_by(image.node, images.node) && is_decode(*image.node) &&
        image.node->requested_device() == root->requested_device()) {
      chain.nodes.push_back(images.node);
      chain.nodes.push_back(image.node);
      decode_into(spec, *image.node, chain);
    } else if (!chain.steps.empty() || chain.widen) {
      spec.op = &ops_.get("_FusedResize");
      spec.inputs = {chain.is_image ? image : images, chain.resize->inputs()[1]};
    } else {
      return false;
    }
    write(spec, chain, std::move(program));
    replace(root, chain, std::move(spec));
    return true;
  }

  // The node whose value is a row of the program.
  static const Node* value_of_resize(const Chain& chain, const Node* root) {
    if (chain.widen) return chain.widen;
    if (chain.steps.empty()) return root;
    for (const Output& in : chain.steps.front()->inputs())
      if (std::find(chain.nodes.begin(), chain.nodes.end(), in.node) != chain.nodes.end())
        return in.node;
    return nullptr;
  }

  void decode_into(Graph::NodeSpec& spec, const Node& decode, const Chain& chain) {
    spec.op = &ops_.get("_FusedDecodeJpeg");
    spec.inputs = {decode.inputs()[0], chain.resize->inputs()[1]};
    spec.inputs.insert(spec.inputs.end(), std::next(decode.inputs().begin()),
                       decode.inputs().end());
    for (const char* name : {"channels", "ratio", "fancy_upscaling", "try_recover_truncated",
                             "acceptable_fraction", "dct_method", "least_size"}) {
      if (const AttrValue* value = decode.attrs().find(name)) spec.attrs.set(name, *value);
    }
    spec.attrs.set("decoder", decode.op().name);
    spec.attrs.set("num_windows", static_cast<std::int64_t>(decode.inputs().size()) - 1);
    spec.attrs.set("batch", !chain.is_image);
  }

  void write(Graph::NodeSpec& spec, const Chain& chain, Program program) {
    std::vector<DType> types;
    for (const Output& in : program.args) types.push_back(in.node->output_dtype(in.index));
    spec.inputs.insert(spec.inputs.end(), program.args.begin(), program.args.end());
    spec.attrs.set("Tin", std::move(types));
    spec.attrs.set("Tout", program.result);
    spec.attrs.set("method", std::string(method_of(*chain.resize)));
    for (const char* name : {"align_corners", "half_pixel_centers"}) {
      const AttrValue* value = chain.resize->attrs().find(name);
      if (value) spec.attrs.set(name, *value);
    }
    spec.attrs.set("ops", std::move(program.ops));
    spec.attrs.set("operands", std::move(program.operands));
  }

  void replace(Node* root, const Chain& chain, Graph::NodeSpec spec) {
    spec.name = root->name().ends_with("/fused") ? root->name() : cat(root->name(), "/fused");
    spec.device = root->requested_device();
    spec.where = chain.nodes.back()->where();
    // All that reads a node of the chain is in it: what they wait for does not depend on it.
    for (const Node* node : chain.nodes)
      for (Node* before : node->control_inputs())
        if (std::find(spec.control_inputs.begin(), spec.control_inputs.end(), before) ==
            spec.control_inputs.end())
          spec.control_inputs.push_back(before);
    Node* fused = f_.graph.add(std::move(spec));
    if (!(fused->output_shape(0) == root->output_shape(0)))
      f_.graph.set_output_shape(fused, 0, root->output_shape(0));
    f_.replace({root, 0}, {fused, 0});
    uses_.added(fused);
    uses_.replaced({root, 0}, {fused, 0});
  }

  MutableFunction& f_;
  const OpRegistry& ops_;
  Evaluator& evaluator_;
  UseCounts uses_;
};

}  // namespace

bool fuse_images(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator) {
  return Fuser(f, ops, evaluator).run();
}

}  // namespace tandem::passes
