#pragma once

// All of keras.ops.

#include "tandem/keras/ops/elementwise.h"
