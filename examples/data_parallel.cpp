// Data-parallel training over two devices: a copy of the model on each, half of every batch for
// each, gradients averaged by all_reduce. It is the same as training on one device with the whole
// batch, which runs beside it. Emulates two GPUs where there is none.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

// A copy of the model with its optimizer, in the memory of one device.
struct Replica {
  std::string device;
  Sequential model;
  optimizers::SGD optimizer;
  std::vector<td::Variable> weights;
};

Replica make_replica(const std::string& device) {
  const td::DeviceScope on(device);
  Replica r{
      device,
      Sequential{Input({8, 8, 1}), Conv2D(16, 3, {.activation = "relu"}), Flatten(), Dense(10)},
      optimizers::SGD({.learning_rate = 0.05, .momentum = 0.9}),
      {}};
  r.weights = r.model.trainable_weights();
  r.optimizer.build(r.weights);
  return r;
}

// The gradients of the mean loss over these examples.
std::vector<td::Tensor> gradients(const Replica& r, const td::Tensor& x, const td::Tensor& y,
                                  td::Tensor& loss) {
  static const losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
  const td::DeviceScope on(r.device);
  td::GradientTape tape;
  loss = loss_of(y, r.model(x, {.training = true}));
  return tape.gradient(loss, r.weights);
}

}  // namespace

int main() try {
  if (td::config::list_physical_devices("GPU").empty()) td::config::emulate("GPU:2,memory=64MiB");
  utils::set_random_seed(3);
  const auto [train, test] = td::data::digits("examples/data/digits.csv.gz").split(0.8);

  std::vector<Replica> replicas{make_replica("/GPU:0"), make_replica("/GPU:1")};
  const Replica alone = make_replica("/GPU:0");
  replicas[1].model.set_weights(replicas[0].model.get_weights());
  alone.model.set_weights(replicas[0].model.get_weights());

  const auto parallel_step = td::function([&](td::Tensor x, td::Tensor y) {
    const auto xs = td::split(x, 2), ys = td::split(y, 2);
    std::vector<std::vector<td::Tensor>> grads;
    std::vector<td::Tensor> losses(2);
    for (std::size_t r = 0; r < 2; ++r)
      grads.push_back(gradients(replicas[r], xs[r], ys[r], losses[r]));
    for (std::size_t w = 0; w < grads[0].size(); ++w) {
      const auto mean =
          td::all_reduce({grads[0][w], grads[1][w]}, {replicas[0].device, replicas[1].device},
                         td::Reduction::kMean);
      for (std::size_t r = 0; r < 2; ++r) grads[r][w] = mean[r];
    }
    for (std::size_t r = 0; r < 2; ++r) {
      const td::DeviceScope on(replicas[r].device);
      replicas[r].optimizer.apply(grads[r], replicas[r].weights);
    }
    const td::DeviceScope on("/CPU:0");
    return (losses[0] + losses[1]) / 2.0f;
  });
  const auto single_step = td::function([&](td::Tensor x, td::Tensor y) {
    td::Tensor loss;
    const auto grads = gradients(alone, x, y, loss);
    const td::DeviceScope on(alone.device);
    alone.optimizer.apply(grads, alone.weights);
    return loss;
  });

  for (int epoch = 1; epoch <= 3; ++epoch) {
    float parallel = 0, single = 0;
    for (const auto& [x, y] : train.batch(64, {.drop_remainder = true}).tuples<2>()) {
      parallel = parallel_step(x, y).item<float>();
      single = single_step(x, y).item<float>();
    }
    std::cout << "epoch " << epoch << ": loss " << parallel << " on two devices, " << single
              << " on one\n";
  }
  float difference = 0;
  for (std::size_t w = 0; w < alone.weights.size(); ++w) {
    const auto a = td::Tensor(alone.weights[w]).to_vector<float>();
    const auto b = td::Tensor(replicas[0].weights[w]).to_vector<float>();
    const auto c = td::Tensor(replicas[1].weights[w]).to_vector<float>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference = std::max({difference, std::abs(a[i] - b[i]), std::abs(b[i] - c[i])});
    }
  }
  std::cout << "largest difference of a weight: " << difference << "\n";
  return difference < 1e-4f ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << "data_parallel: " << error.what() << "\n";
  return 1;
}
