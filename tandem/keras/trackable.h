#pragma once

#include <memory>

#include "tandem/core/export.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/metric.h"
#include "tandem/keras/optimizer.h"
#include "tandem/train/trackable.h"

namespace tandem::keras {

// How td::train::Checkpoint holds layers, models and optimizers: as Keras' objects of the same
// parts, so that TensorFlow reads them.

/// A layer's weights and the layers within. Of a model that is compiled the optimizer too, under
/// the name "optimizer".
TANDEM_EXPORT std::shared_ptr<train::Trackable> trackable_of(const Layer& layer);
/// What it keeps of the weights, the number of steps and the learning rate. Checkpoints of
/// optimizers before Keras 3, which keep it in slots, are read too.
TANDEM_EXPORT std::shared_ptr<train::Trackable> trackable_of(const Optimizer& optimizer);
/// What a metric has gathered.
TANDEM_EXPORT std::shared_ptr<train::Trackable> trackable_of(const Metric& metric);

}  // namespace tandem::keras
