// After a failure everything goes on as if it had not happened.
#include <functional>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The schedule is chosen in the first dozen calls: each of them may be the one that fails.
TEST(Recovery, AFailureInAnyCallLeavesTheFunctionUsable) {
  for (int bad = 0; bad < 12; ++bad) {
    Runtime runtime({.inter_op_threads = 2, .intra_op_threads = 2});
    RuntimeScope scope(runtime);
    const Tensor a = ones({96, 96});
    auto f = function([&](Tensor index) {
      const Tensor left = matmul(matmul(a, a), a), right = matmul(matmul(a, a), a);
      return reduce_sum(left + right) * 0.0f + gather(Tensor{1.0, 2.0}, index);
    });
    for (int call = 0; call < 14; ++call) {
      if (call == bad) {
        EXPECT_THROW(f(Tensor(7)), InvalidArgumentError) << call;
      } else {
        EXPECT_EQ(f(Tensor(1)).item<float>(), 2) << call;
      }
    }
  }
}

// What one function keeps for its next call another one may need.
TEST(Recovery, FunctionsThatDoNotFitTogetherRunInTurn) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=4MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const Tensor x = ones({512, 512});  // 1 MiB
  auto train = function([](Tensor a) { return reduce_sum(matmul(matmul(a, a), a)); });
  auto evaluate = function([](Tensor a) { return reduce_max(matmul(matmul(a, a), a) * 2.0f); });
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(train(x).item<float>(), 512.0f * 512 * 512 * 512);
    EXPECT_EQ(evaluate(x).item<float>(), 2.0f * 512 * 512);
    EXPECT_EQ(matmul(matmul(x, x), x).at<float>({1, 1}), 512.0f * 512);
  }
  EXPECT_THROW(matmul(ones({1024, 1024}), ones({1024, 1024})).synchronize(),
               ResourceExhaustedError);
  EXPECT_EQ(evaluate(x).item<float>(), 2.0f * 512 * 512);
}

// Its constants take more than there is room for, so that not even a plan can be made.
TEST(Recovery, AFunctionThatCannotBePlannedLeavesNothingBehind) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const Array weights = [] {
    DeviceScope host("/CPU:0");
    return fill({256, 1024}, 2.0f).array();  // 1 MiB
  }();
  auto f = function(
      [&](Tensor x) {
        for (int i = 0; i < 3; ++i) x = x * Tensor(Array(weights));
        return reduce_max(x);
      },
      {.optimize = false});
  DeviceScope gpu("/GPU:0");
  const Tensor x = fill({256, 1024}, 1.0f);
  Tensor more = fill({256, 5 * 1024}, 1.0f);
  x.synchronize();
  more.synchronize();
  const Allocator& memory = runtime.devices()[1]->allocator();
  const std::size_t before = memory.stats().current;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(f(x), ResourceExhaustedError);
    EXPECT_EQ(memory.stats().current, before);
  }
  more = Tensor();
  EXPECT_EQ(f(x).item<float>(), 8.0f);
}

TEST(Recovery, RandomNumbersGoOnWhateverScheduleRuns) {
  const auto draw = [] {
    Runtime runtime({.inter_op_threads = 2, .intra_op_threads = 1});
    RuntimeScope scope(runtime);
    const Tensor a = ones({160, 160});
    auto f = function([&] {
      const Tensor work = reduce_sum(matmul(a, a)) + reduce_sum(matmul(a + 1, a));
      return random::uniform({}, {.seed = 3}) + work * 0.0f;
    });
    std::vector<float> values;
    for (int i = 0; i < 16; ++i) values.push_back(f().item<float>());
    return values;
  };
  const std::vector<float> values = draw();
  for (std::size_t i = 1; i < values.size(); ++i) EXPECT_NE(values[i], values[0]) << i;
  EXPECT_EQ(draw(), values);
}

TEST(Recovery, ASymbolThatOutlivesItsFunctionExplainsItself) {
  Tensor leak;
  {
    auto f = function([&](Tensor x) {
      leak = x + 1;
      return leak;
    });
    EXPECT_EQ(f(Tensor(1.0)).item<float>(), 2);
  }
  EXPECT_THROW(leak.dtype(), FailedPreconditionError);
  EXPECT_THROW(leak + 1, FailedPreconditionError);
  EXPECT_THAT(leak.to_string(), HasSubstr("gone"));
  auto g = function([&](Tensor x) { return x + leak; });
  EXPECT_THROW(g(Tensor(1.0)), FailedPreconditionError);
}

TEST(Recovery, SizesThatOverflowInAFunctionAreErrors) {
  auto f = function([](Tensor x) { return reduce_sum(broadcast_to(x, {std::int64_t{1} << 61})); });
  EXPECT_THROW(f(tensor<double>({1.0})), Error);
  EXPECT_THROW(f(tensor<double>({1.0})), Error);
}

TEST(Recovery, MetricsCountAfterAFirstStepThatFailed) {
  const keras::Sequential model{keras::Input({2}), keras::Dense(2, {.activation = "softmax"})};
  model.compile({.optimizer = keras::optimizers::SGD({.learning_rate = 0.0}),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  const Tensor x = ones({8, 2});
  const keras::FitOptions silent{.verbose = keras::Verbose::kSilent};
  EXPECT_THROW(model.fit(x, fill({8}, Tensor(2)), silent), Error);
  const Tensor labels = argmax(model.predict(x, {.verbose = keras::Verbose::kSilent}), 1);
  EXPECT_EQ(model.fit(x, cast(labels, int32), silent)["accuracy"].back(), 1.0);
}

TEST(Recovery, ACacheTakesNoPassThatFailed) {
  bool fails = true;
  const auto dataset = data::from_tensor_slices(Tensor{0, 1, 2, 3, 4, 5})
                           .filter([&](const Tensor& x) {
                             if (fails && x.item<int>() == 3) {
                               fails = false;
                               throw NotFoundError("once");
                             }
                             return x.item<int>() != 1;
                           })
                           .cache()
                           .batch(4);
  const auto pass = [&] {
    std::vector<int> all;
    auto it = dataset.iterator();
    for (;;) {
      try {
        data::Element batch;
        if (!it.next(batch)) break;
        for (int v : batch[0].to_vector<int>()) all.push_back(v);
      } catch (const NotFoundError&) {
      }
    }
    return all;
  };
  pass();
  EXPECT_THAT(pass(), ElementsAre(0, 2, 3, 4, 5));
}

TEST(Recovery, AFunctionThatTracesItselfForEverSaysSo) {
  std::function<Tensor(Tensor)> again;
  auto f = function([&](Tensor x) { return again(x); });
  again = [&](Tensor x) { return f(x) + 1; };
  EXPECT_THROW(f(Tensor(1.0)), FailedPreconditionError);
}

TEST(Recovery, UnknownAttributesAreRefusedEveryTime) {
  const Tensor x{1.0, -1.0};
  for (int i = 0; i < 2; ++i) {
    EXPECT_NO_THROW(raw_op("Relu", {x}));
    EXPECT_THROW(raw_op("Relu", {x}, {{"bogus", std::int64_t{1}}}), InvalidArgumentError);
    EXPECT_NO_THROW(raw_op("Cast", {x}, {{"DstT", DType::kInt32}}));
    EXPECT_THROW(raw_op("Cast", {x}), InvalidArgumentError);
  }
}

TEST(Jacobian, OfATapeThatHasStoppedListening) {
  GradientTape tape({.persistent = true});
  const Tensor x{1.0, 2.0};
  tape.watch(x);
  const Tensor y = x * x;
  tape.stop_recording();
  EXPECT_EQ(tape.jacobian(y, x).to_vector<float>(), (std::vector<float>{2, 0, 0, 4}));
  EXPECT_THROW(tape.gradient(std::vector<Tensor>{y}, std::vector<Tensor>{x},
                             std::vector<Tensor>{Tensor{1.0, 1.0, 1.0}}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
