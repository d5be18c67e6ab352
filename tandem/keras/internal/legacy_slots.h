#pragma once

#include "tandem/keras/optimizer.h"
#include "tandem/train/trackable.h"

namespace tandem::keras::internal {

/// Names that earlier optimizers gave to what this one keeps.
void add_legacy_state(const OptimizerImpl& optimizer, train::TrackedObject& object);

}  // namespace tandem::keras::internal
