#include "tandem/keras/layer.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/call_node.h"
#include "tandem/keras/layer_impl.h"

namespace tandem::keras {

bool TrainableProperty::get() const { return Layer(impl_).impl()->trainable(); }
void TrainableProperty::set(bool value) const { Layer(impl_).impl()->set_trainable(value); }

Layer::Layer(std::shared_ptr<LayerImpl> impl) : trainable(impl), impl_(std::move(impl)) {}
Layer::Layer(const KerasTensor& tensor) : Layer(tensor.node()->layer) {}
Layer& Layer::operator=(const Layer& other) {
  trainable.impl_ = impl_ = other.impl_;
  return *this;
}
Layer& Layer::operator=(Layer&& other) noexcept {
  impl_ = std::move(other.impl_);
  trainable.impl_ = impl_;
  return *this;
}

const std::shared_ptr<LayerImpl>& Layer::impl() const {
  if (!impl_)
    throw FailedPreconditionError(
        "This Layer refers to no layer. Assign one, for example Dense(10).");
  return impl_;
}

namespace {

template <class T>
T only(std::vector<T> outputs, const LayerImpl& layer) {
  if (outputs.size() != 1) {
    throw InvalidArgumentError(cat("Layer '", layer.name(), "' (", layer.class_name(), ") has ",
                                   outputs.size(), " outputs. Use outputs(...) to get them all."));
  }
  return std::move(outputs.front());
}

}  // namespace

Tensor Layer::operator()(const Tensor& input, const CallOptions& options) const {
  return only(impl()->run({input}, options), *impl_);
}
Tensor Layer::operator()(const std::vector<Tensor>& inputs, const CallOptions& options) const {
  return only(impl()->run(inputs, options), *impl_);
}
KerasTensor Layer::operator()(const KerasTensor& input, const CallOptions& options) const {
  return only(impl()->run(std::vector<KerasTensor>{input}, options), *impl_);
}
KerasTensor Layer::operator()(const std::vector<KerasTensor>& inputs,
                              const CallOptions& options) const {
  return only(impl()->run(inputs, options), *impl_);
}
std::vector<Tensor> Layer::outputs(const std::vector<Tensor>& inputs,
                                   const CallOptions& options) const {
  return impl()->run(inputs, options);
}
std::vector<KerasTensor> Layer::outputs(const std::vector<KerasTensor>& inputs,
                                        const CallOptions& options) const {
  return impl()->run(inputs, options);
}

namespace {

KerasTensor only_of(const std::vector<KerasTensor>& tensors, const LayerImpl& layer,
                    const char* what) {
  if (tensors.empty()) {
    throw FailedPreconditionError(cat("The layer '", layer.name(), "' (", layer.class_name(),
                                      ") has never been called with "
                                      "KerasTensors and thus has no defined ",
                                      what,
                                      ". Only layers of a functional model, "
                                      "or of a Sequential that is built, have one."));
  }
  if (tensors.size() > 1) {
    throw InvalidArgumentError(cat("The layer '", layer.name(), "' (", layer.class_name(), ") has ",
                                   tensors.size(), " ", what, "s, not one."));
  }
  return tensors.front();
}

}  // namespace

KerasTensor Layer::input() const { return only_of(impl()->symbolic_inputs(), *impl_, "input"); }
KerasTensor Layer::output() const { return only_of(impl()->symbolic_outputs(), *impl_, "output"); }

const std::string& Layer::name() const { return impl()->name(); }
const std::string& Layer::class_name() const { return impl()->class_name(); }
Config Layer::config() const { return impl()->config(); }
const DTypePolicy& Layer::dtype_policy() const { return impl()->dtype_policy(); }
std::string Layer::describe() const { return cat(class_name(), "(", config().to_string(), ")"); }

void Layer::build(const PartialShape& input_shape) const {
  impl()->ensure_built({input_shape});
  const std::vector<Layer> within = impl()->sublayers();
  const auto unbuilt = [](const Layer& layer) { return !layer.built(); };
  // The layers of a model with a `call` of its own are built as it calls them.
  if (std::any_of(within.begin(), within.end(), unbuilt))
    impl()->infer({{compute_dtype(), input_shape}}, {});
}
bool Layer::built() const { return impl()->built(); }
PartialShape Layer::compute_output_shape(const PartialShape& input_shape) const {
  return only(impl()->infer({{compute_dtype(), input_shape}}, {}), *impl_).shape;
}

Tensor Layer::compute_mask(const Tensor& input, const Tensor& mask) const {
  std::vector<Tensor> known;
  if (mask.defined()) known.push_back(mask);
  const std::vector<Tensor> masks = impl()->compute_masks(std::span(&input, 1), known);
  return masks.empty() ? Tensor() : masks.front();
}

std::vector<Variable> Layer::weights() const {
  std::vector<Variable> all;
  for (const LayerImpl::Weight& w : impl()->collect_weights()) all.push_back(w.variable);
  return all;
}
std::vector<Variable> Layer::trainable_weights() const {
  std::vector<Variable> some;
  for (const LayerImpl::Weight& w : impl()->collect_weights()) {
    if (w.trainable) some.push_back(w.variable);
  }
  return some;
}
std::vector<Variable> Layer::non_trainable_weights() const {
  std::vector<Variable> some;
  for (const LayerImpl::Weight& w : impl()->collect_weights()) {
    if (!w.trainable) some.push_back(w.variable);
  }
  return some;
}

std::vector<Variable> Layer::variables() const {
  std::vector<Variable> all = weights();
  for (const Variable& state : impl()->collect_states()) all.push_back(state);
  return all;
}
std::vector<Variable> Layer::non_trainable_variables() const {
  std::vector<Variable> all = non_trainable_weights();
  for (const Variable& state : impl()->collect_states()) all.push_back(state);
  return all;
}
std::vector<Tensor> Layer::get_weights() const {
  std::vector<Tensor> values;
  for (const Variable& v : weights()) values.push_back(v.read_value());
  return values;
}

void Layer::set_weights(const std::vector<Tensor>& values) const {
  const std::vector<Variable> variables = weights();
  if (values.size() != variables.size()) {
    throw InvalidArgumentError(cat("Layer '", name(), "' has ", variables.size(),
                                   " weights, but set_weights was given ", values.size(), ".",
                                   built() ? "" : " It is not built yet: call build first."));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!variables[i].shape().is_compatible(values[i].partial_shape()) ||
        variables[i].dtype() != values[i].dtype()) {
      throw InvalidArgumentError(cat("Weight '", variables[i].name(), "' is ", variables[i].dtype(),
                                     variables[i].shape(), ", but set_weights was given ",
                                     values[i].dtype(), values[i].partial_shape(), " for it."));
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) variables[i].assign(values[i]);
}

std::int64_t Layer::count_params() const {
  if (!built()) {
    throw FailedPreconditionError(
        cat("Layer '", name(),
            "' has no weights yet. Call it, or build(input_shape), before "
            "count_params."));
  }
  std::int64_t count = 0;
  for (const Variable& v : weights()) count += v.shape().num_elements();
  return count;
}

std::vector<Tensor> Layer::losses() const {
  std::vector<Tensor> penalties = impl()->added_losses();
  for (const LayerImpl::Weight& w : impl()->collect_weights()) {
    if (w.trainable && w.regularizer.defined())
      penalties.push_back(w.regularizer(w.variable.read_value()));
  }
  return penalties;
}
void Layer::add_loss(const Tensor& loss) const { impl()->add_loss(loss); }

}  // namespace tandem::keras
