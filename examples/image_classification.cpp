// Learns from a folder of images, one folder a class, with augmentation while training. The images
// are drawn here; those of your own lie in FOLDER/CLASS/*.png (or .jpg, .bmp, .gif).
//
// usage: image_classification [FOLDER]
#include <filesystem>
#include <iostream>
#include <random>
#include <vector>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

constexpr std::int64_t kSide = 32;

// Discs and frames of random place, size and color.
void draw_images(const std::string& folder) {
  std::minstd_rand random(3);
  const auto between = [&](int low, int n) { return low + static_cast<int>(random()) % n; };
  for (const std::string kind : {"disc", "frame"}) {
    std::filesystem::create_directories(folder + "/" + kind);
    for (int i = 0; i < 120; ++i) {
      const int x0 = between(11, 10), y0 = between(11, 10), r = between(6, 5);
      const int ink = between(150, 100), paper = between(0, 90);
      std::vector<std::uint8_t> pixels;
      for (int y = 0; y < kSide; ++y) {
        for (int x = 0; x < kSide; ++x) {
          const int dx = std::abs(x - x0), dy = std::abs(y - y0), far = std::max(dx, dy);
          const bool inside = kind == "disc" ? dx * dx + dy * dy < r * r : far < r && far > r - 4;
          for (int c = 0; c < 3; ++c)
            pixels.push_back(static_cast<std::uint8_t>(inside ? ink - 20 * c : paper + 10 * c));
        }
      }
      utils::save_img(folder + "/" + kind + "/" + std::to_string(i) + ".png",
                      td::Tensor::from(pixels, {kSide, kSide, 3}));
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "build/examples/shapes";
  if (argc < 2) draw_images(folder);
  utils::set_random_seed(4);
  const auto images = [&](const char* subset) {
    return utils::image_dataset_from_directory(folder, {.batch_size = 16,
                                                        .image_size = {kSide, kSide},
                                                        .seed = 1,
                                                        .validation_split = 0.25,
                                                        .subset = subset});
  };
  const auto train = images("training"), test = images("validation");

  const Sequential model{
      Input({kSide, kSide, 3}),
      RandomFlip("horizontal"),
      RandomRotation(0.1),
      RandomColorJitter({.brightness_factor = 0.1, .contrast_factor = 0.2}),
      Rescaling(1.0 / 127.5, -1),
      Conv2D(12, 3, {.strides = 2, .activation = "relu"}),
      Conv2D(24, 3, {.strides = 2, .activation = "relu"}),
      GlobalMaxPooling2D(),
      Dense(2, {.activation = "softmax"}),
  };
  model.compile({.optimizer = optimizers::Adam(0.01),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  model.fit(train, {.epochs = 12, .verbose = Verbose::kLinePerEpoch, .validation_data = test});
  const double accuracy = model.evaluate(test, {.verbose = Verbose::kSilent})["accuracy"];
  std::cout << "accuracy on images it has not seen: " << accuracy << '\n';
  return accuracy > 0.8 ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
