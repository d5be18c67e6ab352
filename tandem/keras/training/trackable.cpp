#include "tandem/keras/trackable.h"

#include <algorithm>
#include <map>
#include <string>

#include "tandem/core/error.h"
#include "tandem/keras/internal/trainer.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/model_impl.h"

namespace tandem::keras {
namespace {

class OptimizerObject final : public train::Trackable {
 public:
  explicit OptimizerObject(std::shared_ptr<OptimizerImpl> impl) : impl_(std::move(impl)) {}
  const void* identity() const override { return impl_.get(); }
  void on_further_parts(const std::function<void()>& changed) override {
    impl_->when_built(changed);
  }
  void track(train::TrackedObject& object) override {
    for (const auto& [path, variable] : impl_->saved_parts()) object.add(path, variable);
    add_slots(object);
  }

 private:
  // "adam/dense_kernel_momentum" is what older optimizers call the slot "m" of "dense/kernel".
  void add_slots(train::TrackedObject& object) const {
    static const std::map<std::string, std::map<std::string, std::string>> kNames{
        {"Adam", {{"momentum", "m"}, {"velocity", "v"}, {"velocity_hat", "vhat"}}},
        {"AdamW", {{"momentum", "m"}, {"velocity", "v"}, {"velocity_hat", "vhat"}}},
        {"Nadam", {{"momentum", "m"}, {"velocity", "v"}}},
        {"Adamax", {{"momentum", "m"}, {"norm", "v"}}},
        {"RMSprop", {{"velocity", "rms"}, {"average_gradient", "mg"}}},
        {"Adadelta", {{"accumulated_grad", "accum_grad"}, {"accumulated_delta_var", "accum_var"}}}};
    const auto names = kNames.find(impl_->class_name());
    for (const Variable& weight : impl_->weights()) {
      std::string path = weight.name();
      std::replace(path.begin(), path.end(), '/', '_');
      const std::string begin = cat(impl_->settings().name, "/", path, "_");
      for (const Variable& variable : impl_->variables()) {
        if (!variable.name().starts_with(begin) || !(variable.shape() == weight.shape())) continue;
        std::string slot = variable.name().substr(begin.size());
        if (names != kNames.end()) {
          const auto other = names->second.find(slot);
          if (other != names->second.end()) slot = other->second;
        }
        object.add_slot(slot, weight, variable);
      }
    }
  }

  std::shared_ptr<OptimizerImpl> impl_;
};

class LayerObject final : public train::Trackable {
 public:
  explicit LayerObject(std::shared_ptr<LayerImpl> impl) : impl_(std::move(impl)) {}
  const void* identity() const override { return impl_.get(); }
  void on_further_parts(const std::function<void()>& changed) override {
    impl_->when_built(changed);
  }
  void track(train::TrackedObject& object) override {
    for (const LayerImpl::SavedPart& part : impl_->saved_parts()) {
      if (part.variable.defined()) {
        object.add(part.path, part.variable);
      } else {
        object.add(part.path, part.layer);
      }
    }
    const auto* model = dynamic_cast<const ModelImpl*>(impl_.get());
    if (model != nullptr && model->trainer())
      object.add("optimizer", model->trainer()->optimizer());
  }

 private:
  std::shared_ptr<LayerImpl> impl_;
};

class MetricObject final : public train::Trackable {
 public:
  explicit MetricObject(Metric metric) : metric_(std::move(metric)) {}
  const void* identity() const override { return &metric_; }
  void track(train::TrackedObject& object) override {
    int number = 0;
    for (const Variable& variable : metric_.variables())
      object.add(std::to_string(number++), variable);
  }

 private:
  Metric metric_;
};

}  // namespace

std::shared_ptr<train::Trackable> trackable_of(const Layer& layer) {
  return std::make_shared<LayerObject>(layer.impl());
}
std::shared_ptr<train::Trackable> trackable_of(const Optimizer& optimizer) {
  return std::make_shared<OptimizerObject>(optimizer.impl());
}
std::shared_ptr<train::Trackable> trackable_of(const Metric& metric) {
  return std::make_shared<MetricObject>(metric);
}

}  // namespace tandem::keras
