#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/keras/layer_impl.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Batches of images in floats; `change` makes them others while training.
class ImageAugmentation : public LayerImpl {
 public:
  ImageAugmentation(const char* class_name, const std::string& name,
                    std::optional<std::int64_t> seed);
  Tensor call(const Tensor& given, bool training) final;

 protected:
  /// `count`, a scalar, is the number of images.
  virtual Tensor change(const Tensor& images, const Tensor& count) = 0;
  virtual Tensor otherwise(const Tensor& images) { return images; }
  /// One number for each image.
  Tensor draw(const Tensor& count, double from, double to);
  /// One number for each image that broadcasts to the images.
  Tensor draw_for(const Tensor& images, const Tensor& count, double from, double to);

  random::SeedGenerator seeds_;
};

}  // namespace tandem::keras::internal
