#include "tandem/keras/callback.h"

#include "tandem/core/error.h"
#include "tandem/keras/model.h"

namespace tandem::keras {

Callback::~Callback() = default;
void Callback::visit_state(data::StateArchive&) {}

Model& Callback::model() const {
  if (!model_) {
    throw FailedPreconditionError(
        "Callback::model() has a model only while fit, evaluate or predict runs.");
  }
  return *model_;
}

void Callback::stop_training() const {
  if (model_) model_->stop_training = true;
}

CallbackList::CallbackList(const std::vector<CallbackRef>& callbacks, Model& model,
                           const Callback::Params& params) {
  for (const CallbackRef& ref : callbacks) {
    std::shared_ptr<Callback> callback = ref.get();
    if (!callback) {
      throw InvalidArgumentError(
          "A callback is a null pointer, or an object that cannot be copied and is no longer "
          "there. "
          "Pass a std::shared_ptr of it.");
    }
    callback->model_ = &model;
    callback->params_ = params;
    callbacks_.push_back(std::move(callback));
  }
}

CallbackList::~CallbackList() {
  for (const auto& callback : callbacks_) callback->model_ = nullptr;
}

}  // namespace tandem::keras
