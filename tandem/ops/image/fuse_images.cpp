// A resize takes in the elementwise ops that follow it, and the decoding of the JPEG image before
// it: one op reads lines, makes rows of them and finishes each row while it is in the nearest
// cache.

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/fusion_pass.h"
#include "tandem/graph/fusion_target.h"
#include "tandem/graph/internal/fusible.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/graph/rewrite.h"
#include "tandem/ops/internal/image_patterns.h"

namespace tandem::passes {
namespace {

constexpr std::size_t kMaxOps = 64;
constexpr std::size_t kMaxArgs = 24;

// Ops on one value after another, from a resize on. All but the last have no other reader.
struct Chain {
  Node* resize = nullptr;
  Node* widen = nullptr;  // makes float of what the nearest pixels are
  bool is_image = false;  // taken from a batch of one
  std::vector<Node*> steps;
  std::vector<Node*> nodes;  // all of them
};

class Fuser {
 public:
  Fuser(MutableFunction& f, const OpRegistry& ops, Evaluator& evaluator)
      : f_(f), ops_(ops), evaluator_(evaluator), uses_(f) {}

  bool run() {
    const std::vector<Node*> order = f_.graph.topological_order();
    if (std::none_of(order.begin(), order.end(), [](const Node* n) { return method_of(*n); }))
      return false;
    bool changed = false;
    for (auto node = order.rbegin(); node != order.rend(); ++node)
      if (uses_.of(*node) != 0 && uses_.waiting_for(*node) == 0) changed = try_at(*node) || changed;
    if (changed || f_.target) prune(f_);
    return changed;
  }

 private:
  // Only `reader`, which has it as an input, reads it, and no node waits for it.
  bool is_read_only_by(const Node* node, const Node* reader) const {
    const auto& inputs = reader->inputs();
    return uses_.of(node) == 1 ||
           uses_.of(node) == std::count_if(inputs.begin(), inputs.end(),
                                           [&](const Output& in) { return in.node == node; });
  }

  bool is_step(const Node& node, bool is_last) {
    if (node.num_outputs() != 1 || node.kind() != NodeKind::kPlain ||
        node.inputs().size() > kMaxArgs)
      return false;
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
    if (chain.nodes.size() > kMaxOps) return false;
    if (Chain whole = chain; begins(node, whole)) {
      // Steps that widen halves themselves: what has made one op of them.
      const bool widened = !is_last && node->output_dtype(0) == DType::kHalf &&
                           is_op(*chain.nodes.back(), "_FusedElementwise") &&
                           is_op(*whole.resize, "ResizeNearestNeighbor");
      if (node->output_dtype(0) != DType::kFloat && !widened) return false;
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

  bool together(const Node& a, const Node& b) const {
    return f_.target ? f_.target->together(a, b) : a.requested_device() == b.requested_device();
  }

  bool try_at(Node* root) {
    if (root->num_outputs() != 1 || (!f_.target && !on_cpu(*root))) return false;
    const PartialShape& shape = root->output_shape(0);
    Chain chain;
    if (!shape.has_rank() || !follow(root, shape, true, chain)) return false;
    if (!std::all_of(chain.nodes.begin(), chain.nodes.end(),
                     [&](const Node* node) { return together(*node, *root); }))
      return false;
    std::reverse(chain.steps.begin(), chain.steps.end());

    RowOps rows(chain.steps, value_of_resize(chain, root));
    if (rows.args.size() > kMaxArgs || rows.ops.size() > kMaxOps) return false;

    Graph::NodeSpec spec;
    const Output images = chain.resize->inputs()[0];
    Output image;
    if (makes_batch(*images.node)) image = images.node->inputs()[0];
    if (chain.is_image && !image.node) return false;
    if (!(image.node && is_read_only_by(images.node, chain.resize) &&
          is_read_only_by(image.node, images.node) && take_in_decoding(spec, chain, images.node))) {
      if (chain.steps.empty() && !chain.widen) return false;
      spec.op = &ops_.get("_FusedResize");
      spec.inputs = {chain.is_image ? image : images, chain.resize->inputs()[1]};
    }
    write(spec, chain, std::move(rows));
    return replace(root, chain, std::move(spec));
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

  // The nodes from `node` back to what decodes the image that it is made of, that one last: steps
  // on floats that the bytes have been cast to, or none.
  bool follow_to_decoding(Node* node, const PartialShape& shape, std::vector<Node*>& nodes) {
    if (nodes.size() > kMaxOps) return false;
    nodes.push_back(node);
    if (is_decode(*node)) return true;
    if (is_op(*node, "Cast") && node->output_dtype(0) == DType::kFloat) {
      Node* from = node->inputs()[0].node;
      if (is_decode(*from) && is_read_only_by(from, node)) {
        nodes.push_back(from);
        return true;
      }
    }
    if (is_step(*node, false) && takes_rows(*node, shape)) {
      for (const Output& in : value_inputs(*node)) {
        if (in.node->num_outputs() == 1 && in.node->output_shape(0) == shape &&
            is_read_only_by(in.node, node) && follow_to_decoding(in.node, shape, nodes))
          return true;
      }
    }
    nodes.pop_back();
    return false;
  }

  // `batch` makes a batch of one of the image.
  bool take_in_decoding(Graph::NodeSpec& spec, Chain& chain, Node* batch) {
    Node* image = batch->inputs()[0].node;
    std::vector<Node*> nodes;
    if (image->num_outputs() != 1 || !image->output_shape(0).has_rank() ||
        !follow_to_decoding(image, image->output_shape(0), nodes) ||
        !std::all_of(nodes.begin(), nodes.end(),
                     [&](const Node* node) { return together(*node, *chain.resize); }))
      return false;
    const Node* decode = nodes.back();
    const bool floats = nodes.size() > 1;
    std::vector<Node*> steps;  // after the cast
    if (floats) steps.assign(std::next(nodes.rbegin(), 2), nodes.rend());
    RowOps lines(steps, floats ? *std::next(nodes.rbegin()) : decode);
    if (lines.args.size() > kMaxArgs) return false;
    chain.nodes.push_back(batch);
    chain.nodes.insert(chain.nodes.end(), nodes.begin(), nodes.end());

    spec.op = &ops_.get("_FusedDecodeJpeg");
    spec.inputs = {decode->inputs()[0], chain.resize->inputs()[1]};
    spec.inputs.insert(spec.inputs.end(), std::next(decode->inputs().begin()),
                       decode->inputs().end());
    spec.inputs.insert(spec.inputs.end(), lines.args.begin(), lines.args.end());
    for (const char* name : {"channels", "ratio", "fancy_upscaling", "try_recover_truncated",
                             "acceptable_fraction", "dct_method", "least_size"}) {
      if (const AttrValue* value = decode->attrs().find(name)) spec.attrs.set(name, *value);
    }
    spec.attrs.set("decoder", decode->op().name);
    spec.attrs.set("num_windows", static_cast<std::int64_t>(decode->inputs().size()) - 1);
    spec.attrs.set("batch", !chain.is_image);
    spec.attrs.set("float_lines", floats);
    spec.attrs.set("num_line_args", static_cast<std::int64_t>(lines.args.size()));
    spec.attrs.set("Tin", dtypes_of(lines.args));
    spec.attrs.set("line_ops", std::move(lines.ops));
    spec.attrs.set("line_operands", std::move(lines.operands));
    return true;
  }

  static std::vector<DType> dtypes_of(const std::vector<Output>& values) {
    std::vector<DType> dtypes;
    dtypes.reserve(values.size());
    for (const Output& in : values) dtypes.push_back(in.node->output_dtype(in.index));
    return dtypes;
  }

  void write(Graph::NodeSpec& spec, const Chain& chain, RowOps rows) {
    std::vector<DType> types = dtypes_of(rows.args);
    if (const AttrValue* before = spec.attrs.find("Tin")) {
      const auto& lines = *before->get_if<std::vector<DType>>();
      types.insert(types.begin(), lines.begin(), lines.end());
    }
    spec.inputs.insert(spec.inputs.end(), rows.args.begin(), rows.args.end());
    spec.attrs.set("Tin", std::move(types));
    spec.attrs.set("Tout", rows.result);
    spec.attrs.set("method", std::string(method_of(*chain.resize)));
    for (const char* name : {"align_corners", "half_pixel_centers"}) {
      const AttrValue* value = chain.resize->attrs().find(name);
      if (value) spec.attrs.set(name, *value);
    }
    spec.attrs.set("ops", std::move(rows.ops));
    spec.attrs.set("operands", std::move(rows.operands));
  }

  bool replace(Node* root, const Chain& chain, Graph::NodeSpec spec) {
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
    const std::vector<const Node*> replaced(chain.nodes.rbegin(), chain.nodes.rend());
    if (f_.target && !f_.target->accepts({&fused, 1}, replaced)) return false;
    if (!(fused->output_shape(0) == root->output_shape(0)))
      f_.graph.set_output_shape(fused, 0, root->output_shape(0));
    f_.replace({root, 0}, {fused, 0});
    uses_.added(fused);
    uses_.replaced({root, 0}, {fused, 0});
    return true;
  }

  MutableFunction& f_;
  const OpRegistry& ops_;
  Evaluator& evaluator_;
  UseCounts uses_;
};

const FusionPassRegistration kFuseImages{
    {.name = "images",
     .enabled = [](const OptimizerOptions& options) { return options.image_fusion; },
     .run = [](MutableFunction& f, const OpRegistry& ops,
               Evaluator& evaluator) { return Fuser(f, ops, evaluator).run(); }}};

}  // namespace

}  // namespace tandem::passes
