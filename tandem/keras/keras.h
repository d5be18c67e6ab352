#pragma once

// All of td::keras.

#include "tandem/keras/callbacks.h"
#include "tandem/keras/dtype_policy.h"
#include "tandem/keras/image_dataset.h"
#include "tandem/keras/keras_tensor_ops.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/layers.h"
#include "tandem/keras/loss_scale_optimizer.h"
#include "tandem/keras/losses.h"
#include "tandem/keras/metrics.h"
#include "tandem/keras/model.h"
#include "tandem/keras/model_impl.h"
#include "tandem/keras/ops/ops.h"
#include "tandem/keras/optimizers.h"
#include "tandem/keras/random.h"
#include "tandem/keras/rnn_cell_impl.h"
#include "tandem/keras/schedules.h"
#include "tandem/keras/seed_generator.h"
#include "tandem/keras/session.h"
#include "tandem/keras/utils.h"
