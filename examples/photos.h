// JPEG files cut out of the photographs in examples/data/photos: always the same ones.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <tandem/tandem.h>

namespace photos {

struct Cut {
  std::int64_t count = 512;
  std::int64_t height = 375, width = 500;
  std::int64_t quality = 90;
};

inline std::vector<tandem::Tensor> originals() {
  std::vector<tandem::Tensor> images;
  for (const char* name : {"china.jpg", "flower.jpg"}) {
    const std::string path = std::string("examples/data/photos/") + name;
    images.push_back(tandem::image::decode_jpeg(tandem::io::read_file(path)));
  }
  return images;
}

// The file with number `number` is of photograph `number % 2`, which is its label.
inline std::string path_of(const std::string& folder, std::int64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "/%05lld_%d.jpg", static_cast<long long>(number),
                static_cast<int>(number % 2));
  return folder + name;
}

// Windows at places that a sequence of even spread gives.
inline void cut(const std::string& folder, const Cut& wanted) {
  namespace image = tandem::image;
  std::filesystem::create_directories(folder);
  const std::vector<tandem::Tensor> from = originals();
  double down = 0, across = 0;
  for (std::int64_t i = 0; i < wanted.count; ++i) {
    const tandem::Tensor& photo = from[static_cast<std::size_t>(i) % from.size()];
    const auto place = [](double& share, double step, std::int64_t room) {
      share += step;
      if (share >= 1) share -= 1;
      return static_cast<std::int64_t>(share * static_cast<double>(room + 1));
    };
    const std::int64_t y = place(down, 0.7548776662466927, photo.dim(0) - wanted.height);
    const std::int64_t x = place(across, 0.5698402909980532, photo.dim(1) - wanted.width);
    const tandem::Tensor window =
        image::crop_to_bounding_box(photo, y, x, wanted.height, wanted.width);
    const tandem::Tensor bytes =
        image::encode_jpeg(window, {.quality = static_cast<int>(wanted.quality)});
    tandem::io::write_file(path_of(folder, i), bytes);
  }
}

}  // namespace photos
