#include "tandem/keras/layer_impl.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/activation_collector.h"
#include "tandem/keras/internal/call_node.h"
#include "tandem/keras/internal/loss_collector.h"
#include "tandem/keras/internal/masks.h"
#include "tandem/keras/internal/names.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/ops/autocast.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::keras {
namespace internal {

std::string shape_text(const PartialShape& shape) {
  if (!shape.has_rank()) return "(unknown)";
  std::string text = "(";
  for (int i = 0; i < shape.rank(); ++i) {
    const std::int64_t size = shape.dim(i);
    text += (i ? ", " : "") + (size < 0 ? std::string("None") : std::to_string(size));
  }
  return text + (shape.rank() == 1 ? ",)" : ")");
}

namespace {
thread_local LossCollector* innermost_collector = nullptr;
}

LossCollector::LossCollector() : outer_(innermost_collector) { innermost_collector = this; }
LossCollector::~LossCollector() { innermost_collector = outer_; }
bool LossCollector::add(const Tensor& loss) {
  if (innermost_collector) innermost_collector->losses_.push_back(loss);
  return innermost_collector != nullptr;
}

}  // namespace internal

namespace {

// The outermost call of a layer that this thread is in: numbers from 1 on.
struct CurrentCall {
  int depth = 0;
  std::uint64_t id = 0;
};
thread_local CurrentCall current_call;

class CallScope {
 public:
  CallScope() {
    if (current_call.depth++ == 0) current_call.id = next();
  }
  ~CallScope() { --current_call.depth; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  static std::uint64_t next() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
};

}  // namespace

LayerImpl::LayerImpl(std::string class_name, LayerSettings settings)
    : class_name_(std::move(class_name)), settings_(std::move(settings)) {
  if (settings_.name.empty()) settings_.name = internal::auto_name(class_name_);
  if (settings_.name.find('/') != std::string::npos) {
    throw InvalidArgumentError(cat("The name '", settings_.name, "' of a ", class_name_,
                                   " layer contains '/'. Choose a name without."));
  }
  path_ = settings_.name;
}
LayerImpl::~LayerImpl() = default;

void LayerImpl::build(const PartialShape&) {}
void LayerImpl::build_many(const std::vector<PartialShape>& inputs) {
  if (inputs.size() == 1) build(inputs[0]);
}

Tensor LayerImpl::call(const Tensor&, bool) {
  throw UnimplementedError(cat(prefix(), "its class overrides neither call nor call_many."));
}
std::vector<Tensor> LayerImpl::call_many(std::span<const Tensor> inputs,
                                         const CallOptions& options) {
  if (inputs.size() != 1) {
    throw InvalidArgumentError(
        cat(prefix(), "takes one input but was called with ", inputs.size(), "."));
  }
  return {call(inputs[0], options.is_training())};
}

std::vector<Tensor> LayerImpl::compute_masks(std::span<const Tensor>,
                                             std::span<const Tensor> masks) const {
  if (!passes_masks_ || masks.empty()) return {};
  return {masks[0]};
}

void LayerImpl::describe(Config&) const {}
Config LayerImpl::config() const {
  Config config;
  config.set("name", name()).set("trainable", trainable());
  config.set("dtype", settings_.dtype.name());
  for (const auto& [argument, value] : arguments_.entries()) config.set(argument, value);
  describe(config);
  return config;
}

std::string LayerImpl::prefix() const { return cat("Layer '", name(), "' (", class_name_, "): "); }

void LayerImpl::check_inputs(const std::vector<PartialShape>& inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const PartialShape& shape = inputs[i];
    if (!shape.has_rank()) continue;
    const auto refuse = [&](const std::string& expected) {
      throw InvalidArgumentError(cat("Input ", i, " of layer \"", name(),
                                     "\" is incompatible with the layer: expected ", expected,
                                     ". Full shape received: ", internal::shape_text(shape), "."));
    };
    if (rank_ >= 0 && shape.rank() != rank_)
      refuse(cat("ndim=", rank_, ", found ndim=", shape.rank()));
    if (min_rank_ >= 0 && shape.rank() < min_rank_) {
      refuse(cat("min_ndim=", min_rank_, ", found ndim=", shape.rank()));
    }
    for (const auto& [axis, size] : sizes_) {
      const std::int64_t found = shape.dim(axis);
      if (found >= 0 && found != size) {
        refuse(cat("axis ", axis, " of input shape to have value ", size, ", but it has ", found));
      }
    }
  }
}

std::int64_t LayerImpl::known_size(const PartialShape& shape, int axis) const {
  const int rank = shape.rank();
  const std::int64_t size = axis < rank && axis >= -rank ? shape.dim(axis) : -1;
  if (size < 0) {
    throw InvalidArgumentError(cat(prefix(), "axis ", axis,
                                   " of the input must have a known size, but the shape is ",
                                   internal::shape_text(shape), ". Give it in Input or build."));
  }
  return size;
}

namespace {

// Weights are made eagerly whatever is being traced or recorded around.
class EagerScope {
 public:
  EagerScope() : trace_(nullptr) {}

 private:
  TraceScope trace_;
  StopRecording quiet_;
};

}  // namespace

namespace {

bool says(const std::exception_ptr& error, const std::string& what) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return std::string_view(e.what()).find(what) != std::string_view::npos;
  } catch (...) {
    return false;
  }
}

}  // namespace

void LayerImpl::ensure_built(const std::vector<PartialShape>& inputs) {
  if (built_) return;
  check_inputs(inputs);
  EagerScope eager;
  // A build that failed leaves nothing of what it asked for to the next one, but for sublayers that
  // were built: these stay so.
  const std::size_t layers = sublayers_.size(), sizes = sizes_.size();
  const int rank = rank_, min_rank = min_rank_;
  try {
    build_many(inputs);
  } catch (...) {
    weights_.clear();
    sublayers_.resize(layers);
    sublayers_saved_as_.resize(layers);
    sizes_.resize(sizes);
    rank_ = rank;
    min_rank_ = min_rank;
    const std::exception_ptr error = std::current_exception();
    if (inputs.empty() || says(error, name())) throw;
    std::rethrow_exception(
        with_line(error, cat("in build of layer '", name(), "' (", class_name_,
                             ") for input of shape ", internal::shape_text(inputs.front()))));
  }
  built_ = true;
  for (const auto& action : std::exchange(when_built_, {})) action();
}

void LayerImpl::when_built(std::function<void()> action) {
  if (!built_) when_built_.push_back(std::move(action));
}

Variable LayerImpl::add_weight(const String& name, const Shape& shape,
                               const WeightOptions& options) {
  EagerScope eager;
  const DType dtype = options.dtype.value_or(variable_dtype());
  Tensor value = options.initializer(shape, dtype);
  if (!(value.shape() == shape) || value.dtype() != dtype) {
    throw InvalidArgumentError(cat(prefix(), "initializer ", options.initializer.name(),
                                   " of weight '", name, "' gave ", value.dtype(), value.shape(),
                                   " where ", dtype, shape, " was asked for."));
  }
  Variable variable(std::move(value), {.trainable = options.trainable,
                                       .name = path_ + "/" + name,
                                       .autocast = options.autocast,
                                       .constraint = options.constraint.function()});
  weights_.push_back({variable, options.regularizer, options.trainable,
                      options.saved_as.empty() ? name : options.saved_as});
  return variable;
}

void LayerImpl::add_existing_weight(const Variable& variable, const String& saved_as) {
  weights_.push_back({variable, {}, variable.trainable(), saved_as});
}

Layer LayerImpl::add_layer(Layer layer, const String& saved_as) {
  sublayers_saved_as_.push_back(saved_as.empty() ? cat("layers/", sublayers_.size())
                                                 : std::string(saved_as));
  sublayers_.push_back(layer);
  return layer;
}
std::vector<LayerImpl::SavedPart> LayerImpl::saved_parts() const {
  std::vector<SavedPart> parts;
  for (const Weight& w : weights_) parts.push_back({w.saved_as, w.variable, {}});
  for (std::size_t i = 0; i < sublayers_.size(); ++i)
    parts.push_back({sublayers_saved_as_[i], {}, sublayers_[i]});
  return parts;
}
void LayerImpl::build_within(const Layer& layer, const std::vector<PartialShape>& inputs) {
  build_sublayer(layer, inputs);
}
void LayerImpl::build_sublayer(const Layer& layer, const std::vector<PartialShape>& inputs) {
  LayerImpl& within = *layer.impl();
  if (!within.built()) within.path_ = path_ + "/" + within.name();
  within.ensure_built(inputs);
}
std::vector<Layer> LayerImpl::sublayers() const { return sublayers_; }

void LayerImpl::add_loss(const Tensor& loss) const {
  if (internal::LossCollector::add(loss)) return;
  if (losses_call_ != current_call.id) losses_.clear();
  losses_call_ = current_call.id;
  losses_.push_back(loss);
}

void LayerImpl::collect_losses(std::uint64_t call, std::vector<Tensor>& into) const {
  if (losses_call_ == call) into.insert(into.end(), losses_.begin(), losses_.end());
  for (const Layer& layer : sublayers()) layer.impl()->collect_losses(call, into);
}
std::vector<Tensor> LayerImpl::added_losses() const {
  std::vector<Tensor> losses;
  if (last_call_ != 0) collect_losses(last_call_, losses);
  return losses;
}

void LayerImpl::set_trainable(bool trainable) {
  settings_.trainable = trainable;
  for (const Layer& layer : sublayers()) layer.set_trainable(trainable);
}

void LayerImpl::collect_weights(bool around, std::vector<Weight>& into) const {
  const bool trainable = around && settings_.trainable;
  for (const bool wanted : {true, false}) {
    for (const Weight& w : weights_) {
      if (w.trainable != wanted) continue;
      const bool known = std::any_of(into.begin(), into.end(), [&](const Weight& other) {
        return other.variable.is_same(w.variable);
      });
      if (!known) into.push_back({w.variable, w.regularizer, w.trainable && trainable, w.saved_as});
    }
  }
  for (const Layer& layer : sublayers()) layer.impl()->collect_weights(trainable, into);
}

namespace {

// A seed generator among the layers within, as Keras tracks it.
class SeedGeneratorImpl final : public LayerImpl {
 public:
  explicit SeedGeneratorImpl(random::SeedGenerator generator)
      : LayerImpl("SeedGenerator", {.name = "seed_generator"}), generator_(std::move(generator)) {
    without_weights();
  }
  const Variable& state() const { return generator_.state(); }

 private:
  random::SeedGenerator generator_;
};

}  // namespace

random::SeedGenerator LayerImpl::add_seed_generator(std::optional<std::int64_t> seed,
                                                    const std::string& saved_as) {
  random::SeedGenerator generator(seed, path_ + "/" + saved_as);
  add_layer(make_layer<SeedGeneratorImpl>(generator), saved_as);
  return generator;
}

std::vector<Variable> LayerImpl::collect_states() const {
  std::vector<Variable> all;
  const auto add = [&](const Variable& state) {
    const bool known = std::any_of(all.begin(), all.end(),
                                   [&](const Variable& other) { return other.is_same(state); });
    if (!known) all.push_back(state);
  };
  if (const auto* seeds = dynamic_cast<const SeedGeneratorImpl*>(this)) add(seeds->state());
  for (const Layer& layer : sublayers()) {
    for (const Variable& state : layer.impl()->collect_states()) add(state);
  }
  return all;
}

std::vector<LayerImpl::Weight> LayerImpl::collect_weights() const {
  std::vector<Weight> all;
  collect_weights(true, all);
  return all;
}

namespace {

std::vector<PartialShape> shapes_of(const std::vector<Tensor>& tensors) {
  std::vector<PartialShape> shapes;
  for (const Tensor& t : tensors) shapes.push_back(t.partial_shape());
  return shapes;
}

std::string inputs_text(const std::vector<Tensor>& inputs) {
  std::vector<std::string> words;
  for (const Tensor& t : inputs) {
    words.push_back(t.defined() ? cat(t.dtype(), t.partial_shape()) : "an undefined tensor");
  }
  return internal::join(words);
}

}  // namespace

std::vector<Tensor> LayerImpl::run(std::vector<Tensor> inputs, const CallOptions& options) {
  for (const Tensor& t : inputs) {
    if (!t.defined())
      throw InvalidArgumentError(cat(prefix(), "was called with an undefined tensor."));
  }
  const std::vector<PartialShape> shapes = shapes_of(inputs);
  ensure_built(shapes);
  check_inputs(shapes);
  const CallOptions how = with_masks(inputs, options);
  const DType wanted = compute_dtype();
  const bool casts = autocast_ && is_floating(wanted);
  if (casts) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tensor& t = inputs[i];
      if (!is_floating(t.dtype()) || t.dtype() == wanted) continue;
      t = cast(t, wanted);
      if (const Tensor mask = how.mask_of(i); mask.defined()) internal::attach_mask(t, mask);
    }
  }
  try {
    std::vector<Tensor> outputs;
    {
      const CallScope call;
      last_call_ = current_call.id;
      const internal::MaskScope scope;
      const AutocastScope autocast(casts ? wanted : DType::kInvalid);
      outputs = call_many(inputs, how);
    }
    if (internal::keeps_masks()) note_masks(inputs, how, outputs);
    internal::ActivationCollector::add(*this, outputs);
    return outputs;
  } catch (...) {
    std::rethrow_exception(with_line(
        std::current_exception(),
        cat("in layer '", name(), "' (", class_name_, ") called with ", inputs_text(inputs))));
  }
}

namespace {

// A mask marks which entries of the first axes of its input count.
void check_mask(const std::string& prefix, const PartialShape& mask, const PartialShape& input) {
  if (!mask.has_rank() || !input.has_rank()) return;
  const auto same = [&](int axis, int of_input) {
    const std::int64_t size = mask.dim(axis), wanted = input.dim(of_input);
    return size < 0 || wanted < 0 || size == wanted;
  };
  bool fits = mask.rank() > 0 && mask.rank() <= input.rank();
  for (int i = 0; fits && i < mask.rank(); ++i) fits = same(i, i);
  if (fits) return;
  // Channels first: the steps are the last axis.
  if (mask.rank() == 2 && input.rank() == 3 && same(0, 0) && same(1, 2)) return;
  throw InvalidArgumentError(cat(prefix, "a mask of shape ", internal::shape_text(mask),
                                 " does not fit the input of shape ", internal::shape_text(input),
                                 ": it needs the input's first axes, [batch, steps]."));
}

void check_count(const std::string& prefix, std::size_t masks, std::size_t inputs) {
  if (masks <= inputs) return;
  throw InvalidArgumentError(cat(prefix, "was given ", masks, " masks for ", inputs, " input(s)."));
}

// `values`, one for each KerasTensor of the masks, by input.
MaskList in_place_of(const MaskList& masks, std::span<const Tensor> values) {
  std::vector<Tensor> by_input;
  for (const std::optional<KerasTensor>& mask : masks.keras_tensors()) {
    by_input.push_back(mask ? values.front() : Tensor());
    if (mask) values = values.subspan(1);
  }
  return by_input;
}

}  // namespace

// The options with the masks that came with the inputs, unless the caller gave others.
CallOptions LayerImpl::with_masks(const std::vector<Tensor>& inputs,
                                  const CallOptions& options) const {
  if (!options.mask.keras_tensors().empty()) {
    throw InvalidArgumentError(cat(prefix(), "was called with tensors, but with a KerasTensor as ",
                                   "mask. Give the mask's values."));
  }
  check_count(prefix(), options.mask.tensors().size(), inputs.size());
  CallOptions how = options;
  std::vector<Tensor> masks = options.mask.tensors();
  if (masks.empty()) {
    bool any = false;
    for (const Tensor& t : inputs) {
      masks.push_back(internal::find_mask(t));
      any = any || masks.back().defined();
    }
    if (!any) return how;
  } else {
    for (std::size_t i = 0; i < masks.size(); ++i) {
      if (masks[i].defined())
        check_mask(prefix(), masks[i].partial_shape(), inputs[i].partial_shape());
    }
  }
  masks.resize(inputs.size());
  how.mask = std::move(masks);
  return how;
}

void LayerImpl::note_masks(const std::vector<Tensor>& inputs, const CallOptions& how,
                           const std::vector<Tensor>& outputs) const {
  const std::vector<Tensor> masks = compute_masks(inputs, how.mask.tensors());
  for (std::size_t i = 0; i < std::min(masks.size(), outputs.size()); ++i) {
    if (masks[i].defined()) internal::attach_mask(outputs[i], masks[i]);
  }
}

std::vector<LayerImpl::TensorSpec> LayerImpl::infer(const std::vector<TensorSpec>& inputs,
                                                    const CallOptions& options) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const TensorSpec& spec : inputs) {
    dtypes.push_back(spec.dtype);
    shapes.push_back(spec.shape);
  }
  ensure_built(shapes);
  for (const std::optional<KerasTensor>& mask : options.mask.keras_tensors()) {
    if (!mask) continue;
    dtypes.push_back(mask->dtype());
    shapes.push_back(mask->shape());
  }
  std::vector<TensorSpec> specs;
  EagerScope eager;
  trace_function(name(), dtypes, shapes, [&](std::span<const Tensor> args) {
    const auto first_mask = args.begin() + std::ssize(inputs);
    CallOptions how = options;
    if (!options.mask.empty()) how.mask = in_place_of(options.mask, {first_mask, args.end()});
    std::vector<Tensor> outputs = run(std::vector<Tensor>(args.begin(), first_mask), how);
    for (const Tensor& t : outputs) specs.push_back({t.dtype(), t.partial_shape()});
    return outputs;
  });
  last_call_ = 0;  // what add_loss received there stands for no values
  return specs;
}

std::vector<KerasTensor> LayerImpl::run(const std::vector<KerasTensor>& inputs,
                                        const CallOptions& options) {
  if (!options.mask.tensors().empty()) {
    throw InvalidArgumentError(cat(prefix(), "was called with KerasTensors, but with a tensor as ",
                                   "mask. Give a KerasTensor, such as an Input of bool, or use a ",
                                   "Masking or Embedding layer."));
  }
  check_count(prefix(), options.mask.keras_tensors().size(), inputs.size());
  std::vector<TensorSpec> specs;
  for (const KerasTensor& t : inputs) specs.push_back({t.dtype(), t.shape()});
  const std::vector<TensorSpec> results = infer(specs, options);
  auto node = std::make_shared<internal::CallNode>();
  node->layer = shared_from_this();
  node->inputs = inputs;
  node->options = options;
  node->index = num_calls_++;
  node->num_outputs = static_cast<int>(results.size());
  internal::note_mask_ops(*node);
  if (first_call_.expired()) {
    first_call_ = node;
    first_outputs_ = results;
  }
  output_shapes_.clear();
  std::vector<KerasTensor> outputs;
  for (const TensorSpec& spec : results) {
    outputs.emplace_back(node, static_cast<int>(outputs.size()), spec.shape, spec.dtype);
    output_shapes_.push_back(spec.shape);
  }
  return outputs;
}

std::vector<KerasTensor> LayerImpl::symbolic_inputs() const {
  const auto call = first_call_.lock();
  return call ? call->inputs : std::vector<KerasTensor>();
}

std::vector<KerasTensor> LayerImpl::symbolic_outputs() const {
  std::vector<KerasTensor> outputs;
  if (const auto call = first_call_.lock()) {
    for (const TensorSpec& spec : first_outputs_)
      outputs.emplace_back(call, static_cast<int>(outputs.size()), spec.shape, spec.dtype);
  }
  return outputs;
}

}  // namespace tandem::keras
