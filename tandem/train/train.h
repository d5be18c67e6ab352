#pragma once

/// Checkpoints of a training: objects and their values, kept in files.

#include "tandem/train/checkpoint.h"
#include "tandem/train/checkpoint_manager.h"
#include "tandem/train/checkpoint_reader.h"
#include "tandem/train/checkpoint_state.h"
#include "tandem/train/checkpoints_iterator.h"
#include "tandem/train/coordinator.h"
#include "tandem/train/moving_average.h"
#include "tandem/train/trackable.h"
#include "tandem/train/views.h"
