// A variational autoencoder of handwritten digits: a few numbers for each image, from which it is
// drawn again, and new ones drawn from random numbers. Its second loss comes by add_loss.
#include <iostream>
#include <string>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

constexpr std::int64_t kPixels = 64, kCode = 4;

// Draws a code around the mean; how far codes are from normal ones is a loss.
class Sampling final : public LayerImpl {
 public:
  Sampling() : LayerImpl("Sampling") { without_weights(); }
  std::vector<td::Tensor> call_many(std::span<const td::Tensor> inputs,
                                    const CallOptions& options) override {
    const td::Tensor &mean = inputs[0], &log_variance = inputs[1];
    const td::Tensor distance = td::exp(log_variance) + td::square(mean) - 1.0 - log_variance;
    add_loss(td::reduce_mean(td::reduce_sum(distance, {1})) * 0.5 / kPixels * 0.5);
    if (!options.is_training()) return {mean};
    const td::Tensor noise = td::random::normal(td::IntList(td::shape(mean)));
    return {mean + td::exp(log_variance * 0.5) * noise};
  }
};

}  // namespace

int main() try {
  utils::set_random_seed(3);
  const auto [train, test] = td::data::digits("examples/data/digits.csv.gz").split(0.8);
  const auto pairs = [](const td::data::Dataset& data) {
    return data.map([](td::Tensor image, td::Tensor) {
      const td::Tensor pixels = td::reshape(image, {kPixels});
      return std::pair(pixels, pixels);
    });
  };

  const auto image = Input({kPixels});
  const auto hidden = Dense(48, {.activation = "relu"})(image);
  const auto code =
      make_layer<Sampling>()({Dense(kCode)(hidden), Dense(kCode, {.name = "spread"})(hidden)});
  const Sequential decoder{Input({kCode}), Dense(48, {.activation = "relu"}),
                           Dense(kPixels, {.activation = "sigmoid"})};
  const Model model(image, decoder(code));
  model.compile({.optimizer = optimizers::Adam(5e-3), .loss = "mse"});
  model.fit(pairs(train).shuffle(1500).batch(32),
            {.epochs = 12, .verbose = Verbose::kLinePerEpoch});
  const double loss = model.evaluate(pairs(test).batch(256), {.verbose = Verbose::kSilent})["loss"];
  std::cout << "loss on digits it has not seen: " << loss << "\na new one:\n";

  const td::Tensor drawn = decoder(td::random::normal({1, kCode}));
  const auto pixels = drawn.to_vector<float>();
  for (std::size_t i = 0; i < kPixels; ++i) {
    const auto level = static_cast<std::size_t>(pixels[i] * 4.99f);
    std::cout << " .:*#"[level] << (i % 8 == 7 ? "\n" : " ");
  }
  return loss < 0.08 ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
