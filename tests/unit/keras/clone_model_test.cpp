// Models of the same architecture with new weights.
#include <gtest/gtest.h>

#include "tandem/tandem.h"

namespace td = tandem;

namespace {

namespace keras = td::keras;
using keras::models::clone_model;
using td::Tensor;

TEST(CloneModel, HasTheLayersAndWeightsOfItsOwn) {
  const auto a = keras::Input({4}, {.name = "a"}), b = keras::Input({4}, {.name = "b"});
  const keras::Dense shared(3, {.activation = "relu", .name = "shared"});
  const auto sum = shared(a) + shared(b) * 2.0;
  const keras::Model model({a, b}, keras::Dense(1, {.name = "out"})(sum), "both");
  const keras::Model clone = clone_model(model);
  EXPECT_EQ(clone.name(), "both");
  ASSERT_EQ(clone.weights().size(), model.weights().size());
  EXPECT_EQ(clone.get_layer("shared").config().to_string(),
            model.get_layer("shared").config().to_string());
  EXPECT_FALSE(clone.weights()[0].is_same(model.weights()[0]));
  clone.set_weights(model.get_weights());
  const std::vector<Tensor> x{td::random::normal({2, 4}), td::random::normal({2, 4})};
  EXPECT_EQ(clone(x).to_vector<float>(), model(x).to_vector<float>());
}

TEST(CloneModel, OfASequentialWithAModelWithin) {
  const keras::Sequential inner({keras::Dense(3), keras::Dense(2)}, "inner");
  const keras::Sequential model{keras::Input({5}), inner, keras::Dense(1)};
  const keras::Model clone = clone_model(model);
  clone.set_weights(model.get_weights());
  const Tensor x = td::random::normal({2, 5});
  EXPECT_EQ(clone(x).to_vector<float>(), model(x).to_vector<float>());
  EXPECT_EQ(clone.layers()[0].name(), "inner");
}

TEST(CloneModel, MayMakeOtherLayers) {
  const keras::Sequential model{keras::Input({4}), keras::Dense(3), keras::Dense(3)};
  const keras::Model clone =
      clone_model(model, {.clone_function = [](const keras::Layer& layer) {
                    return keras::Layer(keras::Dense(5, {.name = layer.name()}));
                  }});
  EXPECT_EQ(clone.compute_output_shape({-1, 4}), td::PartialShape({-1, 5}));
}

}  // namespace
