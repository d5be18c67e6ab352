#include "tandem/keras/layers/conv_lstm.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/recurrent_arguments.h"
#include "tandem/keras/internal/rnn_impl.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/internal/sizes_of.h"
#include "tandem/keras/internal/spatial.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras {
namespace {

using internal::Sizes;
using internal::Windows;

template <class Size>
class ConvLSTMCellImpl final : public RNNCellImpl {
 public:
  using Options = ConvLSTMOptions<Size>;

  ConvLSTMCellImpl(const std::string& who, std::int64_t filters, Sizes kernel_size,
                   const Options& o)
      : RNNCellImpl("ConvLSTMCell",
                    {.name = "conv_lstm_cell", .trainable = o.trainable, .dtype = o.dtype}),
        who_(who),
        filters_(filters),
        kernel_size_(std::move(kernel_size)),
        options_(o),
        input_(internal::make_windows(who, o.padding, o.data_format, internal::sizes_of(o.strides),
                                      internal::sizes_of(o.dilation_rate))),
        state_(internal::make_windows(who, "same", o.data_format, Sizes(dims(), 1),
                                      Sizes(dims(), 1))) {
    internal::require_positive(who, "filters", filters);
    internal::require_positive_sizes(who, "kernel_size", kernel_size_);
    internal::require_rate(who, "dropout", o.dropout);
    internal::require_rate(who, "recurrent_dropout", o.recurrent_dropout);
    const auto more = [](const Sizes& s) { return *std::max_element(s.begin(), s.end()) > 1; };
    if (more(input_.strides) && more(input_.dilations)) {
      throw InvalidArgumentError(cat(who, ": `strides > 1` is not compatible with ",
                                     "`dilation_rate > 1`. Leave one of them 1."));
    }
  }

  void build(const PartialShape& input) override {
    const auto rank = static_cast<int>(dims()) + 2;
    if (input.rank() != rank) {
      throw InvalidArgumentError(cat(who_, ": a step of the input must have ", rank,
                                     " axes, batch and channels included, but has shape ",
                                     internal::shape_text(input), "."));
    }
    const int channel_axis = input_.channels_last ? rank - 1 : 1;
    const std::int64_t channels = known_size(input, channel_axis);
    for (int i = 1; i < rank; ++i) known_size(input, i);
    const std::int64_t columns = checked_multiply(filters_, 4);
    kernel_ = add_weight("kernel", kernel_shape(channels, columns),
                         {.initializer = options_.kernel_initializer,
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint});
    recurrent_ = add_weight("recurrent_kernel", kernel_shape(filters_, columns),
                            {.initializer = options_.recurrent_initializer,
                             .regularizer = options_.recurrent_regularizer,
                             .constraint = options_.recurrent_constraint});
    if (options_.use_bias) {
      bias_ = add_weight("bias", {columns},
                         {.initializer = bias_initializer(),
                          .regularizer = options_.bias_regularizer,
                          .constraint = options_.bias_constraint});
    }
    for (int i = 1, axis = 0; i < rank; ++i) {
      if (i == channel_axis) {
        output_.add_dim(filters_);
      } else {
        output_.add_dim(output_size(input.dim(i), static_cast<std::size_t>(axis++)));
      }
    }
  }

  std::vector<std::int64_t> state_sizes() const override { return {filters_, filters_}; }
  std::vector<Shape> state_shapes() const override { return {output_, output_}; }

  Tensor project(const Tensor& inputs, bool training) override {
    Tensor x = inputs;
    const bool sequences = inputs.rank() == static_cast<int>(dims()) + 3;
    if (training && options_.dropout > 0) x = dropped(x, sequences);
    if (!sequences) return convolved(x);
    // All steps as one batch.
    std::vector<std::int64_t> together{-1};
    for (int i = 2; i < x.rank(); ++i) together.push_back(x.dim(i));
    const Tensor y = convolved(reshape(x, together));
    std::vector<Tensor> apart = internal::scalar_sizes(x);
    apart.resize(2);
    const std::vector<Tensor> rest = internal::scalar_sizes(y);
    apart.insert(apart.end(), rest.begin() + 1, rest.end());
    return internal::reshape_to(y, apart);
  }

  std::vector<Tensor> constants(const Tensor& inputs, bool training) override {
    std::vector<Tensor> shared{Tensor(recurrent_)};
    if (training && options_.recurrent_dropout > 0) {
      std::vector<std::int64_t> rest;
      for (int i = 0; i < output_.rank(); ++i) rest.push_back(output_.dim(i));
      const Tensor sizes = concat({slice(shape(inputs), {0}, {1}), IntList(rest).tensor(int32)}, 0);
      shared.push_back(nn::dropout(ones(IntList(sizes), compute_dtype()),
                                   options_.recurrent_dropout, {.seed = options_.seed}));
    }
    return shared;
  }

  std::vector<Tensor> step(const Tensor& x, std::span<const Tensor> states,
                           std::span<const Tensor> constants) override {
    const Tensor h = constants.size() > 1 ? states[0] * constants[1] : states[0];
    const Tensor z = x + internal::convolve(h, constants[0], state_);
    const std::vector<Tensor> parts = split(z, 4, input_.channels_last ? -1 : 1);
    const auto& gate = options_.recurrent_activation;
    const Tensor carry =
        gate(parts[1]) * states[1] + gate(parts[0]) * options_.activation(parts[2]);
    const Tensor output = gate(parts[3]) * options_.activation(carry);
    return {output, output, carry};
  }

  Layer copy() const override {
    return Layer(std::make_shared<ConvLSTMCellImpl>(who_, filters_, kernel_size_, options_));
  }

 private:
  std::size_t dims() const { return kernel_size_.size(); }

  Shape kernel_shape(std::int64_t in, std::int64_t out) const {
    Shape shape;
    for (const std::int64_t size : kernel_size_) shape.add_dim(size);
    shape.add_dim(in);
    shape.add_dim(out);
    return shape;
  }

  std::int64_t output_size(std::int64_t size, std::size_t axis) const {
    const std::int64_t stride = input_.strides[axis];
    if (input_.padding == "SAME") return (size + stride - 1) / stride;
    const std::int64_t reach = checked_multiply(kernel_size_[axis] - 1, input_.dilations[axis]) + 1;
    if (size < reach) {
      throw InvalidArgumentError(cat(who_, ": the input has size ", size,
                                     " where the kernel spans ", reach,
                                     ". Use padding = \"same\" or a smaller kernel."));
    }
    return (size - reach) / stride + 1;
  }

  Tensor convolved(const Tensor& x) const {
    Tensor y = internal::convolve(x, kernel_, input_);
    return options_.use_bias ? internal::add_channel_bias(std::move(y), bias_, input_) : y;
  }

  // All steps of an example lose the same elements.
  Tensor dropped(const Tensor& x, bool sequences) const {
    nn::DropoutOptions how{.seed = options_.seed};
    if (sequences) {
      std::vector<Tensor> sizes = unstack(shape(x), x.rank());
      sizes[1] = Tensor(1);
      how.noise_shape = stack(sizes);
    }
    return nn::dropout(x, options_.dropout, how);
  }

  Initializer bias_initializer() const {
    if (!options_.unit_forget_bias) return options_.bias_initializer;
    return [units = filters_, rest = options_.bias_initializer](const Shape&, DType dtype) {
      return concat({rest({units}, dtype), ones({units}, dtype), rest({2 * units}, dtype)}, 0);
    };
  }

  std::string who_;
  std::int64_t filters_;
  Sizes kernel_size_;
  Options options_;
  Windows input_;
  Windows state_;
  Shape output_;
  Variable kernel_;
  Variable recurrent_;
  Variable bias_;
};

template <class Size>
std::shared_ptr<LayerImpl> conv_lstm(const char* class_name, std::int64_t filters,
                                     const Size& kernel_size, const ConvLSTMOptions<Size>& o) {
  const Layer cell(std::make_shared<ConvLSTMCellImpl<Size>>(class_name, filters,
                                                            internal::sizes_of(kernel_size), o));
  return std::make_shared<internal::RNNImpl>(class_name, cell, internal::around_a_cell(o));
}

constexpr auto kArguments = [](auto& a, auto& o, auto& filters, auto& kernel_size) {
  a("filters", filters);
  a("kernel_size", kernel_size);
  a("strides", o.strides);
  a("padding", o.padding);
  a("data_format", o.data_format);
  a("dilation_rate", o.dilation_rate);
  a("activation", o.activation);
  a("recurrent_activation", o.recurrent_activation);
  a("use_bias", o.use_bias);
  a("kernel_initializer", o.kernel_initializer);
  a("recurrent_initializer", o.recurrent_initializer);
  a("bias_initializer", o.bias_initializer);
  a("unit_forget_bias", o.unit_forget_bias);
  a("kernel_regularizer", o.kernel_regularizer);
  a("kernel_constraint", o.kernel_constraint);
  a("recurrent_regularizer", o.recurrent_regularizer);
  a("recurrent_constraint", o.recurrent_constraint);
  a("bias_regularizer", o.bias_regularizer);
  a("bias_constraint", o.bias_constraint);
  a("dropout", o.dropout);
  a("recurrent_dropout", o.recurrent_dropout);
  a("seed", o.seed);
  internal::kLoopArguments(a, o);
};

}  // namespace

ConvLSTM1D::ConvLSTM1D(std::int64_t filters, std::int64_t kernel_size,
                       const ConvLSTMOptions<std::int64_t>& options)
    : Layer(internal::with_arguments(conv_lstm("ConvLSTM1D", filters, kernel_size, options),
                                     kArguments, options, filters, kernel_size)) {}
ConvLSTM2D::ConvLSTM2D(std::int64_t filters, Size2D kernel_size,
                       const ConvLSTMOptions<Size2D>& options)
    : Layer(internal::with_arguments(conv_lstm("ConvLSTM2D", filters, kernel_size, options),
                                     kArguments, options, filters, kernel_size)) {}
ConvLSTM3D::ConvLSTM3D(std::int64_t filters, Size3D kernel_size,
                       const ConvLSTMOptions<Size3D>& options)
    : Layer(internal::with_arguments(conv_lstm("ConvLSTM3D", filters, kernel_size, options),
                                     kArguments, options, filters, kernel_size)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<ConvLSTM1D, ConvLSTMOptions<std::int64_t>, std::int64_t,
                                   std::int64_t>("ConvLSTM1D", kArguments),
    internal::register_layer_class<ConvLSTM2D, ConvLSTMOptions<Size2D>, std::int64_t, Size2D>(
        "ConvLSTM2D", kArguments),
    internal::register_layer_class<ConvLSTM3D, ConvLSTMOptions<Size3D>, std::int64_t, Size3D>(
        "ConvLSTM3D", kArguments)};
}  // namespace

}  // namespace tandem::keras
