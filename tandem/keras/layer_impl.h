#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/core/string.h"
#include "tandem/keras/call_options.h"
#include "tandem/keras/config.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/dtype_policy.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/regularizers.h"
#include "tandem/keras/seed_generator.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras {

/// What all layers have.
struct LayerSettings {
  String name = {};  ///< made from the class name if empty
  bool trainable = true;
  DTypePolicy dtype = {};  ///< of computation and weights; floating inputs are cast to the former
};

struct WeightOptions {
  Initializer initializer = "glorot_uniform";
  Regularizer regularizer = {};
  Constraint constraint = {};  ///< optimizers apply it after each step
  bool trainable = true;
  std::optional<DType> dtype = std::nullopt;  ///< the layer's variable_dtype() by default
  bool autocast = true;                       ///< is cast to compute_dtype() where `call` uses it
  /// The name in checkpoints where that is not the weight's: Keras' attribute, such as "_kernel". A
  /// '/' leads to an object within.
  std::string saved_as = {};
};

/// What a Layer handle refers to. Derive from it to write a layer:
///
///     class Scale final : public td::keras::LayerImpl {
///      public:
///       Scale() : LayerImpl("Scale") {}
///       void build(const td::PartialShape& input) override {
///         factor_ = add_weight("factor", {input.dim(-1)}, {.initializer = "ones"});
///       }
///       td::Tensor call(const td::Tensor& x, bool training) override { return x * factor_; }
///      private:
///       td::Variable factor_;
///     };
///     auto scale = td::keras::make_layer<Scale>();
///
/// Output shapes follow from the ops that `call` uses. Under a policy of mixed precision its inputs
/// come in half precision, and so do weights where they are used; `weight.read_value()` is in full.
/// `call` may run eagerly or be traced, so it uses ops only and makes no variables. Layers of
/// several inputs or outputs override build_many and call_many instead.
class TANDEM_EXPORT LayerImpl : public std::enable_shared_from_this<LayerImpl> {
 public:
  explicit LayerImpl(std::string class_name, LayerSettings settings = {});
  virtual ~LayerImpl();
  LayerImpl(const LayerImpl&) = delete;
  LayerImpl& operator=(const LayerImpl&) = delete;

  // ---- What a layer may override. ----
  /// Makes the weights. Sizes of -1 are unknown. Where it throws, the weights and layers that it
  /// added are taken back, and the next call builds again: assign members, do not append to them.
  virtual void build(const PartialShape& input);
  virtual void build_many(const std::vector<PartialShape>& inputs);
  virtual Tensor call(const Tensor& input, bool training);
  virtual std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& options);
  /// The masks of the outputs (undefined ones, or fewer than outputs: without) from those of the
  /// inputs, which are none or one for each input. None by default; the first input's after
  /// pass_masks().
  virtual std::vector<Tensor> compute_masks(std::span<const Tensor> inputs,
                                            std::span<const Tensor> masks) const;
  /// Adds the layer's own arguments to name, trainable and dtype. A layer of a class of one's own
  /// that is saved in a `.keras` file writes here what register_layer (serialization.h) reads.
  virtual void describe(Config& config) const;

  /// How Keras' layer takes several inputs, which files of models note: one list of them; one by
  /// one (query, value, key); or a sequence and first states.
  enum class InputForm : unsigned char { kList, kSeparate, kStates };
  virtual InputForm input_form() const { return InputForm::kList; }

  // ---- What handles and models use. ----
  /// Builds if need be, checks the inputs, casts and calls.
  std::vector<Tensor> run(std::vector<Tensor> inputs, const CallOptions& options);
  std::vector<KerasTensor> run(const std::vector<KerasTensor>& inputs, const CallOptions& options);
  void ensure_built(const std::vector<PartialShape>& inputs);

  /// The KerasTensors of its first call with such that a model still holds; none: there is none.
  virtual std::vector<KerasTensor> symbolic_inputs() const;
  virtual std::vector<KerasTensor> symbolic_outputs() const;

  /// The dtype and shape of each output, found by tracing `call_many`.
  struct TensorSpec {
    DType dtype;
    PartialShape shape;
  };
  std::vector<TensorSpec> infer(const std::vector<TensorSpec>& inputs, const CallOptions& options);

  const std::string& name() const { return settings_.name; }
  const std::string& class_name() const { return class_name_; }
  const DTypePolicy& dtype_policy() const { return settings_.dtype; }
  DType compute_dtype() const { return settings_.dtype.compute_dtype(); }
  DType variable_dtype() const { return settings_.dtype.variable_dtype(); }
  Config config() const;
  /// What `config()` returns besides name, trainable, dtype, and what `describe` adds.
  void set_arguments(Config arguments) { arguments_ = std::move(arguments); }
  bool built() const { return built_; }
  /// Runs `action` once, when the layer has been built; never, if it is built already.
  void when_built(std::function<void()> action);
  bool trainable() const { return settings_.trainable; }
  virtual void set_trainable(bool trainable);

  struct Weight {
    Variable variable;
    Regularizer regularizer;
    bool trainable;
    std::string saved_as;
  };
  /// Own ones first, then those of the layers within, each once; trainable if all layers around
  /// are.
  std::vector<Weight> collect_weights() const;
  virtual std::vector<Layer> sublayers() const;
  /// The variables that are no weights: the states of random layers, here and in the layers within,
  /// each once. Part of what a resumed training needs, as Keras has them in `variables`.
  std::vector<Variable> collect_states() const;

  /// What a checkpoint holds of the layer: weights and layers within, by the names of Keras'
  /// attributes. By default all weights as `saved_as`, and the layers as `add_layer` named them.
  struct SavedPart {
    std::string path;   ///< "_kernel", "_operations/1"
    Variable variable;  ///< this or a layer
    Layer layer;
  };
  virtual std::vector<SavedPart> saved_parts() const;

  /// Adds a scalar to the loss of the training step under way. For use in `call`. Outside of fit it
  /// is among Layer::losses until the next call.
  void add_loss(const Tensor& loss) const;
  /// What `add_loss` received in the last call, here and in the layers within.
  std::vector<Tensor> added_losses() const;

  /// The shapes of its outputs in the last call with KerasTensors.
  const std::vector<PartialShape>& output_shapes() const { return output_shapes_; }

 protected:
  Variable add_weight(const String& name, const Shape& shape, const WeightOptions& options = {});
  /// A variable that something else made, such as a model within the layer.
  void add_existing_weight(const Variable& variable, const String& saved_as);
  /// What a layer that draws random numbers draws with, from this seed or a fresh one. It counts as
  /// a layer within, without weights, `saved_as` as Keras' attribute.
  random::SeedGenerator add_seed_generator(std::optional<std::int64_t> seed = {},
                                           const std::string& saved_as = "seed_generator");
  /// A layer within this one: its weights count as this layer's. Returns it. In checkpoints it is
  /// `saved_as`, Keras' attribute ("cell"), or "layers/N" as the Nth one.
  Layer add_layer(Layer layer, const String& saved_as = "");
  /// Builds a layer within this one, whose weights are then named below this one's name:
  /// "lstm/lstm_cell/kernel". For use in `build`.
  void build_sublayer(const Layer& layer, const std::vector<PartialShape>& inputs);
  [[deprecated("use build_sublayer")]] void build_within(const Layer& layer,
                                                         const std::vector<PartialShape>& inputs);
  /// For layers that have no weights of their own: they count as built from the start.
  void without_weights() { built_ = true; }
  /// The next use builds again.
  void build_again() { built_ = false; }
  /// What summaries show, for layers that are not called with KerasTensors.
  void show_output_shapes(std::vector<PartialShape> shapes) { output_shapes_ = std::move(shapes); }
  /// Inputs must have this rank from now on (checked at each call).
  void require_rank(int rank) { rank_ = rank; }
  void require_min_rank(int rank) { min_rank_ = rank; }
  /// … and this size along an axis.
  void require_size(int axis, std::int64_t size) { sizes_.emplace_back(axis, size); }
  /// Inputs and weights keep their dtypes (by default floating ones are cast to compute_dtype()).
  void keep_dtypes() { autocast_ = false; }
  /// The layer works on each step alone: a mask of its input is one of its output.
  void pass_masks() { passes_masks_ = true; }
  /// The size of an axis of an input shape; throws InvalidArgumentError if it is not known.
  std::int64_t known_size(const PartialShape& shape, int axis) const;
  /// "Layer 'dense' (Dense): "
  std::string prefix() const;

 private:
  void check_inputs(const std::vector<PartialShape>& inputs) const;
  CallOptions with_masks(const std::vector<Tensor>& inputs, const CallOptions& options) const;
  void note_masks(const std::vector<Tensor>& inputs, const CallOptions& how,
                  const std::vector<Tensor>& outputs) const;
  void collect_weights(bool trainable, std::vector<Weight>& into) const;
  void collect_losses(std::uint64_t call, std::vector<Tensor>& into) const;

  std::string class_name_;
  LayerSettings settings_;
  Config arguments_;
  std::string path_;  ///< what the names of weights begin with: the layer's, after those around
  std::vector<Weight> weights_;
  std::vector<Layer> sublayers_;
  std::vector<std::string> sublayers_saved_as_;
  std::vector<std::function<void()>> when_built_;
  bool built_ = false;
  bool autocast_ = true;
  bool passes_masks_ = false;
  int rank_ = -1;
  int min_rank_ = -1;
  std::vector<std::pair<int, std::int64_t>> sizes_;
  int num_calls_ = 0;
  mutable std::vector<Tensor> losses_;     // of add_loss
  mutable std::uint64_t losses_call_ = 0;  // the call that they are from
  std::uint64_t last_call_ = 0;
  std::vector<PartialShape> output_shapes_;
  std::weak_ptr<internal::CallNode> first_call_;  // weak: it holds this layer
  std::vector<TensorSpec> first_outputs_;
};

/// A layer of a class of your own.
template <class T, class... Args>
Layer make_layer(Args&&... args) {
  return Layer(std::make_shared<T>(std::forward<Args>(args)...));
}

}  // namespace tandem::keras
