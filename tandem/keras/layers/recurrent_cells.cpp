#include "tandem/keras/layers/recurrent_cells.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/recurrent_arguments.h"
#include "tandem/keras/rnn_cell_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras {
namespace {

// What the cells have in common: `gates` blocks of `units` columns in each weight.
template <class Options>
class CellBase : public RNNCellImpl {
 public:
  CellBase(const std::string& class_name, std::int64_t units, std::int64_t gates, const Options& o)
      : RNNCellImpl(class_name, {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        units_(units),
        gates_(gates),
        options_(o) {
    internal::require_positive(class_name, "units", units);
    internal::require_rate(class_name, "dropout", o.dropout);
    internal::require_rate(class_name, "recurrent_dropout", o.recurrent_dropout);
  }

  void build(const PartialShape& input) override {
    const std::int64_t size = known_size(input, -1);
    const std::int64_t columns = checked_multiply(units_, gates_);
    kernel_ = add_weight("kernel", {size, columns},
                         {.initializer = options_.kernel_initializer,
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint});
    recurrent_ = add_weight("recurrent_kernel", {units_, columns},
                            {.initializer = options_.recurrent_initializer,
                             .regularizer = options_.recurrent_regularizer,
                             .constraint = options_.recurrent_constraint});
    if (options_.use_bias) {
      bias_ = add_weight("bias", bias_shape(),
                         {.initializer = bias_initializer(),
                          .regularizer = options_.bias_regularizer,
                          .constraint = options_.bias_constraint});
    }
  }

  std::vector<std::int64_t> state_sizes() const override { return {units_}; }

  Tensor project(const Tensor& inputs, bool training) override {
    const std::int64_t built_for = kernel_.shape().dim(0), got = inputs.dim(-1);
    if (got >= 0 && got != built_for) {
      throw InvalidArgumentError(cat(prefix(), "was built for steps of ", built_for,
                                     " features, but the input has ", got, "."));
    }
    Tensor y = training && options_.dropout > 0 ? dropped(inputs) : inputs;
    y = matmul(std::move(y), kernel_);
    return options_.use_bias ? nn::bias_add(std::move(y), input_bias()) : y;
  }

 protected:
  virtual Shape bias_shape() const { return {checked_multiply(units_, gates_)}; }
  virtual Initializer bias_initializer() const { return options_.bias_initializer; }
  virtual Tensor input_bias() const { return bias_; }

  // A mask for the states at the end, if they are dropped.
  std::vector<Tensor> with_mask(std::vector<Tensor> shared, const Tensor& inputs,
                                bool training) const {
    if (training && options_.recurrent_dropout > 0) {
      const Tensor sizes =
          concat({slice(shape(inputs), {0}, {1}), IntList{units_}.tensor(int32)}, 0);
      shared.push_back(nn::dropout(ones(IntList(sizes), compute_dtype()),
                                   options_.recurrent_dropout, {.seed = options_.seed}));
    }
    return shared;
  }
  static Tensor masked(const Tensor& state, std::span<const Tensor> constants,
                       std::size_t without_mask) {
    return constants.size() > without_mask ? state * constants[without_mask] : state;
  }

  std::int64_t units_;
  std::int64_t gates_;
  Options options_;
  Variable kernel_;
  Variable recurrent_;
  Variable bias_;

 private:
  // All steps of an example lose the same features.
  Tensor dropped(const Tensor& inputs) const {
    nn::DropoutOptions how{.seed = options_.seed};
    if (inputs.rank() == 3) {
      const std::vector<Tensor> sizes = unstack(shape(inputs), 3);
      how.noise_shape = stack({sizes[0], Tensor(1), sizes[2]});
    }
    return nn::dropout(inputs, options_.dropout, how);
  }
};

class SimpleRNNCellImpl final : public CellBase<SimpleRNNCellOptions> {
 public:
  SimpleRNNCellImpl(std::int64_t units, const SimpleRNNCellOptions& o)
      : CellBase("SimpleRNNCell", units, 1, o) {}

  std::vector<Tensor> constants(const Tensor& inputs, bool training) override {
    return with_mask({Tensor(recurrent_)}, inputs, training);
  }
  std::vector<Tensor> step(const Tensor& x, std::span<const Tensor> states,
                           std::span<const Tensor> constants) override {
    const Tensor h = options_.activation(x + matmul(masked(states[0], constants, 1), constants[0]));
    return {h, h};
  }
  Layer copy() const override { return SimpleRNNCell(units_, options_); }
};

class LSTMCellImpl final : public CellBase<LSTMCellOptions> {
 public:
  LSTMCellImpl(std::int64_t units, const LSTMCellOptions& o) : CellBase("LSTMCell", units, 4, o) {}

  std::vector<std::int64_t> state_sizes() const override { return {units_, units_}; }

  std::vector<Tensor> constants(const Tensor& inputs, bool training) override {
    return with_mask({Tensor(recurrent_)}, inputs, training);
  }
  std::vector<Tensor> step(const Tensor& x, std::span<const Tensor> states,
                           std::span<const Tensor> constants) override {
    const Tensor z = x + matmul(masked(states[0], constants, 1), constants[0]);
    const std::vector<Tensor> parts = split(z, 4, -1);  // input, forget, candidate, output
    const auto& gate = options_.recurrent_activation;
    const Tensor carry =
        gate(parts[1]) * states[1] + gate(parts[0]) * options_.activation(parts[2]);
    const Tensor h = gate(parts[3]) * options_.activation(carry);
    return {h, h, carry};
  }
  Layer copy() const override { return LSTMCell(units_, options_); }

 private:
  Initializer bias_initializer() const override {
    if (!options_.unit_forget_bias) return options_.bias_initializer;
    return [units = units_, rest = options_.bias_initializer](const Shape&, DType dtype) {
      return concat({rest({units}, dtype), ones({units}, dtype), rest({2 * units}, dtype)}, 0);
    };
  }
};

class GRUCellImpl final : public CellBase<GRUCellOptions> {
 public:
  GRUCellImpl(std::int64_t units, const GRUCellOptions& o) : CellBase("GRUCell", units, 3, o) {}

  std::vector<Tensor> constants(const Tensor& inputs, bool training) override {
    const Tensor all = recurrent_;
    if (options_.reset_after) {
      return with_mask(
          {all, options_.use_bias ? index(bias_, {1}) : zeros({3 * units_}, compute_dtype())},
          inputs, training);
    }
    return with_mask(split(all, IntList{2 * units_, units_}, 1), inputs, training);
  }
  std::vector<Tensor> step(const Tensor& x, std::span<const Tensor> states,
                           std::span<const Tensor> constants) override {
    const auto& gate = options_.recurrent_activation;
    const Tensor state = masked(states[0], constants, 2);
    Tensor update;
    Tensor candidate;
    if (options_.reset_after) {
      const std::vector<Tensor> in = split(x, 3, -1);  // update, reset, candidate
      const std::vector<Tensor> inner =
          split(nn::bias_add(matmul(state, constants[0]), constants[1]), 3, -1);
      update = gate(in[0] + inner[0]);
      candidate = options_.activation(in[2] + gate(in[1] + inner[1]) * inner[2]);
    } else {
      const std::vector<Tensor> in = split(x, IntList{2 * units_, units_}, -1);
      const std::vector<Tensor> gates = split(gate(in[0] + matmul(state, constants[0])), 2, -1);
      update = gates[0];
      candidate = options_.activation(in[1] + matmul(gates[1] * state, constants[1]));
    }
    const Tensor h = update * states[0] + (1 - update) * candidate;
    return {h, h};
  }
  Layer copy() const override { return GRUCell(units_, options_); }

 private:
  Shape bias_shape() const override {
    if (!options_.reset_after) return CellBase::bias_shape();
    return {2, 3 * units_};  // of the inputs, of the state
  }
  Tensor input_bias() const override {
    return options_.reset_after ? index(bias_, {0}) : Tensor(bias_);
  }
};

}  // namespace

SimpleRNNCell::SimpleRNNCell(std::int64_t units, const SimpleRNNCellOptions& options)
    : Layer(internal::with_arguments(std::make_shared<SimpleRNNCellImpl>(units, options),
                                     internal::kCellArguments, options, units)) {}
LSTMCell::LSTMCell(std::int64_t units, const LSTMCellOptions& options)
    : Layer(internal::with_arguments(std::make_shared<LSTMCellImpl>(units, options),
                                     internal::kCellArguments, options, units)) {}
GRUCell::GRUCell(std::int64_t units, const GRUCellOptions& options)
    : Layer(internal::with_arguments(std::make_shared<GRUCellImpl>(units, options),
                                     internal::kCellArguments, options, units)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<SimpleRNNCell, SimpleRNNCellOptions, std::int64_t>(
        "SimpleRNNCell", internal::kCellArguments),
    internal::register_layer_class<LSTMCell, LSTMCellOptions, std::int64_t>(
        "LSTMCell", internal::kCellArguments),
    internal::register_layer_class<GRUCell, GRUCellOptions, std::int64_t>(
        "GRUCell", internal::kCellArguments)};
}  // namespace

}  // namespace tandem::keras
