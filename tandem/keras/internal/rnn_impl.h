#pragma once

#include <memory>
#include <vector>

#include "tandem/keras/layers/recurrent.h"
#include "tandem/keras/rnn_cell_impl.h"

namespace tandem::keras::internal {

/// Cells one upon the other, seen as one.
class StackedCellsImpl final : public RNNCellImpl {
 public:
  StackedCellsImpl(const std::vector<Layer>& cells, const std::string& name);

  void build(const PartialShape& input) override;
  std::vector<std::int64_t> state_sizes() const override;
  std::vector<Shape> state_shapes() const override;
  Shape output_shape() const override { return cells_.back()->output_shape(); }
  std::vector<Tensor> call_many(std::span<const Tensor> inputs,
                                const CallOptions& options) override;
  std::vector<Tensor> step(const Tensor& projected, std::span<const Tensor> states,
                           std::span<const Tensor> constants) override;
  Layer copy() const override;

  const std::vector<std::shared_ptr<RNNCellImpl>>& cells() const { return cells_; }

 private:
  std::vector<Layer> layers_;
  std::vector<std::shared_ptr<RNNCellImpl>> cells_;
};

/// What a layer that is given as one (LSTM, ConvLSTM2D) has in common with RNN around its cell.
template <class Options>
RNNOptions around_a_cell(const Options& o) {
  RNNOptions options;
  options.return_sequences = o.return_sequences;
  options.return_state = o.return_state;
  options.go_backwards = o.go_backwards;
  options.unroll = o.unroll;
  options.activity_regularizer = o.activity_regularizer;
  options.name = o.name;
  options.trainable = o.trainable;
  options.dtype = o.dtype;
  return options;
}

/// Every recurrent layer: a cell and a loop around it. A stack of cells is as many loops one after
/// the other, so that each of them has its inputs of all steps at once.
class RNNImpl final : public LayerImpl {
 public:
  RNNImpl(const std::string& class_name, const Layer& cell, const RNNOptions& options);

  void build_many(const std::vector<PartialShape>& inputs) override;
  std::vector<Tensor> call_many(std::span<const Tensor> inputs,
                                const CallOptions& options) override;
  std::vector<Tensor> compute_masks(std::span<const Tensor> inputs,
                                    std::span<const Tensor> masks) const override;

  InputForm input_form() const override { return InputForm::kStates; }

  const RNNOptions& options() const { return options_; }
  std::size_t num_states() const { return cell_->state_sizes().size(); }
  void set_options(const RNNOptions& options) { options_ = options; }
  /// A copy of the layer with other options and weights of its own.
  Layer copy(const RNNOptions& options) const;

 private:
  struct Loop;
  bool takes_rank(int rank) const;
  void require_inputs(std::span<const Tensor> inputs) const;
  Tensor checked_mask(const Tensor& mask, const Tensor& sequence) const;
  /// The output of all steps, [batch, steps, ...], or of the last one; `states` become the last.
  Tensor unrolled(const Loop& loop, std::vector<Tensor>& states) const;
  Tensor looped(const Loop& loop, std::vector<Tensor>& states) const;

  Layer cell_layer_;
  std::shared_ptr<RNNCellImpl> cell_;
  std::vector<std::shared_ptr<RNNCellImpl>> cells_;  ///< of a stack, or the one
  RNNOptions options_;
};

}  // namespace tandem::keras::internal
