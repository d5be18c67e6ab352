// Training through fit: steps of a small MLP, images of a small CNN.
#include <memory>

#include <tandem/tandem.h>

#include "bench/common/samples.h"
#include "bench/common/serve.h"
#include "bench/common/timing.h"

namespace td = tandem;
using namespace td::keras;

namespace {

// Trains for whole epochs, as many as fill half a second.
bench::Answer fit(const Sequential& model, const td::Tensor& images, const td::Tensor& labels,
                  std::int64_t samples, std::int64_t batch, double units_per_epoch) {
  const auto data = td::data::from_tensor_slices({images, labels}).shuffle(samples).batch(batch);
  const auto epochs = [&](int n) {
    return model.fit(data, {.epochs = n, .verbose = Verbose::kSilent});
  };
  epochs(1);
  double start = bench::now();
  epochs(1);
  const int n = 1 + static_cast<int>(0.5 / (bench::now() - start));
  start = bench::now();
  const auto history = epochs(n);
  bench::Answer answer;
  answer.value = n * units_per_epoch / (bench::now() - start);
  answer.loss = history["loss"].back();
  return answer;
}

td::Tensor labels_of(const bench::Samples& samples) { return td::Tensor::from(samples.labels); }

bench::Answer mlp() {
  static const bench::Samples made = bench::samples(bench::kMlpSamples);
  static const Sequential model = [] {
    Sequential m{Input({bench::kPixels}), Dense(bench::kMlpHidden, {.activation = "relu"}),
                 Dense(bench::kClasses, {.activation = "softmax"})};
    m.compile(
        {.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
    return m;
  }();
  const td::Tensor x = td::Tensor::from(made.images, {bench::kMlpSamples, bench::kPixels});
  return fit(model, x, labels_of(made), bench::kMlpSamples, bench::kMlpBatch,
             static_cast<double>(bench::kMlpSamples / bench::kMlpBatch));
}

bench::Answer cnn() {
  static const bench::Samples made = bench::samples(bench::kCnnSamples);
  static const Sequential model = [] {
    Sequential m{Input({28, 28, 1}), Conv2D(bench::kCnnFilters, 3, {.activation = "relu"}),
                 MaxPooling2D(), Flatten(), Dense(bench::kClasses, {.activation = "softmax"})};
    m.compile(
        {.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}});
    return m;
  }();
  const td::Tensor x = td::Tensor::from(made.images, {bench::kCnnSamples, 28, 28, 1});
  return fit(model, x, labels_of(made), bench::kCnnSamples, bench::kCnnBatch,
             static_cast<double>(bench::kCnnSamples));
}

}  // namespace

int main() {
  td::config::threading::set_intra_op_parallelism_threads(bench::threads());
  td::config::threading::set_inter_op_parallelism_threads(bench::threads());
  return bench::serve({{"mlp", mlp}, {"cnn", cnn}}, "tandem");
}
