#pragma once

// Keras' names by Keras' paths: what is declared in one namespace here and found in others, second
// names of classes, and functions that make layers.

#include <cmath>
#include <string>
#include <vector>

#include "tandem/core/string.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/callbacks.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layers.h"
#include "tandem/keras/losses.h"
#include "tandem/keras/metrics.h"
#include "tandem/keras/model.h"
#include "tandem/keras/optimizers.h"
#include "tandem/keras/regularizers.h"
#include "tandem/keras/schedules.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {

using AvgPool1D = AveragePooling1D;
using AvgPool2D = AveragePooling2D;
using AvgPool3D = AveragePooling3D;
using MaxPool1D = MaxPooling1D;
using MaxPool2D = MaxPooling2D;
using MaxPool3D = MaxPooling3D;
using GlobalAvgPool1D = GlobalAveragePooling1D;
using GlobalAvgPool2D = GlobalAveragePooling2D;
using GlobalAvgPool3D = GlobalAveragePooling3D;
using GlobalMaxPool1D = GlobalMaxPooling1D;
using GlobalMaxPool2D = GlobalMaxPooling2D;
using GlobalMaxPool3D = GlobalMaxPooling3D;
using Convolution1D = Conv1D;
using Convolution2D = Conv2D;
using Convolution3D = Conv3D;
using Convolution1DTranspose = Conv1DTranspose;
using Convolution2DTranspose = Conv2DTranspose;
using Convolution3DTranspose = Conv3DTranspose;
using SeparableConvolution1D = SeparableConv1D;
using SeparableConvolution2D = SeparableConv2D;

// The merging layers as functions of KerasTensors.
inline KerasTensor add(const std::vector<KerasTensor>& inputs) { return Add()(inputs); }
inline KerasTensor average(const std::vector<KerasTensor>& inputs) { return Average()(inputs); }
inline KerasTensor concatenate(const std::vector<KerasTensor>& inputs, int axis = -1) {
  return Concatenate({.axis = axis})(inputs);
}
inline KerasTensor dot(const std::vector<KerasTensor>& inputs, int axes) {
  return Dot(axes)(inputs);
}
inline KerasTensor maximum(const std::vector<KerasTensor>& inputs) { return Maximum()(inputs); }
inline KerasTensor minimum(const std::vector<KerasTensor>& inputs) { return Minimum()(inputs); }
inline KerasTensor multiply(const std::vector<KerasTensor>& inputs) { return Multiply()(inputs); }
inline KerasTensor subtract(const std::vector<KerasTensor>& inputs) { return Subtract()(inputs); }

namespace models {
using keras::Model;
using keras::Sequential;
}  // namespace models

namespace activations {
/// By its name; InvalidArgumentError for an unknown one.
inline ActivationFunction get(const String& name) { return ActivationFunction(name); }
}  // namespace activations

namespace losses {
using keras::Loss;
inline Loss get(const String& name) { return Loss(name); }
}  // namespace losses

namespace metrics {
using keras::Metric;
using losses::binary_crossentropy;
using losses::binary_focal_crossentropy;
using losses::categorical_crossentropy;
using losses::categorical_focal_crossentropy;
using losses::categorical_hinge;
using losses::hinge;
using losses::huber;
using losses::kl_divergence;
using losses::log_cosh;
using losses::mean_absolute_error;
using losses::mean_absolute_percentage_error;
using losses::mean_squared_error;
using losses::mean_squared_logarithmic_error;
using losses::poisson;
using losses::sparse_categorical_crossentropy;
using losses::squared_hinge;
inline Metric get(const String& name) { return Metric(name); }
/// The mean of a function's values as a metric.
inline Metric MeanMetricWrapper(Metric::Function function, String name = "mean") {
  return Metric::from_function(std::move(name), std::move(function));
}
}  // namespace metrics

namespace optimizers {
using keras::Optimizer;
namespace schedules = ::tandem::keras::schedules;
inline Optimizer get(const String& name) { return Optimizer(name); }
}  // namespace optimizers

namespace callbacks {
using keras::Callback;
using keras::CallbackList;
using keras::History;
}  // namespace callbacks

namespace initializers {
using keras::Initializer;
using IdentityInitializer = Identity;
using OrthogonalInitializer = Orthogonal;
using constant = Constant;
using glorot_normal = GlorotNormal;
using glorot_uniform = GlorotUniform;
using he_normal = HeNormal;
using he_uniform = HeUniform;
using identity = Identity;
using lecun_normal = LecunNormal;
using lecun_uniform = LecunUniform;
using ones = Ones;
using orthogonal = Orthogonal;
using random_normal = RandomNormal;
using random_uniform = RandomUniform;
using truncated_normal = TruncatedNormal;
using variance_scaling = VarianceScaling;
using zeros = Zeros;
inline Initializer get(const String& name) { return Initializer(name); }
}  // namespace initializers

namespace regularizers {
using keras::Regularizer;
using l1 = L1;
using l1_l2 = L1L2;
using l2 = L2;
inline Regularizer get(const String& name) { return Regularizer(name); }
}  // namespace regularizers

}  // namespace tandem::keras
