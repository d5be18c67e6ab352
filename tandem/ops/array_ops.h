#pragma once

// Everything that makes, measures, moves and picks elements, whatever their dtype.
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
