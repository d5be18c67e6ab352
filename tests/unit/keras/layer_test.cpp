#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem::keras {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Layer, IsBuiltByTheFirstCall) {
  const Dense dense(3);
  EXPECT_FALSE(dense.built());
  EXPECT_TRUE(dense.weights().empty());
  EXPECT_THROW(dense.count_params(), FailedPreconditionError);
  EXPECT_EQ(dense(zeros({2, 4})).shape(), (Shape{2, 3}));
  EXPECT_TRUE(dense.built());
  EXPECT_EQ(dense.count_params(), 15);
  EXPECT_EQ(dense.weights()[0].shape(), PartialShape({4, 3}));
}

TEST(Layer, IsAHandle) {
  const Dense dense(3);
  const Layer same = dense;
  same.build({-1, 4});
  EXPECT_TRUE(dense.built());
  EXPECT_TRUE(dense.weights()[0].is_same(same.weights()[0]));
  EXPECT_THROW(Layer().name(), FailedPreconditionError);
}

TEST(Layer, ComputesWhatItsWeightsSay) {
  const Dense dense(2);
  dense.build({-1, 2});
  dense.set_weights({Tensor{{1.0, 2.0}, {3.0, 4.0}}, Tensor{10.0, 20.0}});
  EXPECT_TRUE(all_equal(dense(Tensor{{1.0, 1.0}}), Tensor{{14.0, 26.0}}));
  const Dense relu(2, {.activation = "relu", .use_bias = false});
  relu.build({-1, 1});
  relu.set_weights({Tensor{{1.0, -1.0}}});
  EXPECT_TRUE(all_equal(relu(expand_dims(Tensor{2.0}, 0)), Tensor{{2.0, 0.0}}));
}

TEST(Layer, GetsNamesAsKerasGivesThem) {
  clear_session();
  EXPECT_EQ(Dense(1).name(), "dense");
  EXPECT_EQ(Dense(1).name(), "dense_1");
  EXPECT_EQ(Conv2D(1, 1).name(), "conv2d");
  EXPECT_EQ(MaxPooling2D().name(), "max_pooling2d");
  EXPECT_EQ(GlobalAveragePooling2D().name(), "global_average_pooling2d");
  EXPECT_EQ(ReLU().name(), "re_lu");
  EXPECT_EQ(LeakyReLU().name(), "leaky_re_lu");
  EXPECT_EQ(MultiHeadAttention(1, 1).name(), "multi_head_attention");
  EXPECT_EQ(Dense(1, {.name = "mine"}).name(), "mine");
  EXPECT_EQ(Dense(1).name(), "dense_2");
  EXPECT_THROW(Dense(1, {.name = "a/b"}), InvalidArgumentError);
}

TEST(Layer, DescribesItself) {
  const Dense dense(10, {.activation = "relu", .name = "d"});
  EXPECT_THAT(
      dense.describe(),
      HasSubstr("Dense(name='d', trainable=true, dtype='float32', units=10, activation='relu'"));
  EXPECT_EQ(std::get<std::int64_t>(dense.config().at("units")), 10);
  EXPECT_THROW(dense.config().at("nonsense"), NotFoundError);
}

TEST(Layer, NamesItselfAndItsInputsInErrors) {
  const Dense dense(3, {.name = "d"});
  dense.build({-1, 4});
  EXPECT_THAT(error_of([&] {
                dense(zeros({2, 5}));
              }),
              HasSubstr("Input 0 of layer \"d\" is incompatible with the layer: expected axis -1 "
                        "of input shape to "
                        "have value 4, but it has 5. Full shape received: (2, 5)"));
  EXPECT_THAT(error_of([&] { dense(zeros({4})); }), HasSubstr("expected min_ndim=2, found ndim=1"));
  EXPECT_THAT(error_of([&] { dense(Tensor()); }), HasSubstr("undefined tensor"));
  EXPECT_THAT(error_of([&] {
                dense({zeros({2, 4}), zeros({2, 4})});
              }),
              HasSubstr("takes one input"));
  EXPECT_THAT(error_of([] { Dense(0); }), HasSubstr("units must be positive, got 0"));
  EXPECT_THAT(error_of([] { Dense(1).build({-1, -1}); }), HasSubstr("must have a known size"));
  EXPECT_EQ(dense(zeros({2, 4})).shape(), (Shape{2, 3})) << "it still works afterwards";
}

TEST(Layer, ChecksWeightsThatAreSet) {
  const Dense dense(2, {.name = "d"});
  dense.build({-1, 2});
  EXPECT_THAT(error_of([&] { dense.set_weights({}); }),
              HasSubstr("has 2 weights, but set_weights was given 0"));
  EXPECT_THAT(error_of([&] {
                dense.set_weights({zeros({3, 2}), zeros({2})});
              }),
              HasSubstr("'d/kernel' is float[2,2], but set_weights was given float[3,2]"));
}

TEST(Layer, ThatIsNotTrainableHasNoTrainableWeights) {
  const Dense dense(2);
  dense.build({-1, 2});
  EXPECT_EQ(dense.trainable_weights().size(), 2u);
  dense.set_trainable(false);
  EXPECT_TRUE(dense.trainable_weights().empty());
  EXPECT_EQ(dense.non_trainable_weights().size(), 2u);
  EXPECT_TRUE(dense.trainable_variables().empty());
  EXPECT_EQ(dense.non_trainable_variables().size(), 2u);
  EXPECT_EQ(dense.variables().size(), 2u);
}

TEST(Layer, InfersShapesWithUnknownSizes) {
  EXPECT_EQ(Dense(7).compute_output_shape({-1, -1, 3}), PartialShape({-1, -1, 7}));
  EXPECT_EQ(Conv2D(8, 3).compute_output_shape({-1, 28, 28, 1}), PartialShape({-1, 26, 26, 8}));
  EXPECT_EQ(Conv2D(8, 3, {.strides = 2, .padding = "same"}).compute_output_shape({-1, 7, 9, 1}),
            PartialShape({-1, 4, 5, 8}));
  EXPECT_EQ(MaxPooling2D().compute_output_shape({-1, 7, 9, 3}), PartialShape({-1, 3, 4, 3}));
  EXPECT_EQ(Flatten().compute_output_shape({-1, 2, 3}), PartialShape({-1, 6}));
  EXPECT_EQ(Reshape({-1, 2}).compute_output_shape({-1, 3, 4}), PartialShape({-1, 6, 2}));
  EXPECT_EQ(Permute({2, 1}).compute_output_shape({-1, 3, 4}), PartialShape({-1, 4, 3}));
  EXPECT_EQ(Embedding(10, 4).compute_output_shape({-1, 6}), PartialShape({-1, 6, 4}));
  EXPECT_EQ(GlobalMaxPooling2D().compute_output_shape({-1, 5, 5, 3}), PartialShape({-1, 3}));
  EXPECT_EQ(BatchNormalization().compute_output_shape({-1, 5}), PartialShape({-1, 5}));
}

TEST(Layer, CastsFloatingInputs) {
  const Dense dense(2);
  EXPECT_EQ(dense(zeros({1, 3}, float64)).dtype(), float32);
  const Dense wide(2, {.dtype = float64});
  EXPECT_EQ(wide(zeros({1, 3})).dtype(), float64);
  EXPECT_EQ(wide.weights()[0].dtype(), float64);
}

// A layer of one's own, with a weight, a regularizer and a loss.
class Scale final : public LayerImpl {
 public:
  Scale() : LayerImpl("Scale") {}
  void build(const PartialShape& input) override {
    factor_ = add_weight("factor", {input.dim(-1)}, {.initializer = "ones", .regularizer = "l2"});
  }
  Tensor call(const Tensor& x, bool training) override {
    return training ? x * factor_ * 2 : x * factor_;
  }

 private:
  Variable factor_;
};

TEST(Layer, CanBeWrittenByTheUser) {
  clear_session();
  const Layer scale = make_layer<Scale>();
  EXPECT_EQ(scale.name(), "scale");
  EXPECT_TRUE(all_equal(scale(Tensor{{1.0, 2.0}}), Tensor{{1.0, 2.0}}));
  EXPECT_TRUE(all_equal(scale(Tensor{{1.0, 2.0}}, {.training = true}), Tensor{{2.0, 4.0}}));
  EXPECT_EQ(scale.weights()[0].name(), "scale/factor");
  EXPECT_NEAR(scale.losses().front().item<float>(), 0.02, 1e-6);
  EXPECT_EQ(scale.compute_output_shape({-1, 2}), PartialShape({-1, 2}));
}

class TwoLayers final : public LayerImpl {
 public:
  TwoLayers() : LayerImpl("TwoLayers"), first_(add_layer(Dense(3))), second_(add_layer(Dense(1))) {}
  Tensor call(const Tensor& x, bool training) override {
    return second_(first_(x, {.training = training}), {.training = training});
  }

 private:
  Layer first_;
  Layer second_;
};

TEST(Layer, ContainsLayers) {
  const Layer outer = make_layer<TwoLayers>();
  EXPECT_EQ(outer(zeros({2, 5})).shape(), (Shape{2, 1}));
  EXPECT_EQ(outer.weights().size(), 4u);
  EXPECT_EQ(outer.count_params(), 5 * 3 + 3 + 3 + 1);
  outer.set_trainable(false);
  EXPECT_TRUE(outer.trainable_weights().empty());
}

class Broken final : public LayerImpl {
 public:
  Broken() : LayerImpl("Broken", {.name = "b"}) {}
  Tensor call(const Tensor&, bool) override { throw std::runtime_error("out of order"); }
};

TEST(Layer, ThatThrowsIsNamed) {
  const Layer broken = make_layer<Broken>();
  const std::string message = error_of([&] { broken(zeros({2})); });
  EXPECT_THAT(message, HasSubstr("out of order"));
  EXPECT_THAT(message, HasSubstr("in layer 'b' (Broken) called with float[2]"));
}

TEST(Layer, BuildsWhileAFunctionIsTraced) {
  const Dense dense(2);
  const auto f = function([&](Tensor x) { return dense(x); });
  EXPECT_EQ(f(zeros({1, 3})).shape(), (Shape{1, 2}));
  EXPECT_TRUE(all_equal(f(ones({1, 3})), dense(ones({1, 3}))));
}

}  // namespace
}  // namespace tandem::keras
