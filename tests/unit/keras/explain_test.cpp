#include "tandem/keras/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/keras/layers.h"
#include "tandem/keras/model_impl.h"
#include "tandem/tandem.h"

namespace tandem::keras {
namespace {

using ::testing::HasSubstr;

TEST(ExplainModel, NamesTheOpsOfItsForwardPass) {
  const Sequential model({Input({4}), Dense(3, {.activation = "relu"}), Dense(2)}, "small");
  const Explanation explanation = tandem::explain(model);
  EXPECT_THAT(explanation.title, HasSubstr("small"));
  EXPECT_FALSE(explanation.ops.empty());
  EXPECT_THAT(explanation.to_text(), HasSubstr("MatMul"));
  EXPECT_EQ(tandem::explain(model, ones({5, 4})).ops.size(), explanation.ops.size());
}

TEST(ExplainModel, WithoutKnownInputsAsksForABatch) {
  const Sequential model({Dense(3)}, "unbuilt");
  EXPECT_THROW(tandem::explain(model), FailedPreconditionError);
  EXPECT_FALSE(tandem::explain(model, ones({5, 4})).ops.empty());
}

TEST(ExplainDataset, RunsIt) {
  const auto explanation = tandem::explain(data::range(100).batch(10), {.elements = 5});
  EXPECT_THAT(explanation.to_text(), HasSubstr("Batch"));
}

}  // namespace
}  // namespace tandem::keras
