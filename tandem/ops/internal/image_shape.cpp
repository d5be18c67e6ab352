#include "tandem/ops/internal/image_shape.h"

#include "tandem/core/error.h"

namespace tandem::internal {

bool is_batch(const Tensor& images, std::string_view function) {
  const int rank = images.rank();
  if (rank == 3 || rank == 4) return rank == 4;
  const std::string_view advice =
      rank < 0 ? " The rank is not known here: decode with expand_animations = false, or reshape."
               : "";
  throw InvalidArgumentError(cat("td::image::", function, ": the image (shape ",
                                 images.partial_shape(), ") must have either 3 or 4 dimensions.",
                                 advice));
}

void require_batch(const Tensor& images, std::string_view function) {
  if (is_batch(images, function)) return;
  throw InvalidArgumentError(cat("td::image::", function,
                                 ": needs images [batch, height, width, channels], got shape ",
                                 images.partial_shape(), "."));
}

}  // namespace tandem::internal
