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
  if (model_) model_->stop_training();
}

CallbackList::CallbackList(const std::vector<CallbackRef>& callbacks, Model& model,
                           const Callback::Params& params) {
  for (const CallbackRef& ref : callbacks) {
    if (!ref.get()) throw InvalidArgumentError("A callback is a null pointer.");
    ref.get()->model_ = &model;
    ref.get()->params_ = params;
    callbacks_.push_back(ref.get());
  }
}

CallbackList::~CallbackList() {
  for (const auto& callback : callbacks_) callback->model_ = nullptr;
}

}  // namespace tandem::keras
