#pragma once

/// SavedModels: docs/saved-model.md.

#include "tandem/saved_model/load.h"
#include "tandem/saved_model/module.h"
#include "tandem/saved_model/save.h"
#include "tandem/saved_model/tfsm_layer.h"
