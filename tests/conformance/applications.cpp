// Makes an architecture, loads weights that Keras wrote, and predicts: applications NAME DIR
// top|features. DIR has model.weights.h5 and x.npy; y.npy and layers.txt (those with weights) are
// written there. See check_applications.py.

#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include "tandem/tandem.h"

namespace td = tandem;
namespace apps = td::keras::applications;

namespace {

using Make = std::function<td::keras::Model(std::int64_t size, bool top)>;

template <class Options>
Make of(td::keras::Model (*make)(const Options&)) {
  return [make](std::int64_t size, bool top) {
    Options options;
    options.include_top = top;
    options.input_shape = {size, size, 3};
    options.pooling = "avg";
    options.classes = 10;
    return make(options);
  };
}

#define TANDEM_APPLICATION(NAME) \
  { #NAME, of(apps::NAME) }

const std::map<std::string, Make>& table() {
  static const std::map<std::string, Make> makers{TANDEM_APPLICATION(VGG16),
                                                  TANDEM_APPLICATION(VGG19),
                                                  TANDEM_APPLICATION(ResNet50),
                                                  TANDEM_APPLICATION(ResNet101),
                                                  TANDEM_APPLICATION(ResNet152),
                                                  TANDEM_APPLICATION(ResNet50V2),
                                                  TANDEM_APPLICATION(ResNet101V2),
                                                  TANDEM_APPLICATION(ResNet152V2),
                                                  TANDEM_APPLICATION(DenseNet121),
                                                  TANDEM_APPLICATION(DenseNet169),
                                                  TANDEM_APPLICATION(DenseNet201),
                                                  TANDEM_APPLICATION(InceptionV3),
                                                  TANDEM_APPLICATION(InceptionResNetV2),
                                                  TANDEM_APPLICATION(Xception),
                                                  TANDEM_APPLICATION(NASNetMobile),
                                                  TANDEM_APPLICATION(NASNetLarge),
                                                  TANDEM_APPLICATION(MobileNet),
                                                  TANDEM_APPLICATION(MobileNetV2),
                                                  TANDEM_APPLICATION(MobileNetV3Small),
                                                  TANDEM_APPLICATION(MobileNetV3Large),
                                                  TANDEM_APPLICATION(EfficientNetB0),
                                                  TANDEM_APPLICATION(EfficientNetB1),
                                                  TANDEM_APPLICATION(EfficientNetB2),
                                                  TANDEM_APPLICATION(EfficientNetB3),
                                                  TANDEM_APPLICATION(EfficientNetB4),
                                                  TANDEM_APPLICATION(EfficientNetB5),
                                                  TANDEM_APPLICATION(EfficientNetB6),
                                                  TANDEM_APPLICATION(EfficientNetB7),
                                                  TANDEM_APPLICATION(EfficientNetV2B0),
                                                  TANDEM_APPLICATION(EfficientNetV2B1),
                                                  TANDEM_APPLICATION(EfficientNetV2B2),
                                                  TANDEM_APPLICATION(EfficientNetV2B3),
                                                  TANDEM_APPLICATION(EfficientNetV2S),
                                                  TANDEM_APPLICATION(EfficientNetV2M),
                                                  TANDEM_APPLICATION(EfficientNetV2L),
                                                  TANDEM_APPLICATION(ConvNeXtTiny),
                                                  TANDEM_APPLICATION(ConvNeXtSmall),
                                                  TANDEM_APPLICATION(ConvNeXtBase),
                                                  TANDEM_APPLICATION(ConvNeXtLarge),
                                                  TANDEM_APPLICATION(ConvNeXtXLarge)};
  return makers;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    const std::string folder = argv[2];
    const td::Tensor x = td::io::read_npy(folder + "/x.npy");
    const td::keras::Model model = table().at(argv[1])(x.dim(1), std::string(argv[3]) == "top");
    model.load_weights(folder + "/model.weights.h5");
    const td::Tensor y = model.predict(x, {.verbose = td::keras::Verbose::kSilent});
    td::io::write_npy(folder + "/y.npy", y.array());
    std::ofstream layers(folder + "/layers.txt");
    for (const td::keras::Layer& layer : model.layers())
      if (!layer.weights().empty()) layers << layer.name() << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
