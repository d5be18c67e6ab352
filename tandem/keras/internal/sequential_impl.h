#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/model_impl.h"

namespace tandem::keras::internal {

class InputLayerImpl;

class SequentialImpl final : public ModelImpl {
 public:
  explicit SequentialImpl(const std::string& name) : ModelImpl("Sequential", {.name = name}) {
    keep_dtypes();
  }

  /// Builds the layer if it is known for which shape.
  void add(const Layer& layer);
  Layer pop();

  void build_many(const std::vector<PartialShape>& inputs) override;
  std::vector<Tensor> call_many(std::span<const Tensor> inputs,
                                const CallOptions& options) override;
  std::vector<Layer> sublayers() const override;
  std::vector<SavedPart> saved_parts() const override;
  void describe(Config& config) const override;
  std::vector<std::string> output_names() const override;
  std::vector<KerasTensor> input_tensors() const override;
  std::vector<KerasTensor> symbolic_outputs() const override {
    return outputs_.empty() ? outputs_ : std::vector<KerasTensor>{outputs_.back()};
  }

 private:
  void add_input(std::shared_ptr<InputLayerImpl> input);
  void build_last();
  std::pair<std::shared_ptr<InputLayerImpl>, std::vector<KerasTensor>> make_input(
      const PartialShape& batch) const;

  std::shared_ptr<InputLayerImpl> input_;  // given, or made for the first inputs
  bool input_is_given_ = false;
  std::vector<Layer> layers_;         // without the InputLayer
  std::vector<KerasTensor> outputs_;  // the input's and each layer's, if built; keeps the calls
};

}  // namespace tandem::keras::internal
