// Metrics of one's own classes.

#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem::keras {
namespace {

class CountOfHits final : public MetricImpl {
 public:
  explicit CountOfHits(double threshold)
      : MetricImpl("hits"), threshold_(threshold), hits_(add_variable("hits", {})) {}
  void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor&) override {
    const Tensor right = cast(y_true, float32) * cast(y_pred > threshold_, float32);
    hits_.assign_add(reduce_sum(right));
  }
  Tensor result() const override { return hits_.value(); }

 private:
  double threshold_;
  Variable hits_;
};

TEST(OwnMetric, CountsInFitAndStartsOverInEachEpoch) {
  const Metric hits = make_metric<CountOfHits>(0.5);
  const Sequential model{Input({1}), Dense(1, {.kernel_initializer = "ones"})};
  model.compile({.optimizer = optimizers::SGD(0.0), .loss = "mse", .metrics = {hits}});
  const Tensor x{{1.0}, {0.0}, {1.0}, {1.0}};
  const History history =
      model.fit(x, Tensor{{1.0}, {1.0}, {0.0}, {1.0}}, {.epochs = 2, .verbose = 0});
  EXPECT_EQ(history["hits"], (std::vector<double>{2, 2}));
}

}  // namespace
}  // namespace tandem::keras
