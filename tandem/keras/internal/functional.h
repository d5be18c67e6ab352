#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/keras/internal/call_node.h"
#include "tandem/keras/internal/operation_order.h"
#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/model_impl.h"

namespace tandem::keras::internal {

/// The calls that lead from inputs to outputs, in an order in which they can be made.
class CallGraph {
 public:
  CallGraph(std::vector<KerasTensor> inputs, std::vector<KerasTensor> outputs);

  const std::vector<KerasTensor>& inputs() const { return inputs_; }
  const std::vector<KerasTensor>& outputs() const { return outputs_; }
  /// Layers farthest from the outputs first, as Keras lists them; each once.
  const std::vector<std::shared_ptr<LayerImpl>>& layers() const { return operations_.layers; }
  /// Where each layer stands among the operations of Keras' model.
  const std::vector<int>& positions() const { return operations_.positions; }
  bool contains(const CallNode* node) const;
  const std::vector<std::shared_ptr<CallNode>>& nodes() const { return order_; }
  /// True if every call has one input and no two are equally far from the outputs.
  bool is_chain() const { return chain_; }

  std::vector<Tensor> run(std::span<const Tensor> inputs, const CallOptions& options) const;

 private:
  void visit(const KerasTensor& tensor);
  void rank_layers();
  void number_values();
  int slot_of(const KerasTensor& tensor) const;

  std::vector<KerasTensor> inputs_;
  std::vector<KerasTensor> outputs_;
  std::vector<std::shared_ptr<CallNode>> order_;
  OperationOrder operations_;
  std::vector<int> first_slot_;  // by position in order_
  int num_slots_ = 0;
  bool chain_ = true;
};

class FunctionalImpl final : public ModelImpl {
 public:
  FunctionalImpl(const KerasTensors& inputs, const KerasTensors& outputs, const std::string& name);

  void build_many(const std::vector<PartialShape>& inputs) override;
  std::vector<Tensor> call_many(std::span<const Tensor> inputs,
                                const CallOptions& options) override;
  std::vector<Layer> sublayers() const override;
  std::vector<SavedPart> saved_parts() const override;
  void describe(Config& config) const override;

  int num_inputs() const override { return static_cast<int>(graph_.inputs().size()); }
  int num_outputs() const override { return static_cast<int>(graph_.outputs().size()); }
  std::vector<std::string> input_names() const override;
  std::vector<std::string> output_names() const override;
  std::vector<KerasTensor> input_tensors() const override { return graph_.inputs(); }
  std::vector<KerasTensor> symbolic_outputs() const override { return graph_.outputs(); }
  const CallGraph& graph() const { return graph_; }
  /// What the user named inputs and outputs by; empty if they are in order.
  const std::vector<std::string>& given_input_names() const { return given_input_names_; }
  const std::vector<std::string>& given_output_names() const { return given_output_names_; }

 private:
  const std::vector<std::string> given_input_names_, given_output_names_;
  CallGraph graph_;
};

}  // namespace tandem::keras::internal
