#pragma once

#include <memory>
#include <vector>

#include "tandem/keras/layers/recurrent.h"
#include "tandem/keras/rnn_cell_impl.h"

namespace tandem::keras::internal {

/// Every recurrent layer: a cell and a loop around it.
class RNNImpl final : public LayerImpl {
 public:
  RNNImpl(const std::string& class_name, const Layer& cell, const RNNOptions& options);

  void build_many(const std::vector<PartialShape>& inputs) override;
  std::vector<Tensor> call_many(std::span<const Tensor> inputs,
                                const CallOptions& options) override;
  std::vector<Tensor> compute_masks(std::span<const Tensor> inputs,
                                    std::span<const Tensor> masks) const override;
  void describe(Config& config) const override;

  const RNNOptions& options() const { return options_; }
  std::size_t num_states() const { return cell_->state_sizes().size(); }
  /// The same layer under another name, with weights of its own.
  Layer copy(const std::string& name, bool go_backwards) const;

 private:
  struct Loop;
  Tensor zeros_of(const Tensor& time_first, std::int64_t size) const;
  Tensor checked_mask(const Tensor& mask, const Tensor& sequence) const;
  void keep_masked(const Tensor& mask, const Tensor& before, std::vector<Tensor>& next,
                   std::span<const Tensor> states) const;
  Tensor unrolled(const Loop& loop, std::vector<Tensor>& states) const;
  Tensor looped(const Loop& loop, std::vector<Tensor>& states) const;

  Layer cell_layer_;
  std::shared_ptr<RNNCellImpl> cell_;
  RNNOptions options_;
};

}  // namespace tandem::keras::internal
