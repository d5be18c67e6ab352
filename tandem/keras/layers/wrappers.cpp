#include "tandem/keras/layers/wrappers.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/rnn_impl.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras {
namespace {

class BidirectionalImpl final : public LayerImpl {
 public:
  BidirectionalImpl(const Layer& layer, const BidirectionalOptions& o)
      : LayerImpl("Bidirectional", {.name = o.name}), mode_(o.merge_mode) {
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
    const bool backwards = rnn->options().go_backwards;
    sequences_ = rnn->options().return_sequences;
    num_states_ = rnn->num_states();
    forward_ = add_layer(rnn->copy("forward_" + rnn->name(), backwards));
    backward_ = add_layer(rnn->copy("backward_" + rnn->name(), !backwards));
  }

  void build_many(const std::vector<PartialShape>& inputs) override {
    build_within(forward_, {inputs.at(0)});
    build_within(backward_, {inputs.at(0)});
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    if (inputs.size() != 1 && inputs.size() != 1 + 2 * num_states_) {
      throw InvalidArgumentError(cat(prefix(), "takes sequences and none or all of its ",
                                     2 * num_states_, " first states. Received ", inputs.size(),
                                     " tensors."));
    }
    std::vector<Tensor> there{inputs[0]};
    std::vector<Tensor> back{inputs[0]};
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      (i <= num_states_ ? there : back).push_back(inputs[i]);
    }
    const std::vector<Tensor> a = forward_.outputs(there, how);
    const std::vector<Tensor> b = backward_.outputs(back, how);
    std::vector<Tensor> results = merge(a[0], sequences_ ? reverse(b[0], {1}) : b[0]);
    results.insert(results.end(), a.begin() + 1, a.end());
    results.insert(results.end(), b.begin() + 1, b.end());
    return results;
  }

  void describe(Config& config) const override {
    config.set("merge_mode", mode_ ? ConfigValue(*mode_) : ConfigValue());
    config.set("layer", forward_.describe());
  }

 private:
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
  TimeDistributedImpl(const Layer& layer, const std::string& name)
      : LayerImpl("TimeDistributed", {.name = name}), layer_(add_layer(layer)) {
    keep_input_dtypes();
    require_min_rank(3);
  }

  void build(const PartialShape& input) override {
    std::vector<std::int64_t> sizes{-1};
    for (int i = 2; i < input.rank(); ++i) sizes.push_back(input.dim(i));
    build_within(layer_, {PartialShape(sizes)});
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    if (inputs.size() != 1) {
      throw InvalidArgumentError(cat(prefix(), "takes one input, got ", inputs.size(), "."));
    }
    const Tensor& x = inputs[0];
    const Tensor sizes = shape(x);
    const Tensor together =
        x.partial_shape().is_fully_known()
            ? reshape(x, merged_sizes(x.shape()))
            : reshape(x, IntList(concat({IntList{-1}.tensor(int32), slice(sizes, {2}, {-1})}, 0)));
    const Tensor y = layer_(together, how);
    const std::int64_t batch = x.dim(0);
    const std::int64_t steps = x.dim(1);
    bool known = batch >= 0 || steps >= 0;
    std::vector<std::int64_t> apart{batch, steps};
    for (int i = 1; i < y.rank(); ++i) {
      apart.push_back(y.dim(i));
      known = known && y.dim(i) >= 0;
    }
    if (known) return {reshape(y, apart)};
    return {reshape(y, IntList(concat({slice(sizes, {0}, {2}), slice(shape(y), {1}, {-1})}, 0)))};
  }

  void describe(Config& config) const override { config.set("layer", layer_.describe()); }

 private:
  static std::vector<std::int64_t> merged_sizes(const Shape& shape) {
    std::vector<std::int64_t> sizes{checked_multiply(shape.dim(0), shape.dim(1))};
    for (int i = 2; i < shape.rank(); ++i) sizes.push_back(shape.dim(i));
    return sizes;
  }

  Layer layer_;
};

}  // namespace

Bidirectional::Bidirectional(const Layer& layer, const BidirectionalOptions& options)
    : Layer(std::make_shared<BidirectionalImpl>(layer, options)) {}
TimeDistributed::TimeDistributed(const Layer& layer, const NamedOptions& options)
    : Layer(std::make_shared<TimeDistributedImpl>(layer, options.name)) {}

}  // namespace tandem::keras
