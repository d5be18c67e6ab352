#pragma once

// TensorFlow's names by TensorFlow's paths: what is declared in one namespace and found in others.

#include "tandem/ops/names/config.h"
#include "tandem/ops/names/debugging.h"
#include "tandem/ops/names/einsum.h"
#include "tandem/ops/names/io.h"
#include "tandem/ops/names/linalg.h"
#include "tandem/ops/names/math.h"
#include "tandem/ops/names/nn.h"
#include "tandem/ops/names/random.h"
#include "tandem/ops/names/top.h"
#include "tandem/ops/names/top_more.h"
