#include "tandem/keras/trackable.h"

#include <string>

#include "tandem/keras/internal/legacy_slots.h"
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
    internal::add_legacy_state(*impl_, object);
  }

 private:
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
