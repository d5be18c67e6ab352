#include "tandem/ops/internal/fuse_product.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/half.h"
#include "tandem/graph/optimizer_options.h"
#include "tandem/graph/rewrite.h"
#include "tandem/ops/internal/fuse_recurrent.h"

namespace tandem::internal {
namespace {

constexpr std::size_t kImage = 0, kWeights = 1, kFirstArg = 2;

// A constant that waits for something belongs to a branch or a loop; new ones would lie outside.
const Array* constant(const Output& o) {
  if (o.node->kind() != NodeKind::kConst || !o.node->control_inputs().empty()) return nullptr;
  return o.node->attr<std::shared_ptr<const Array>>("value").get();
}

template <class T>
const T* find_attr(const Node& node, const char* name) {
  const AttrValue* value = node.attrs().find(name);
  return value ? value->get_if<T>() : nullptr;
}

bool is_float(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kHalf || dtype == DType::kBFloat16;
}
// Those for which the CPU has fused ops.
bool is_float_of_cpu(DType dtype) { return is_float(dtype) && dtype != DType::kHalf; }

float element(const Array& a, std::int64_t i) {
  switch (a.dtype()) {
    case DType::kFloat: return a.data<float>()[i];
    case DType::kHalf: return static_cast<float>(a.data<Half>()[i]);
    default: return static_cast<float>(a.data<BFloat16>()[i]);
  }
}

void set_element(Array& a, std::int64_t i, float value) {
  switch (a.dtype()) {
    case DType::kFloat: a.data<float>()[i] = value; return;
    case DType::kHalf: a.data<Half>()[i] = Half(value); return;
    default: a.data<BFloat16>()[i] = BFloat16(value);
  }
}

// A convolution or product on its way to a fused op.
struct Product {
  enum class Kind { kConv, kDepthwise, kMatMul };
  Kind kind = Kind::kConv;
  std::vector<Output> inputs;
  std::vector<std::string> fused_ops;
  AttrMap attrs;  // of the fused op
  DType dtype = DType::kFloat;
  std::int64_t channels = -1;
  PartialShape shape;
  // A Reshape of the product that keeps the channels: what follows takes place before it.
  const Node* reshape = nullptr;

  // The shape of what `reshape` makes, or the product itself.
  const PartialShape& result_shape() const { return reshape ? reshape->output_shape(0) : shape; }
  bool has(const char* op) const {
    return std::find(fused_ops.begin(), fused_ops.end(), op) != fused_ops.end();
  }
  bool is_open() const {  // no activation yet
    return fused_ops.empty() || fused_ops.back() == "BiasAdd" || fused_ops.back() == "Add";
  }
  DType out() const {
    const AttrValue* value = attrs.find("Tout");
    return value ? *value->get_if<DType>() : dtype;
  }
};

void copy_attrs(const Node& from, std::initializer_list<const char*> names, AttrMap& to) {
  for (const char* name : names)
    if (const AttrValue* value = from.attrs().find(name)) to.set(name, *value);
}

constexpr std::initializer_list<const char*> kConvAttrs = {
    "strides",   "padding", "explicit_paddings", "data_format", "dilations", "filter_sizes",
    "depthwise", "Tout",    "leakyrelu_alpha"};

std::optional<Product> read_conv(const Node& node, bool on_cpu) {
  const std::string& op = node.op().name;
  const bool fused = op == "_FusedConv2D", depthwise = op == "DepthwiseConv2dNative";
  if (!fused && !depthwise && op != "Conv2D") return std::nullopt;
  Product p;
  p.dtype = node.attr<DType>("T");
  if (!(on_cpu ? is_float_of_cpu(p.dtype) : is_float(p.dtype)) ||
      node.attr<std::string>("data_format") != "NHWC")
    return std::nullopt;
  copy_attrs(node, kConvAttrs, p.attrs);
  p.inputs = node.inputs();
  if (fused) {
    p.fused_ops = node.attr<std::vector<std::string>>("fused_ops");
    p.kind = node.attr<bool>("depthwise") ? Product::Kind::kDepthwise : Product::Kind::kConv;
  } else {
    const PartialShape& filter = p.inputs[kWeights].node->output_shape(p.inputs[kWeights].index);
    if (!filter.is_fully_known() || filter.rank() != 4) return std::nullopt;
    if (depthwise && filter.dim(3) != 1) return std::nullopt;  // the library has no fast kernel
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < 4; ++i) sizes.push_back(filter.dim(i));
    p.attrs.set("filter_sizes", std::move(sizes));
    p.attrs.set("depthwise", depthwise);
    p.attrs.set("Tout", p.dtype);
    p.kind = depthwise ? Product::Kind::kDepthwise : Product::Kind::kConv;
  }
  const auto& sizes = *p.attrs.find("filter_sizes")->get_if<std::vector<std::int64_t>>();
  p.channels = p.kind == Product::Kind::kDepthwise ? sizes[2] : sizes[3];
  return p;
}

// Weights that stay the same from step to step. Those that a training step on a CPU changes had
// better stay in the cache of the core that changed them, which products by themselves see to.
bool is_steady(const Output& weights) {
  if (weights.node->kind() == NodeKind::kEnter) {
    const bool* same = find_attr<bool>(*weights.node, "is_constant");
    return same && *same;
  }
  return weights.node->kind() == NodeKind::kConst;
}

std::optional<Product> read_matmul(const Node& node, bool on_cpu) {
  const bool fused = node.op().name == "_FusedMatMul";
  if (!fused && node.op().name != "MatMul") return std::nullopt;
  Product p;
  p.kind = Product::Kind::kMatMul;
  p.dtype = node.attr<DType>("T");
  if (on_cpu ? p.dtype != DType::kFloat : !is_float(p.dtype)) return std::nullopt;
  copy_attrs(node, {"transpose_a", "transpose_b", "leakyrelu_alpha", "b_sizes"}, p.attrs);
  p.inputs = node.inputs();
  if (!fused && on_cpu && !is_steady(p.inputs[kWeights])) return std::nullopt;
  if (fused) p.fused_ops = node.attr<std::vector<std::string>>("fused_ops");
  p.channels = node.output_shape(0).has_rank() ? node.output_shape(0).dim(1) : -1;
  if (p.channels < 0) return std::nullopt;
  return p;
}

// Where launches cost time, and not on a CPU, whatever there is a kernel for is fused.
std::optional<Product> read(const RewriteContext& r, const Node& node) {
  if (!node.control_inputs().empty()) return std::nullopt;
  const bool on_cpu = !r.launches_cost_time();
  std::optional<Product> p = read_conv(node, on_cpu);
  if (!p) p = read_matmul(node, on_cpu);
  if (p) p->shape = node.output_shape(0);
  return p;
}

// The product whose result `o` is, or becomes by a Reshape that keeps the channels, if this is its
// only use and more can follow it.
std::optional<Product> product_of(const RewriteContext& r, Output o) {
  if (o.index != 0) return std::nullopt;
  const Node* const reshape =
      o.node->op().name == "Reshape" && o.node->control_inputs().empty() ? o.node : nullptr;
  bool others_read = r.uses().of(o.node) != 1;
  if (reshape) {
    const PartialShape& shape = reshape->output_shape(0);
    if (!shape.has_rank() || shape.rank() < 2 || shape.dim(shape.rank() - 1) < 0)
      return std::nullopt;
    o = reshape->inputs()[0];
    others_read = others_read || r.uses().of(o.node) != 1;
    if (o.index != 0) return std::nullopt;
  }
  if (others_read && !r.is_explained()) return std::nullopt;
  std::optional<Product> p = read(r, *o.node);
  if (p && !p->is_open()) return std::nullopt;
  if (p && reshape) {
    const PartialShape& shape = reshape->output_shape(0);
    if (p->kind != Product::Kind::kMatMul || shape.dim(shape.rank() - 1) != p->channels)
      return std::nullopt;
    p->reshape = reshape;
  }
  if (p && others_read) r.keep_apart(o, "other nodes read or wait for its result too");
  return others_read ? std::nullopt : std::move(p);
}

// A value of the Reshape's shape as one of the product's.
Output as_matrix(RewriteContext& r, const Product& p, Output value) {
  Array sizes(DType::kInt32, Shape{2});
  sizes.data<std::int32_t>()[0] = -1;
  sizes.data<std::int32_t>()[1] = static_cast<std::int32_t>(p.channels);
  const Output shape = r.add_constant(sizes);
  const DType dtype = value.node->output_dtype(value.index);
  return {r.add("Reshape", {value, shape}, AttrMap{{"T", dtype}, {"Tshape", DType::kInt32}}), 0};
}

bool emit(RewriteContext& r, Product p) {
  std::vector<DType> types;
  for (std::size_t i = kFirstArg; i < p.inputs.size(); ++i)
    types.push_back(p.inputs[i].node->output_dtype(p.inputs[i].index));
  p.attrs.set("fused_ops", p.fused_ops);
  const bool matmul = p.kind == Product::Kind::kMatMul;
  if (matmul) {
    p.attrs.set("num_args", static_cast<std::int64_t>(types.size()));
  } else {
    p.attrs.set("TArgs", std::move(types));
  }
  Node* node =
      r.add(matmul ? "_FusedMatMul" : "_FusedConv2D", std::move(p.inputs), std::move(p.attrs));
  if (p.reshape) {
    const Output sizes = p.reshape->inputs()[1];
    node = r.add("Reshape", {{node, 0}, sizes}, p.reshape->attrs());
  }
  return r.replace_with({node, 0});
}

// One value for each channel of an array whose last axis has `channels` elements.
std::optional<std::vector<float>> by_channel(const Array* a, std::int64_t channels, int rank) {
  if (!a || !is_float(a->dtype()) || a->rank() > rank) return std::nullopt;
  const std::int64_t count = a->num_elements();
  if (count != 1 && (count != channels || a->shape()[a->rank() - 1] != channels))
    return std::nullopt;
  std::vector<float> values(static_cast<std::size_t>(channels));
  for (std::int64_t i = 0; i < channels; ++i)
    values[static_cast<std::size_t>(i)] = element(*a, count == 1 ? 0 : i);
  return values;
}

Output vector_constant(RewriteContext& r, const std::vector<float>& values, DType dtype) {
  Array a(dtype, Shape{static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    set_element(a, static_cast<std::int64_t>(i), values[i]);
  return r.add_constant(a);
}

// Multiplies each channel of constant weights. What has been fused must be a constant bias at most.
bool scale_channels(RewriteContext& r, Product& p, const std::vector<float>& scale) {
  const Array* weights = constant(p.inputs[kWeights]);
  if (!weights || p.has("Add")) return false;
  if (!std::all_of(scale.begin(), scale.end(), [](float s) { return std::isfinite(s); }))
    return false;
  std::optional<std::vector<float>> bias;
  if (p.has("BiasAdd")) {
    bias = by_channel(constant(p.inputs[kFirstArg]), p.channels, 1);
    if (!bias) return false;
  }
  const bool* turned =
      p.attrs.find("transpose_b") ? p.attrs.find("transpose_b")->get_if<bool>() : nullptr;
  const std::int64_t run = turned && *turned ? weights->shape()[1] : 1;  // elements of one channel
  Array scaled(weights->dtype(), weights->shape());
  for (std::int64_t i = 0; i < weights->num_elements(); ++i) {
    set_element(scaled, i,
                element(*weights, i) * scale[static_cast<std::size_t>(i / run % p.channels)]);
  }
  p.inputs[kWeights] = r.add_constant(scaled);
  if (bias) {
    for (std::size_t i = 0; i < bias->size(); ++i) (*bias)[i] *= scale[i];
    p.inputs[kFirstArg] = vector_constant(r, *bias, p.inputs[kFirstArg].node->output_dtype(0));
  }
  return true;
}

// Adds to the bias; a bias of a convolution may be float beside another type.
bool shift_channels(RewriteContext& r, Product& p, std::vector<float> shift, DType dtype) {
  if (p.has("Add")) return false;
  if (!p.has("BiasAdd")) {
    p.fused_ops.push_back("BiasAdd");
    p.inputs.push_back(vector_constant(r, shift, dtype));
    return true;
  }
  const auto bias = by_channel(constant(p.inputs[kFirstArg]), p.channels, 1);
  if (!bias) return false;
  for (std::size_t i = 0; i < shift.size(); ++i) shift[i] += (*bias)[i];
  p.inputs[kFirstArg] =
      vector_constant(r, shift, p.kind == Product::Kind::kMatMul ? p.dtype : DType::kFloat);
  return true;
}

// Whether two shapes are equal but perhaps for an unknown first size: the kernel looks at
// it.
bool same_but_batch(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return false;
  for (int i = 1; i < a.rank(); ++i)
    if (a.dim(i) < 0 || a.dim(i) != b.dim(i)) return false;
  return a.dim(0) == b.dim(0);
}

// x * sigmoid(x), where both read one open product and nothing else does.
bool fuse_swish(RewriteContext& r) {
  const auto& in = r.node().inputs();
  for (std::size_t i = 0; i < 2; ++i) {
    const Output x = in[i], gate = in[1 - i];
    if (gate.node->op().name != "Sigmoid" || !(gate.node->inputs()[0] == x) ||
        !gate.node->control_inputs().empty())
      continue;
    if (r.uses().of(gate.node) != 1 || r.uses().of(x.node) != 2 || x.index != 0) continue;
    std::optional<Product> p = read(r, *x.node);
    if (!p || !p->is_open()) continue;
    p->fused_ops.push_back("Swish");
    return emit(r, std::move(*p));
  }
  return false;
}

}  // namespace

bool fuse_convolution(RewriteContext& r) {
  std::optional<Product> p = read(r, r.node());
  if (!p) return false;
  const Output image = p->inputs[kImage];
  bool changed = false;
  // A Pad of height and width by zeros is a padding of the convolution.
  if (image.node->op().name == "Pad" && image.node->control_inputs().empty() &&
      r.uses().of(image.node) == 1 && r.node().attr<std::string>("padding") == "VALID") {
    const Array* paddings = constant(image.node->inputs()[1]);
    if (paddings && paddings->shape() == Shape{4, 2}) {
      std::vector<std::int64_t> sizes;
      for (std::int64_t i = 0; i < 8; ++i) {
        sizes.push_back(paddings->dtype() == DType::kInt32 ? paddings->data<std::int32_t>()[i]
                                                           : paddings->data<std::int64_t>()[i]);
      }
      if (sizes[0] == 0 && sizes[1] == 0 && sizes[6] == 0 && sizes[7] == 0 &&
          std::all_of(sizes.begin(), sizes.end(), [](std::int64_t s) { return s >= 0; })) {
        p->inputs[kImage] = image.node->inputs()[0];
        p->attrs.set("padding", "EXPLICIT");
        p->attrs.set("explicit_paddings", std::move(sizes));
        changed = true;
      }
    }
  }
  if (!changed && !constant(p->inputs[kWeights])) return false;
  return emit(r, std::move(*p));
}

bool fuse_matmul(RewriteContext& r) {
  std::optional<Product> p = read(r, r.node());
  return p && constant(p->inputs[kWeights]) && emit(r, std::move(*p));
}

bool fuse_bias(RewriteContext& r) {
  const auto& in = r.node().inputs();
  std::optional<Product> p = product_of(r, in[0]);
  const std::string* format = find_attr<std::string>(r.node(), "data_format");
  if (!p || (format && *format != "NHWC")) return false;
  if (p->has("BiasAdd")) {
    const auto shift = by_channel(constant(in[1]), p->channels, 1);
    return shift && shift_channels(r, *p, *shift, r.node().output_dtype(0)) &&
           emit(r, std::move(*p));
  }
  // The sum is the same if the bias comes before another addend.
  p->fused_ops.insert(p->fused_ops.begin(), "BiasAdd");
  p->inputs.insert(p->inputs.begin() + kFirstArg, in[1]);
  return emit(r, std::move(*p));
}

bool fuse_add(RewriteContext& r) {
  const auto& in = r.node().inputs();
  // A later product is likelier to be the one that is computed last.
  const std::size_t later = in[1].node->id() > in[0].node->id() ? 1 : 0;
  for (const std::size_t i : {later, 1 - later}) {
    const Output other = in[1 - i];
    std::optional<Product> p = product_of(r, in[i]);
    if (!p || in[0] == in[1]) continue;
    if (const auto shift = by_channel(constant(other), p->channels, p->result_shape().rank())) {
      if (shift_channels(r, *p, *shift, r.node().output_dtype(0))) return emit(r, std::move(*p));
      continue;
    }
    const PartialShape& shape = other.node->output_shape(other.index);
    if (p->has("Add")) continue;
    if (p->kind == Product::Kind::kMatMul && !p->has("BiasAdd") &&
        shape == PartialShape({p->channels})) {
      p->fused_ops.push_back("BiasAdd");
      p->inputs.push_back(other);
      return emit(r, std::move(*p));
    }
    // Flattened, one of a batch size that turns out to be 1 would not broadcast any more.
    const bool suits = p->reshape
                           ? shape.is_fully_known() && shape == p->result_shape() && p->channels > 0
                           : same_but_batch(p->shape, shape);
    if (!suits) continue;
    p->fused_ops.push_back("Add");
    p->inputs.push_back(p->reshape ? as_matrix(r, *p, other) : other);
    return emit(r, std::move(*p));
  }
  return fuse_gru(r);
}

bool fuse_mul(RewriteContext& r) {
  const auto& in = r.node().inputs();
  for (std::size_t i = 0; i < 2; ++i) {
    std::optional<Product> p = product_of(r, in[i]);
    if (!p) continue;
    const auto scale = by_channel(constant(in[1 - i]), p->channels, p->result_shape().rank());
    if (scale && scale_channels(r, *p, *scale)) return emit(r, std::move(*p));
  }
  return fuse_swish(r) || fuse_lstm(r);
}

bool fuse_batch_norm(RewriteContext& r) {
  const Node& node = r.node();
  if (node.attr<bool>("is_training") || node.attr<std::string>("data_format") != "NHWC")
    return false;
  for (int i = 1; i < node.num_outputs(); ++i)
    if (r.uses().of({&r.node(), i}) != 0) return false;
  std::optional<Product> p = product_of(r, node.inputs()[0]);
  if (!p) return false;
  std::optional<std::vector<float>> parameters[4];  // scale, offset, mean, variance
  for (std::size_t i = 0; i < 4; ++i) {
    parameters[i] = by_channel(constant(node.inputs()[i + 1]), p->channels, 1);
    if (!parameters[i]) return false;
  }
  std::vector<float> scale = *parameters[0], shift = *parameters[1];
  for (std::size_t i = 0; i < scale.size(); ++i) {
    scale[i] /= std::sqrt((*parameters[3])[i] + node.attr<float>("epsilon"));
    shift[i] -= (*parameters[2])[i] * scale[i];
  }
  return scale_channels(r, *p, scale) && shift_channels(r, *p, shift, DType::kFloat) &&
         emit(r, std::move(*p));
}

bool fuse_activation(RewriteContext& r) {
  std::optional<Product> p = product_of(r, r.node().inputs()[0]);
  if (!p || (p->kind == Product::Kind::kMatMul && !p->has("BiasAdd"))) return false;
  if (const float* alpha = find_attr<float>(r.node(), "alpha"))
    p->attrs.set("leakyrelu_alpha", *alpha);
  p->fused_ops.push_back(r.node().op().name);
  return emit(r, std::move(*p));
}

bool fuse_cast(RewriteContext& r) {
  const Output in = r.node().inputs()[0];
  if (in.index != 0 || r.uses().of(in.node) != 1) return false;
  std::optional<Product> p = read(r, *in.node);
  const DType to = r.node().output_dtype(0);
  if (!p || p->kind == Product::Kind::kMatMul || p->dtype != DType::kBFloat16 ||
      !is_float_of_cpu(to) || p->has("Add"))
    return false;
  if (const bool* truncate = find_attr<bool>(r.node(), "Truncate"); truncate && *truncate)
    return false;
  // Who reads a wide result more than once had better read the short one and widen it himself.
  if (to == DType::kFloat && r.uses().of(&r.node()) != 1) return false;
  p->attrs.set("Tout", to);
  return emit(r, std::move(*p));
}

bool pack_weights(RewriteContext& r) {
  if (!r.options().packed_weights) return false;
  std::optional<Product> p = read(r, r.node());
  const Array* weights = p ? constant(p->inputs[kWeights]) : nullptr;
  if (!weights || !is_float_of_cpu(weights->dtype())) return false;
  if (p->kind == Product::Kind::kMatMul) {
    const auto sizes = weights->shape().dims();
    p->attrs.set("b_sizes", std::vector<std::int64_t>(sizes.begin(), sizes.end()));
  }
  p->inputs[kWeights] = {r.add("_PackWeights", {p->inputs[kWeights]}, {}), 0};
  return emit(r, std::move(*p));
}

}  // namespace tandem::internal
