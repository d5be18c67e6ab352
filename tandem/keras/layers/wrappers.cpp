#include "tandem/keras/layers/wrappers.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/rnn_impl.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/internal/sizes_of.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras {
namespace {

class BidirectionalImpl final : public LayerImpl {
 public:
  BidirectionalImpl(const Layer& layer, const BidirectionalOptions& o)
      : LayerImpl("Bidirectional", {.name = o.name, .dtype = o.dtype}), mode_(o.merge_mode) {
    const auto rnn = std::dynamic_pointer_cast<internal::RNNImpl>(layer.impl());
    if (!rnn) {
      throw InvalidArgumentError(cat("Bidirectional: the layer must be a recurrent one, such as ",
                                     "LSTM. Received: ", layer.describe(), "."));
    }
    if (mode_ && *mode_ != "concat" && *mode_ != "sum" && *mode_ != "mul" && *mode_ != "ave") {
      throw InvalidArgumentError(cat("Invalid merge mode. Received: '", *mode_,
                                     "'. Merge mode should be one of 'sum', 'mul', 'ave', ",
                                     "'concat', or nullopt."));
    }
    sequences_ = rnn->options().return_sequences;
    num_states_ = rnn->num_states();
    RNNOptions both = rnn->options();
    both.zero_output_for_mask = sequences_;
    both.name = "forward_" + rnn->name();
    forward_ = add_layer(rnn->copy(both), "forward_layer");
    if (o.backward_layer.defined()) {
      backward_ = add_layer(checked_backward(*rnn, o.backward_layer), "backward_layer");
      return;
    }
    if (both.go_backwards) {
      throw InvalidArgumentError(
          "Bidirectional: the layer has go_backwards, so its copy for the other direction would "
          "be the same. Leave go_backwards out, or give a backward_layer.");
    }
    both.name = "backward_" + rnn->name();
    both.go_backwards = true;
    backward_ = add_layer(rnn->copy(both), "backward_layer");
  }

  void build_many(const std::vector<PartialShape>& inputs) override {
    build_sublayer(forward_, {inputs.at(0)});
    build_sublayer(backward_, {inputs.at(0)});
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    if (inputs.size() != 1 && inputs.size() != 1 + 2 * num_states_) {
      throw InvalidArgumentError(cat(prefix(), "takes sequences and none or all of its ",
                                     2 * num_states_, " first states. Received ", inputs.size(),
                                     " tensors."));
    }
    CallOptions with = how;
    with.mask = how.mask_of(0).defined() ? TensorList(how.mask_of(0)) : TensorList();
    std::vector<Tensor> there{inputs[0]};
    std::vector<Tensor> back{inputs[0]};
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      (i <= num_states_ ? there : back).push_back(inputs[i]);
    }
    const std::vector<Tensor> a = forward_.outputs(there, with);
    const std::vector<Tensor> b = backward_.outputs(back, with);
    std::vector<Tensor> results = merge(a[0], sequences_ ? reverse(b[0], {1}) : b[0]);
    results.insert(results.end(), a.begin() + 1, a.end());
    results.insert(results.end(), b.begin() + 1, b.end());
    return results;
  }

  InputForm input_form() const override { return InputForm::kStates; }

  std::vector<Tensor> compute_masks(std::span<const Tensor>,
                                    std::span<const Tensor> masks) const override {
    if (masks.empty() || !sequences_) return {};
    return std::vector<Tensor>(mode_ ? 1 : 2, masks[0]);
  }

 private:
  static Layer checked_backward(const internal::RNNImpl& forward, const Layer& layer) {
    const auto rnn = std::dynamic_pointer_cast<internal::RNNImpl>(layer.impl());
    const RNNOptions& a = forward.options();
    if (!rnn || rnn->options().go_backwards == a.go_backwards ||
        rnn->options().return_sequences != a.return_sequences ||
        rnn->options().return_state != a.return_state) {
      throw InvalidArgumentError(
          cat("Bidirectional: backward_layer must be a recurrent layer of the other go_backwards ",
              "than the layer, and of the same return_sequences and return_state. Received: ",
              layer.describe(), "."));
    }
    RNNOptions own = rnn->options();
    own.zero_output_for_mask = own.return_sequences;
    rnn->set_options(own);
    return layer;
  }

  std::vector<Tensor> merge(const Tensor& a, const Tensor& b) const {
    if (!mode_) return {a, b};
    if (*mode_ == "concat") return {concat({a, b}, -1)};
    if (*mode_ == "mul") return {a * b};
    if (*mode_ == "ave") return {(a + b) / 2};
    return {a + b};
  }

  std::optional<std::string> mode_;
  bool sequences_;
  std::size_t num_states_;
  Layer forward_;
  Layer backward_;
};

class TimeDistributedImpl final : public LayerImpl {
 public:
  TimeDistributedImpl(const Layer& layer, const NamedOptions& o)
      : LayerImpl("TimeDistributed", {.name = o.name, .dtype = o.dtype}),
        layer_(add_layer(layer, "layer")) {
    keep_dtypes();
    require_min_rank(3);
    pass_masks();
  }

  void build(const PartialShape& input) override {
    std::vector<std::int64_t> sizes{-1};
    for (int i = 2; i < input.rank(); ++i) sizes.push_back(input.dim(i));
    build_sublayer(layer_, {PartialShape(sizes)});
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    if (inputs.size() != 1) {
      throw InvalidArgumentError(cat(prefix(), "takes one input, got ", inputs.size(), "."));
    }
    const Tensor& x = inputs[0];
    if (how.is_training() && x.dim(1) > 0 && has_state()) return {one_by_one(x, how)};
    std::vector<Tensor> sizes = internal::scalar_sizes(x);
    std::vector<Tensor> merged(sizes.begin() + 2, sizes.end());
    merged.insert(merged.begin(), x.partial_shape().is_fully_known()
                                      ? Tensor(static_cast<int>(merged_size(x)))
                                      : Tensor(-1));
    const Tensor together = internal::reshape_to(x, merged);
    CallOptions with = how;
    with.mask = step_masks(how.mask_of(0), x);
    const Tensor y = layer_(together, with);
    sizes.resize(2);
    const std::vector<Tensor> rest = internal::scalar_sizes(y);
    sizes.insert(sizes.end(), rest.begin() + 1, rest.end());
    return {internal::reshape_to(y, sizes)};
  }

 private:
  // Layers that keep statistics of what they see get one step at a time.
  bool has_state() const {
    const auto weights = layer_.impl()->collect_weights();
    return std::any_of(weights.begin(), weights.end(),
                       [](const Weight& w) { return !w.variable.trainable(); });
  }
  Tensor one_by_one(const Tensor& x, const CallOptions& how) const {
    CallOptions with = how;
    with.mask = MaskList();
    std::vector<Tensor> results;
    for (const Tensor& step : unstack(x, x.dim(1), 1)) results.push_back(layer_(step, with));
    return stack(results, 1);
  }

  // A mask of more than [batch, steps] has a part for each step.
  TensorList step_masks(const Tensor& mask, const Tensor& x) const {
    if (!mask.defined()) return {};
    const PartialShape wanted(std::vector<std::int64_t>{x.dim(0), x.dim(1)});
    if (mask.rank() == 2 && wanted.is_compatible(mask.partial_shape())) return {};
    if (mask.rank() < 3) {
      throw InvalidArgumentError(
          cat(prefix(), "the mask must begin with [batch, steps] = ", internal::shape_text(wanted),
              ", but has shape ", internal::shape_text(mask.partial_shape()), "."));
    }
    return reshape(mask,
                   IntList(concat({IntList{-1}.tensor(int32), slice(shape(mask), {2}, {-1})}, 0)));
  }

  static std::int64_t merged_size(const Tensor& x) {
    const std::int64_t size = checked_multiply(x.dim(0), x.dim(1));
    if (size > INT32_MAX) {
      throw InvalidArgumentError(cat("TimeDistributed: ", x.dim(0), " times ", x.dim(1),
                                     " steps are more than a layer takes at once."));
    }
    return size;
  }

  Layer layer_;
};

constexpr auto kBidirectional = [](auto& a, auto& o, auto& layer) {
  a("merge_mode", o.merge_mode);
  a("layer", layer);
  a("backward_layer", o.backward_layer);
};
constexpr auto kTimeDistributed = [](auto& a, auto&, auto& layer) { a("layer", layer); };

}  // namespace

Bidirectional::Bidirectional(const Layer& layer, const BidirectionalOptions& options)
    : Layer(internal::with_arguments(std::make_shared<BidirectionalImpl>(layer, options),
                                     kBidirectional, options, layer)) {}
TimeDistributed::TimeDistributed(const Layer& layer, const NamedOptions& options)
    : Layer(internal::with_arguments(std::make_shared<TimeDistributedImpl>(layer, options),
                                     kTimeDistributed, options, layer)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<Bidirectional, BidirectionalOptions, Layer>("Bidirectional",
                                                                               kBidirectional),
    internal::register_layer_class<TimeDistributed, NamedOptions, Layer>("TimeDistributed",
                                                                         kTimeDistributed)};
}  // namespace

}  // namespace tandem::keras
