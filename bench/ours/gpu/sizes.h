// How large the work of each row is. TANDEM_BENCH_SMALL=1 makes it small enough for kernels that
// run on the host: the figures say nothing then, but all that a row does is done and verified.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace bench {

struct GpuSizes {
  bool small = false;
  // Rows of products are named by the size that they have in a real run.
  std::int64_t product_scale = 1;
  std::int64_t images = 256, image_side = 224, filters = 64, classes = 1000;
  std::array<int, 4> blocks{3, 4, 6, 3};
  std::int64_t layers = 24, width = 1024, heads = 16, tokens = 512, sequences = 16;
  std::int64_t mlp_samples = 8192;
  std::int64_t additions = 500;  // in a row without waiting; fewer than a stream's queue holds
  std::int64_t bytes = std::int64_t{256} << 20, row_length = 1024;
  std::int64_t photos = 256, photo_height = 375, photo_width = 500, photo_side = 224, batch = 32;
  std::int64_t batches = 64, factor = 2048, max_factors = 400;
  double seconds = 0.5;  // of steps that are timed, at least
};

inline const GpuSizes& gpu_sizes() {
  static const GpuSizes sizes = [] {
    GpuSizes s;
    const char* const given = std::getenv("TANDEM_BENCH_SMALL");
    if (given == nullptr || std::string_view(given) != "1") return s;
    s.small = true;
    s.product_scale = 128;
    s.images = 2, s.image_side = 32, s.filters = 2, s.classes = 10;
    s.blocks = {1, 1, 1, 1};
    s.layers = 2, s.width = 16, s.heads = 2, s.tokens = 8, s.sequences = 2;
    s.mlp_samples = 64;
    s.additions = 20;
    s.bytes = std::int64_t{64} << 10, s.row_length = 64;
    s.photos = 4, s.photo_height = 48, s.photo_width = 64, s.photo_side = 16, s.batch = 2;
    s.batches = 4, s.factor = 16, s.max_factors = 4;
    s.seconds = 0;
    return s;
  }();
  return sizes;
}

}  // namespace bench
