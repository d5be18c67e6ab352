#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/keras/layer_impl.h"

namespace tandem::keras {

/// What a cell of a recurrent layer is: derive from it to write one, and give it to RNN.
///
///     class Sum final : public td::keras::RNNCellImpl {
///      public:
///       explicit Sum(std::int64_t size) : RNNCellImpl("Sum"), size_(size) { without_weights(); }
///       std::vector<std::int64_t> state_sizes() const override { return {size_}; }
///       std::vector<td::Tensor> step(const td::Tensor& x, std::span<const td::Tensor> states,
///                                    std::span<const td::Tensor>) override {
///         const td::Tensor sum = states[0] + x;
///         return {sum, sum};
///       }
///      …
///     };
///     td::keras::RNN running_sum(td::keras::make_layer<Sum>(8), {.return_sequences = true});
class TANDEM_EXPORT RNNCellImpl : public LayerImpl {
 public:
  using LayerImpl::LayerImpl;

  /// The last size of each state.
  virtual std::vector<std::int64_t> state_sizes() const = 0;
  /// The shapes of the states without the batch, for those that have more than one size; known once
  /// the cell is built. The output has the shape of the first one, unless output_shape says else.
  virtual std::vector<Shape> state_shapes() const;
  virtual Shape output_shape() const { return state_shapes().at(0); }
  /// The part of the work that needs no state, for one step [batch, features] or all of them
  /// [batch, steps, features]. The inputs themselves by default.
  virtual Tensor project(const Tensor& inputs, bool training);
  /// What all steps share, computed before the first one: weights as they are read, dropout masks.
  virtual std::vector<Tensor> constants(const Tensor& inputs, bool training);
  /// One step: {output, states...} from what `project` gave for it.
  virtual std::vector<Tensor> step(const Tensor& projected, std::span<const Tensor> states,
                                   std::span<const Tensor> constants) = 0;
  /// A cell with the same arguments and weights of its own. Bidirectional needs it; throws
  /// UnimplementedError by default.
  virtual Layer copy() const;

  /// {inputs, states...} to {output, states...}.
  std::vector<Tensor> call_many(std::span<const Tensor> inputs,
                                const CallOptions& options) override;
  void build_many(const std::vector<PartialShape>& inputs) override { build(inputs.at(0)); }
};

}  // namespace tandem::keras
