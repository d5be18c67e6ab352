#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/keras_tensor.h"
#include "tandem/keras/model.h"
#include "tandem/runtime/tensor.h"

/// Architectures for images, equal to Keras' layer by layer, so that files of weights
/// (`.weights.h5`) of one are files of the other. Without a file weights begin random.
///
///     auto model = td::keras::applications::ResNet50({.weights = "resnet50.weights.h5"});
///     auto scores = model.predict(td::keras::applications::resnet50::preprocess_input(images));
///
/// All throw InvalidArgumentError for a shape that does not fit, an unknown `pooling`, and what
/// Model::load_weights throws.
namespace tandem::keras::applications {

struct ApplicationOptions {
  bool include_top = true;                                 ///< the classifier at the end
  String weights = {};                                     ///< a file that Keras or Tandem wrote
  std::optional<KerasTensor> input_tensor = std::nullopt;  ///< instead of an Input of its own
  /// {height, width, channels}; -1: any size, without the top. With the top the default is what
  /// the architecture was made for, without it any size of 3 channels.
  std::vector<std::int64_t> input_shape = {};
  String pooling = {};  ///< of the last features, without the top: "avg" or "max"
  std::int64_t classes = 1000;
  ActivationFunction classifier_activation = "softmax";
  String name = {};  ///< Keras' by default
};

TANDEM_EXPORT Model VGG16(const ApplicationOptions& options = {});
TANDEM_EXPORT Model VGG19(const ApplicationOptions& options = {});
TANDEM_EXPORT Model ResNet50(const ApplicationOptions& options = {});
TANDEM_EXPORT Model ResNet101(const ApplicationOptions& options = {});
TANDEM_EXPORT Model ResNet152(const ApplicationOptions& options = {});
TANDEM_EXPORT Model ResNet50V2(const ApplicationOptions& options = {});
TANDEM_EXPORT Model ResNet101V2(const ApplicationOptions& options = {});
TANDEM_EXPORT Model ResNet152V2(const ApplicationOptions& options = {});
TANDEM_EXPORT Model DenseNet121(const ApplicationOptions& options = {});
TANDEM_EXPORT Model DenseNet169(const ApplicationOptions& options = {});
TANDEM_EXPORT Model DenseNet201(const ApplicationOptions& options = {});
TANDEM_EXPORT Model InceptionV3(const ApplicationOptions& options = {});
TANDEM_EXPORT Model InceptionResNetV2(const ApplicationOptions& options = {});
TANDEM_EXPORT Model Xception(const ApplicationOptions& options = {});
TANDEM_EXPORT Model NASNetMobile(const ApplicationOptions& options = {});
TANDEM_EXPORT Model NASNetLarge(const ApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetB0(const ApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetB1(const ApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetB2(const ApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetB3(const ApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetB4(const ApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetB5(const ApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetB6(const ApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetB7(const ApplicationOptions& options = {});

/// Models that scale their inputs from 0 … 255 themselves, unless that is switched off.
struct ScalingApplicationOptions {
  bool include_top = true;
  bool include_preprocessing = true;
  String weights = {};
  std::optional<KerasTensor> input_tensor = std::nullopt;
  std::vector<std::int64_t> input_shape = {};
  String pooling = {};
  std::int64_t classes = 1000;
  ActivationFunction classifier_activation = "softmax";
  String name = {};
};

TANDEM_EXPORT Model EfficientNetV2B0(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetV2B1(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetV2B2(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetV2B3(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetV2S(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetV2M(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model EfficientNetV2L(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model ConvNeXtTiny(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model ConvNeXtSmall(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model ConvNeXtBase(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model ConvNeXtLarge(const ScalingApplicationOptions& options = {});
TANDEM_EXPORT Model ConvNeXtXLarge(const ScalingApplicationOptions& options = {});

struct MobileNetOptions {
  std::vector<std::int64_t> input_shape = {};
  double alpha = 1;                   ///< of the filters' number
  std::int64_t depth_multiplier = 1;  ///< filters for each channel of a depthwise convolution
  double dropout = 1e-3;
  bool include_top = true;
  String weights = {};
  std::optional<KerasTensor> input_tensor = std::nullopt;
  String pooling = {};
  std::int64_t classes = 1000;
  ActivationFunction classifier_activation = "softmax";
  String name = {};
};
TANDEM_EXPORT Model MobileNet(const MobileNetOptions& options = {});

struct MobileNetV2Options {
  std::vector<std::int64_t> input_shape = {};
  double alpha = 1;
  bool include_top = true;
  String weights = {};
  std::optional<KerasTensor> input_tensor = std::nullopt;
  String pooling = {};
  std::int64_t classes = 1000;
  ActivationFunction classifier_activation = "softmax";
  String name = {};
};
TANDEM_EXPORT Model MobileNetV2(const MobileNetV2Options& options = {});

struct MobileNetV3Options {
  std::vector<std::int64_t> input_shape = {};
  double alpha = 1;
  bool minimalistic = false;  ///< without squeezes, hard swishes and 5x5 kernels
  bool include_top = true;
  String weights = {};
  std::optional<KerasTensor> input_tensor = std::nullopt;
  std::int64_t classes = 1000;
  String pooling = {};
  double dropout_rate = 0.2;
  ActivationFunction classifier_activation = "softmax";
  bool include_preprocessing = true;
  String name = {};
};
TANDEM_EXPORT Model MobileNetV3Small(const MobileNetV3Options& options = {});
TANDEM_EXPORT Model MobileNetV3Large(const MobileNetV3Options& options = {});

/// A class that an image may be of.
struct ClassScore {
  std::string class_name;   ///< "n02123045"
  std::string description;  ///< "tabby"
  float score = 0;
};

namespace imagenet_utils {

struct PreprocessOptions {
  String data_format = "channels_last";  ///< or "channels_first"
  /// "caffe": blue, green, red, less their means; "tf": to -1 … 1; "torch": to 0 … 1, then by
  /// means and deviations of the channels.
  String mode = "caffe";
};
/// Images of 0 … 255, one or a batch, as a network was trained on.
TANDEM_EXPORT Tensor preprocess_input(const Tensor& x, const PreprocessOptions& options = {});
/// As a part of a model.
TANDEM_EXPORT KerasTensor preprocess_input(const KerasTensor& x,
                                           const PreprocessOptions& options = {});

/// The classes of the highest scores for each row of [batch, 1000]. `class_index` is the file
/// imagenet_class_index.json; by default it is looked for in Keras' cache (~/.keras/models), and
/// downloaded. NotFoundError says where to get it.
TANDEM_EXPORT std::vector<std::vector<ClassScore>> decode_predictions(
    const Tensor& predictions, int top = 5, const String& class_index = "");

}  // namespace imagenet_utils

namespace imagenet_utils {
/// preprocess_input, or with an empty mode, for models that scale by themselves, nothing.
template <class T>
T preprocess_in_mode(const T& x, const String& data_format, const char* mode) {
  if (!*mode) return x;
  return preprocess_input(x, {.data_format = data_format, .mode = mode});
}
}  // namespace imagenet_utils

// Each architecture with what goes before and after it, as Keras' modules have them.
#define TANDEM_APPLICATION(MODULE, SCALED)                                                       \
  namespace MODULE {                                                                             \
  inline Tensor preprocess_input(const Tensor& x, const String& data_format = "channels_last") { \
    return imagenet_utils::preprocess_in_mode(x, data_format, SCALED);                           \
  }                                                                                              \
  inline KerasTensor preprocess_input(const KerasTensor& x,                                      \
                                      const String& data_format = "channels_last") {             \
    return imagenet_utils::preprocess_in_mode(x, data_format, SCALED);                           \
  }                                                                                              \
  using imagenet_utils::decode_predictions;                                                      \
  }
TANDEM_APPLICATION(convnext, "")
TANDEM_APPLICATION(densenet, "torch")
TANDEM_APPLICATION(efficientnet, "")
TANDEM_APPLICATION(efficientnet_v2, "")
TANDEM_APPLICATION(inception_resnet_v2, "tf")
TANDEM_APPLICATION(inception_v3, "tf")
TANDEM_APPLICATION(mobilenet, "tf")
TANDEM_APPLICATION(mobilenet_v2, "tf")
TANDEM_APPLICATION(mobilenet_v3, "")
TANDEM_APPLICATION(nasnet, "tf")
TANDEM_APPLICATION(resnet, "caffe")
TANDEM_APPLICATION(resnet50, "caffe")
TANDEM_APPLICATION(resnet_v2, "tf")
TANDEM_APPLICATION(vgg16, "caffe")
TANDEM_APPLICATION(vgg19, "caffe")
TANDEM_APPLICATION(xception, "tf")
#undef TANDEM_APPLICATION

// clang-format off
namespace convnext { using applications::ConvNeXtBase; using applications::ConvNeXtLarge; using applications::ConvNeXtSmall; using applications::ConvNeXtTiny; using applications::ConvNeXtXLarge; }
namespace densenet { using applications::DenseNet121; using applications::DenseNet169; using applications::DenseNet201; }
namespace efficientnet { using applications::EfficientNetB0; using applications::EfficientNetB1; using applications::EfficientNetB2; using applications::EfficientNetB3; using applications::EfficientNetB4; using applications::EfficientNetB5; using applications::EfficientNetB6; using applications::EfficientNetB7; }
namespace efficientnet_v2 { using applications::EfficientNetV2B0; using applications::EfficientNetV2B1; using applications::EfficientNetV2B2; using applications::EfficientNetV2B3; using applications::EfficientNetV2L; using applications::EfficientNetV2M; using applications::EfficientNetV2S; }
namespace inception_resnet_v2 { using applications::InceptionResNetV2; }
namespace inception_v3 { using applications::InceptionV3; }
namespace mobilenet { using applications::MobileNet; }
namespace mobilenet_v2 { using applications::MobileNetV2; }
namespace nasnet { using applications::NASNetLarge; using applications::NASNetMobile; }
namespace resnet { using applications::ResNet50; using applications::ResNet101; using applications::ResNet152; }
namespace resnet50 { using applications::ResNet50; }
namespace resnet_v2 { using applications::ResNet50V2; using applications::ResNet101V2; using applications::ResNet152V2; }
namespace vgg16 { using applications::VGG16; }
namespace vgg19 { using applications::VGG19; }
namespace xception { using applications::Xception; }
// clang-format on

}  // namespace tandem::keras::applications
