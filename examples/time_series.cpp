// Foretells a series of measurements: windows of a day's hours, and the hour after each. Normalizes
// by what the training part shows, stops when it no longer improves, and compares with the guess
// that nothing changes.
#include <cmath>
#include <iostream>
#include <numbers>
#include <vector>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

constexpr std::int64_t kHours = 24 * 120, kWindow = 24;

// Temperatures with a daily and a slow course, and noise.
td::Tensor temperatures() {
  const td::Tensor hour = td::cast(td::range(static_cast<int>(kHours)), td::float32);
  const double day = 2 * std::numbers::pi / 24;
  return 12.0 + td::sin(hour * day) * 6.0 + td::sin(hour * (day / 45)) * 5.0 +
         td::random::normal({kHours}) * 0.3;
}

// Windows of `kWindow` hours that move by one, with the hour that follows.
td::data::Dataset windows(const td::Tensor& series) {
  return td::data::from_tensor_slices(series)
      .window(kWindow + 1, {.shift = 1, .drop_remainder = true})
      .flat_map([](td::Tensor w) { return td::data::from_variant(w).batch(kWindow + 1); })
      .map([](td::Tensor hours) {
        const td::Tensor past = td::slice(hours, {0}, {kWindow});
        return std::pair(td::expand_dims(past, -1), td::slice(hours, {kWindow}, {1}));
      });
}

}  // namespace

int main() try {
  utils::set_random_seed(5);
  const td::Tensor series = temperatures();
  const std::int64_t at = kHours * 3 / 4;
  const td::Tensor past = td::slice(series, {0}, {at});
  const td::Tensor future = td::slice(series, {at}, {kHours - at});

  const Normalization normalize({.axis = std::nullopt});
  normalize.adapt(past);
  const Sequential model{Input({kWindow, 1}), normalize, GRU(16), Dense(1),
                         Lambda([](td::Tensor y) { return y * 8.0 + 12.0; })};
  model.compile({.optimizer = optimizers::Adam(0.01), .loss = "huber", .metrics = {"mae"}});
  model.fit(windows(past).cache().shuffle(2000).batch(64),
            {.epochs = 8,
             .verbose = Verbose::kLinePerEpoch,
             .callbacks = {callbacks::EarlyStopping({.monitor = "loss", .patience = 2})}});

  const double error =
      model.evaluate(windows(future).batch(256), {.verbose = Verbose::kSilent})["mae"];
  const td::Tensor change =
      td::slice(future, {1}, {kHours - at - 1}) - td::slice(future, {0}, {kHours - at - 1});
  const double unchanged = td::reduce_mean(td::abs(change)).item<double>();
  std::cout << "mean error an hour ahead: " << error << " degrees; of the guess that nothing "
            << "changes: " << unchanged << '\n';
  return error < unchanged ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
