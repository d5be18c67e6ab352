// Fits a straight line to noisy points: with variables and a tape, then with Keras.
#include <cmath>
#include <iostream>
#include <vector>

#include <tandem/tandem.h>

namespace td = tandem;

int main() try {
  td::random::set_seed(3);
  const td::Tensor x = td::random::uniform({200, 1}, {.minval = -1.0, .maxval = 1.0});
  const td::Tensor y = 3.0 * x + 0.5 + td::random::normal({200, 1}, {.stddev = 0.1});

  // By hand: the loss is an expression, the tape differentiates it, eager op by eager op.
  const td::Variable slope(0.0f);
  const td::Variable offset(0.0f);
  for (int step = 0; step <= 200; ++step) {
    td::GradientTape tape;
    const td::Tensor error = slope * x + offset - y;
    const td::Tensor loss = td::reduce_mean(error * error);
    const auto gradients = tape.gradient(loss, std::vector<td::Variable>{slope, offset});
    slope.assign_sub(0.1 * gradients[0]);
    offset.assign_sub(0.1 * gradients[1]);
    if (step % 50 == 0) std::cout << "step " << step << ", loss " << loss << "\n";
  }
  std::cout << "by hand: y = " << slope.read_value() << " x + " << offset.read_value() << "\n";

  // Linear regression as a model of one layer.
  using namespace td::keras;
  const Sequential model{Input({1}), Dense(1, {.kernel_initializer = "zeros"})};
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.1}), .loss = "mse"});
  model.fit(x, y, {.epochs = 40, .verbose = Verbose::kSilent});
  const auto weights = model.get_weights();
  std::cout << "by Keras: y = " << weights[0] << " x + " << weights[1] << "\n";

  const auto near = [](const td::Tensor& value, float wanted) {
    return std::abs(value.item<float>() - wanted) < 0.1f;
  };
  const bool found =
      near(slope, 3.0f) && near(offset, 0.5f) && near(weights[0], 3.0f) && near(weights[1], 0.5f);
  return found ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << "linear_regression: " << error.what() << "\n";
  return 1;
}
