// Training on devices that only take time (compute=timed).
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem::keras {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(UnmaterializedFit, TrainsAndSaysThatTheLossWasNotComputed) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=64MiB,compute=timed"}}});
  RuntimeScope scope(runtime);
  const Sequential model{Input({4}), Dense(2, {.activation = "softmax"})};
  model.compile({.optimizer = optimizers::SGD(),
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  const Tensor x = Tensor::from(std::vector<float>(32, 1.0f), {8, 4});
  const Tensor y = Tensor::from(std::vector<int>(8), {8});
  std::ostringstream out;
  std::streambuf* const before = std::cout.rdbuf(out.rdbuf());
  History history;
  try {
    history = model.fit(x, y, {.epochs = 2, .verbose = Verbose::kLinePerEpoch});
  } catch (...) {
    std::cout.rdbuf(before);
    throw;
  }
  std::cout.rdbuf(before);
  EXPECT_EQ(history.epochs().size(), 2u);
  EXPECT_THAT(out.str(), HasSubstr("loss: not computed"));
  EXPECT_THAT(out.str(), Not(HasSubstr("nan")));
  EXPECT_FALSE(history.contains("loss"));
  EXPECT_THROW(history["loss"], FailedPreconditionError);
  EXPECT_THROW(history["mse"], NotFoundError);
  const Logs logs = model.evaluate(x, y, {.verbose = Verbose::kSilent});
  EXPECT_FALSE(logs.find("loss").has_value());
  EXPECT_THROW(logs["loss"], FailedPreconditionError);
}

}  // namespace
}  // namespace tandem::keras
