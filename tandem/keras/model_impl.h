#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/data/element.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/metric.h"
#include "tandem/keras/model.h"

namespace tandem::keras {

namespace internal {
class FitState;
class Predictor;
class Trainer;
}  // namespace internal

/// What a Model handle refers to. Derive from it, as from LayerImpl, to write a model whose `call`
/// is a program of your own; the layers it uses are passed to `add_layer`:
///
///     class Residual final : public td::keras::ModelImpl {
///      public:
///       Residual() : ModelImpl("Residual"), inner_(add_layer(td::keras::Dense(8))) {}
///       td::Tensor call(const td::Tensor& x, bool training) override {
///         return x + inner_(x, {.training = training});
///       }
///      private:
///       td::keras::Layer inner_;
///     };
///     auto model = td::keras::make_model<Residual>();
///
/// A model with a train_step of its own need not override `call`.
class TANDEM_EXPORT ModelImpl : public LayerImpl {
 public:
  explicit ModelImpl(std::string class_name, LayerSettings settings = {});
  ~ModelImpl() override;

  /// How many of a batch's tensors are inputs, and how many labels there are.
  virtual int num_inputs() const { return 1; }
  virtual int num_outputs() const { return 1; }
  /// For naming losses and metrics of several outputs.
  virtual std::vector<std::string> output_names() const { return {"output"}; }
  /// For data by name; empty if the inputs have none. By default the names of `input_tensors`.
  virtual std::vector<std::string> input_names() const;
  /// What stands for the inputs; empty if their shapes are not known.
  virtual std::vector<KerasTensor> input_tensors() const { return {}; }
  std::vector<KerasTensor> symbolic_inputs() const override {
    std::vector<KerasTensor> own = input_tensors();
    return own.empty() ? LayerImpl::symbolic_inputs() : own;
  }
  /// The layers that a summary lists.
  virtual std::vector<Layer> layers() const { return sublayers(); }

  // ---- Steps of one's own. ----
  /// What a step gives: values by name, which fit and evaluate show as they are; nothing: they show
  /// the compiled loss and metrics.
  using StepResults = std::map<std::string, Tensor>;
  /// What fit does with a batch. Override it to train in another way: the body is traced like a
  /// td::function. By default forward, compiled loss, gradients, update and metrics.
  virtual StepResults train_step(const data::Element& batch);
  /// What evaluate, and validation in fit, do with a batch.
  virtual StepResults test_step(const data::Element& batch);
  /// What predict does with the inputs of a batch: `call` with training = false.
  virtual std::vector<Tensor> predict_step(const std::vector<Tensor>& inputs);
  /// Metrics of one's own steps: they start over in each epoch and each evaluation.
  virtual std::vector<Metric> metrics() const { return {}; }

  // For use in steps of one's own.
  /// The compiled optimizer. Throws FailedPreconditionError before `compile`.
  const Optimizer& optimizer() const;
  std::vector<Variable> trainable_variables() const;
  /// The compiled losses of these predictions, with what add_loss received and the penalties of
  /// regularizers.
  Tensor compute_loss(const TensorList& y, const TensorList& y_pred,
                      const Tensor& sample_weight = {});
  /// Updates the compiled loss and metrics, which a step that returns nothing shows.
  void update_metrics(const TensorList& y, const TensorList& y_pred, const Tensor& loss,
                      const Tensor& sample_weight = {});

  // ---- For Model and fit. ----
  void set_trainer(std::shared_ptr<internal::Trainer> trainer) { trainer_ = std::move(trainer); }
  const std::shared_ptr<internal::Trainer>& trainer() const { return trainer_; }
  std::shared_ptr<internal::Predictor> predictor();
  /// Whether fit ends after the batch under way: for steps of one's own, as Model's.
  bool stop_training = false;
  /// Where the fit under way is; null outside of one.
  internal::FitState* fit_state = nullptr;

 protected:
  /// Drops what was traced of the layers as they were; a compiled model is as if compiled again.
  void layers_changed();

 private:
  friend class internal::Trainer;
  internal::Trainer& stepping_trainer() const;
  std::shared_ptr<internal::Trainer> trainer_;
  internal::Trainer* stepping_ = nullptr;  // whose step is under way
  std::mutex predictor_mutex_;             // several threads may predict with one model
  std::shared_ptr<internal::Predictor> predictor_;
};

/// A model of a class of your own.
template <class T, class... Args>
Model make_model(Args&&... args) {
  return Model(std::make_shared<T>(std::forward<Args>(args)...));
}

}  // namespace tandem::keras
