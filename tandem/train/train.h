#pragma once

/// Checkpoints of a training: objects and their values, kept in files.

#include "tandem/train/checkpoint.h"
#include "tandem/train/checkpoint_manager.h"
#include "tandem/train/checkpoint_reader.h"
#include "tandem/train/checkpoint_state.h"
#include "tandem/train/trackable.h"
