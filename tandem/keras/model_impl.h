#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/keras/layer_impl.h"
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
class TANDEM_EXPORT ModelImpl : public LayerImpl {
 public:
  explicit ModelImpl(std::string class_name, LayerSettings settings = {});
  ~ModelImpl() override;

  /// How many of a batch's tensors are inputs, and how many labels there are.
  virtual int num_inputs() const { return 1; }
  virtual int num_outputs() const { return 1; }
  /// For naming losses and metrics of several outputs.
  virtual std::vector<std::string> output_names() const { return {"output"}; }
  /// What stands for the inputs; empty if their shapes are not known.
  virtual std::vector<KerasTensor> input_tensors() const { return {}; }
  /// The layers that a summary lists.
  virtual std::vector<Layer> layers() const { return sublayers(); }

  // ---- For Model and fit. ----
  void set_trainer(std::shared_ptr<internal::Trainer> trainer) { trainer_ = std::move(trainer); }
  const std::shared_ptr<internal::Trainer>& trainer() const { return trainer_; }
  std::shared_ptr<internal::Predictor> predictor();
  bool stop_training = false;
  /// Where the fit under way is; null outside of one.
  internal::FitState* fit_state = nullptr;

 protected:
  /// Drops what was traced of the layers as they were; a compiled model is as if compiled again.
  void layers_changed();

 private:
  std::shared_ptr<internal::Trainer> trainer_;
  std::mutex predictor_mutex_;  // several threads may predict with one model
  std::shared_ptr<internal::Predictor> predictor_;
};

/// A model of a class of your own.
template <class T, class... Args>
Model make_model(Args&&... args) {
  return Model(std::make_shared<T>(std::forward<Args>(args)...));
}

}  // namespace tandem::keras
