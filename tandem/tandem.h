#pragma once

/// Everything that programs use. `namespace td = tandem;` is the customary short name.

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/data/data.h"
#include "tandem/keras/keras.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"
