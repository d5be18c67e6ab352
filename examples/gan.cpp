// Two networks against each other: one draws points, the other says whether points are real. The
// step of training is the model's own; fit, callbacks and metrics are those of every model.
#include <cmath>
#include <iostream>
#include <numbers>
#include <vector>

#include <tandem/tandem.h>

namespace td = tandem;
using namespace td::keras;

namespace {

constexpr std::int64_t kNoise = 4;

class Gan final : public ModelImpl {
 public:
  Gan()
      : ModelImpl("Gan"),
        generator_(Sequential{Input({kNoise}), Dense(32, {.activation = "relu"}),
                              Dense(32, {.activation = "relu"}), Dense(2)}),
        discriminator_(Sequential{Input({2}), Dense(32, {.activation = "leaky_relu"}),
                                  Dense(32, {.activation = "leaky_relu"}), Dense(1)}) {
    add_layer(generator_);
    add_layer(discriminator_);
  }
  td::Tensor call(const td::Tensor& noise, bool) override { return generator_(noise); }

  StepResults train_step(const td::data::Element& batch) override {
    const td::Tensor& real = batch[0];
    const td::IntList size{real.dim(0), kNoise};
    const auto judge = [&](const td::Tensor& points, double truth) {
      const td::Tensor logits = discriminator_(points);
      return loss_(td::ones_like(logits) * truth, logits);
    };
    td::GradientTape judging;
    const td::Tensor d_loss = judge(real, 1) + judge(generator_(td::random::normal(size)), 0);
    const auto d_weights = discriminator_.trainable_variables();
    judge_optimizer_.apply(judging.gradient(d_loss, d_weights), d_weights);

    td::GradientTape drawing;
    const td::Tensor g_loss = judge(generator_(td::random::normal(size)), 1);
    const auto g_weights = generator_.trainable_variables();
    draw_optimizer_.apply(drawing.gradient(g_loss, g_weights), g_weights);
    d_mean_.update_state(d_loss);
    g_mean_.update_state(g_loss);
    return {{"d_loss", d_mean_.result()}, {"g_loss", g_mean_.result()}};
  }
  std::vector<Metric> metrics() const override { return {d_mean_, g_mean_}; }

 private:
  Model generator_, discriminator_;
  losses::BinaryCrossentropy loss_{{.from_logits = true}};
  optimizers::Adam judge_optimizer_{0.002}, draw_optimizer_{0.002};
  metrics::Mean d_mean_{{.name = "d_loss"}}, g_mean_{{.name = "g_loss"}};
};

}  // namespace

int main() try {
  utils::set_random_seed(1);
  // Points on a circle of radius 2.
  const td::Tensor angles = td::random::uniform({2048}) * (2 * std::numbers::pi);
  const td::Tensor points = td::stack({td::cos(angles), td::sin(angles)}, 1) * 2.0;
  auto gan = make_model<Gan>();
  gan.compile({});
  gan.fit(td::data::from_tensor_slices(points).shuffle(2048).batch(128, {.drop_remainder = true}),
          {.epochs = 120, .verbose = Verbose::kSilent});
  const td::Tensor drawn =
      gan.predict(td::random::normal({512, kNoise}), {.verbose = Verbose::kSilent});
  const double radius = td::reduce_mean(td::norm(drawn, 2, {1})).item<double>();
  std::cout << "mean radius of what is drawn: " << radius << " (real: 2)\n";
  return radius > 1.2 && radius < 2.8 ? 0 : 1;
} catch (const td::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
