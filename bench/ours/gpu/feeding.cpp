// How busy the GPU is while a pipeline of JPEG files feeds it. Its work takes a little longer for a
// batch than the pipeline does, so that both could keep up: 1 is a GPU that never waits.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/common/samples.h"
#include "bench/ours/gpu/rows.h"

namespace td = tandem;

namespace bench {
namespace {

constexpr std::uint64_t kPhotoSeed = 23, kFactorSeed = 24;
constexpr double kLonger = 1.2;  // the GPU's time for a batch over the pipeline's

// JPEG files with as much detail as photographs have, in a folder that goes with this object.
class Photos {
 public:
  Photos() {
    std::string name = (std::filesystem::temp_directory_path() / "tandem_photos_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("no folder for photographs could be made: " + name);
    folder_ = name;
    const td::DeviceScope scope("/CPU:0");
    const GpuSizes& s = gpu_sizes();
    // Large shapes and small ones.
    const auto noise = [&](std::int64_t number, std::int64_t part) {
      const std::int64_t height = s.photo_height / part, width = s.photo_width / part;
      const td::Shape shape{height, width, 3};
      const auto seed = kPhotoSeed + static_cast<std::uint64_t>(1000 * number + part);
      return td::image::resize(td::Tensor::from(uniform(shape.num_elements(), seed), shape),
                               {s.photo_height, s.photo_width});
    };
    for (std::int64_t i = 0; i < s.photos; ++i) {
      const td::Tensor pixels = 160.0f * noise(i, 16) + 64.0f * noise(i, 4) + 24.0f * noise(i, 1);
      td::io::write_file(folder_ + "/" + std::to_string(i) + ".jpg",
                         td::image::encode_jpeg(td::cast(pixels, td::uint8), {.quality = 90}));
    }
  }
  ~Photos() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Photos(const Photos&) = delete;
  Photos& operator=(const Photos&) = delete;

  td::data::Dataset batches() const {
    const std::int64_t side = gpu_sizes().photo_side;
    const auto load = [side](td::Tensor path) {
      const td::Tensor pixels =
          td::image::decode_jpeg(td::io::read_file(std::move(path)), {.channels = 3});
      return td::image::resize(pixels, {side, side}) / 255.0f;
    };
    return td::data::list_files(folder_ + "/*.jpg", {.shuffle = false})
        .repeat()
        .map(load, {.num_parallel_calls = td::data::kAutotune})
        .batch(gpu_sizes().batch, {.drop_remainder = true})
        .prefetch(td::data::kAutotune);
  }

 private:
  std::string folder_;
};

td::Tensor factor() {
  const std::int64_t n = gpu_sizes().factor;
  std::vector<float> values = tiled(n * n, kFactorSeed);
  const float scale = 4 / std::sqrt(static_cast<float>(n));
  for (float& v : values) v = (v - 0.5f) * scale;
  return on_gpu(td::Tensor::from(values, {n, n}));
}

// Products of a matrix made of the batch, each with a function behind it.
td::Tensor work(const td::Tensor& images, const td::Tensor& w, std::int64_t products) {
  const std::int64_t n = gpu_sizes().factor;
  const td::Tensor rows =
      td::reshape(images, {gpu_sizes().batch, -1})[{td::ellipsis, td::Slice(0, n)}];
  td::Tensor x = td::matmul(td::transpose(rows), rows) / static_cast<float>(gpu_sizes().batch);
  for (std::int64_t i = 0; i < products; ++i) x = td::tanh(td::matmul(x, w));
  return td::reduce_mean(x);
}

double seconds_per_batch(const td::data::Dataset& batches) {
  auto iterator = batches.iterator();
  td::data::Element element;
  const auto draw = [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (!iterator.next(element)) throw std::runtime_error("a pipeline without end has ended");
    }
  };
  draw(gpu_sizes().batches);  // finds the number of threads and buffers
  const double start = now();
  draw(gpu_sizes().batches);
  return (now() - start) / static_cast<double>(gpu_sizes().batches);
}

Answer jpeg_busy_share() {
  static const Photos photos;
  const td::data::Dataset batches = photos.batches();  // on the host
  const double seconds_of_pipeline = seconds_per_batch(batches);
  auto iterator = batches.iterator();
  const td::DeviceScope scope("/GPU:0");
  const td::Tensor w = factor();
  const std::int64_t side = gpu_sizes().photo_side;
  const td::Tensor sample = on_gpu(td::ones({gpu_sizes().batch, side, side, 3}));
  const auto step_of = [&](std::int64_t products) {
    return td::function(
        [=](td::Tensor images, td::Tensor by) { return work(images, by, products); });
  };
  td::Tensor last;
  const auto alone = [&](const auto& step) {
    return seconds_per_gpu_step([&](int steps) {
      for (int i = 0; i < steps; ++i) last = step(sample, w);
      last.synchronize();
    });
  };
  // From two lengths follows what a product takes.
  const std::int64_t few = std::max<std::int64_t>(1, gpu_sizes().max_factors / 20);
  const double little = alone(step_of(few)), more = alone(step_of(2 * few));
  const double each = std::max(1e-9, (more - little) / static_cast<double>(few));
  const double wanted = kLonger * seconds_of_pipeline;
  const auto products = static_cast<std::int64_t>(std::ceil((wanted - little) / each)) + few;
  const auto step = step_of(std::clamp<std::int64_t>(products, 1, gpu_sizes().max_factors));
  const double busy = alone(step);

  td::data::Element element;
  const auto feed = [&](std::int64_t count) {
    td::Tensor before;
    for (std::int64_t i = 0; i < count; ++i) {
      if (!iterator.next(element)) throw std::runtime_error("a pipeline without end has ended");
      last = step(element[0], w);
      if (before.defined()) before.synchronize();  // one batch ahead
      before = last;
    }
    last.synchronize();
  };
  feed(gpu_sizes().batches);
  const double start = now();
  feed(gpu_sizes().batches);
  const double fed = (now() - start) / static_cast<double>(gpu_sizes().batches);
  Answer answer;
  answer.value = std::min(1.0, busy / fed);
  answer.nodes = static_cast<double>(products);
  const float mean = last.item<float>();
  if (!(std::abs(mean) <= 1)) throw std::runtime_error("the mean of values of tanh is wrong");
  return answer;
}

}  // namespace

void add_feeding(Rows& rows) { rows["jpeg_busy_share"] = jpeg_busy_share; }

}  // namespace bench
