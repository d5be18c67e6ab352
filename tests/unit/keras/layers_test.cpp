#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

// What the stored references do not show: randomness, errors, unusual shapes.

namespace tandem::keras {
namespace {

using testing::HasSubstr;

// The error is thrown at the call, on an accelerator too.
template <class F>
std::string error_of(F&& f) {
  config::set_synchronous_execution(true);
  std::string text = "no InvalidArgumentError";
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    text = error.what();
  }
  config::set_synchronous_execution(false);
  return text;
}

TEST(Dropout, DropsWhileTrainingOnly) {
  utils::set_random_seed(1);
  const Dropout dropout(0.25);
  const Tensor x = ones({100, 100});
  EXPECT_TRUE(all_equal(dropout(x), x));
  const std::vector<float> y = dropout(x, {.training = true}).to_vector<float>();
  const auto dropped = static_cast<double>(std::count(y.begin(), y.end(), 0.0f));
  EXPECT_NEAR(dropped / 1e4, 0.25, 0.02);
  EXPECT_NEAR(*std::max_element(y.begin(), y.end()), 1 / 0.75, 1e-6);
  EXPECT_THAT(error_of([] { Dropout(1.0); }), HasSubstr("`rate`"));
  EXPECT_THAT(error_of([] { Dropout(-0.1); }), HasSubstr("`rate`"));
}

TEST(Dropout, SharesDecisionsAlongAxesOfSizeOne) {
  const Dropout dropout(0.5, {.noise_shape = {-1, 1}});
  const Tensor y = dropout(ones({64, 8}), {.training = true});
  for (std::int64_t row = 0; row < 64; ++row) {
    for (std::int64_t column = 1; column < 8; ++column) {
      EXPECT_EQ(y.at<float>({row, column}), y.at<float>({row, 0}));
    }
  }
  EXPECT_THAT(error_of([&] { dropout(ones({4}), {.training = true}); }), HasSubstr("noise_shape"));
}

TEST(Embedding, RefusesWhatIsNotInItsTable) {
  const Embedding embedding(3, 2);
  EXPECT_EQ(embedding(Tensor{{0, 2}}).shape(), (Shape{1, 2, 2}));
  EXPECT_THAT(error_of([&] { embedding(Tensor{{0, 3}}); }), HasSubstr("Embedding"));
  EXPECT_THAT(error_of([&] { embedding(Tensor{{-1, 0}}); }), HasSubstr("Embedding"));
}

TEST(Merging, NeedsInputsThatFit) {
  EXPECT_TRUE(all_equal(Subtract()({Tensor{5.0}, Tensor{2.0}}), Tensor{3.0}));
  EXPECT_TRUE(all_equal(Multiply()({Tensor{5.0}, Tensor{2.0}, Tensor{3.0}}), Tensor{30.0}));
  EXPECT_TRUE(all_equal(Average()({Tensor{1.0}, Tensor{2.0}}), Tensor{1.5}));
  EXPECT_TRUE(all_equal(Maximum()({Tensor{1.0, 5.0}, Tensor{2.0, 3.0}}), Tensor{2.0, 5.0}));
  EXPECT_TRUE(all_equal(Minimum()({Tensor{1.0, 5.0}, Tensor{2.0, 3.0}}), Tensor{1.0, 3.0}));
  EXPECT_THAT(error_of([] { Add()(std::vector<Tensor>{ones({2})}); }),
              HasSubstr("at least 2 inputs"));
  EXPECT_THAT(error_of([] {
                Subtract()({ones({2}), ones({2}), ones({2})});
              }),
              HasSubstr("exactly 2 inputs"));
  EXPECT_THAT(error_of([] {
                Add()({ones({2, 3}), ones({2, 4})});
              }),
              HasSubstr("incompatible shapes. Received shapes (2, 3), (2, 4)"));
  EXPECT_THAT(error_of([] {
                Concatenate()({ones({2, 3}), ones({3, 3})});
              }),
              HasSubstr("matching shapes"));
}

TEST(Images, OptionsAreChecked) {
  EXPECT_THAT(error_of([] { Conv2D(4, 3, {.padding = "sam"}); }),
              HasSubstr("padding must be 'valid' or 'same', got 'sam'"));
  EXPECT_THAT(error_of([] { Conv1D(4, 3, {.padding = "sam"}); }),
              HasSubstr("padding must be 'valid', 'same' or 'causal', got 'sam'"));
  EXPECT_THAT(error_of([] { Conv2D(4, 3, {.padding = "causal"}); }),
              HasSubstr("padding must be 'valid' or 'same', got 'causal'"));
  EXPECT_THAT(error_of([] { Conv2D(4, 0); }), HasSubstr("kernel_size must be positive"));
  EXPECT_THAT(error_of([] { Conv2D(4, 3, {.strides = 2, .dilation_rate = 2}); }),
              HasSubstr("`dilation_rate > 1`"));
  EXPECT_THAT(error_of([] { Conv2D(4, 3, {.groups = 3}); }), HasSubstr("evenly divisible"));
  EXPECT_THAT(error_of([] {
                Conv2D(4, 3, {.groups = 2})(ones({1, 4, 4, 3}));
              }),
              HasSubstr("evenly divisible"));
  EXPECT_THAT(error_of([] {
                Conv2D(4, 3)(ones({4, 4, 3}));
              }),
              HasSubstr("expected ndim=4, found ndim=3"));
  EXPECT_THAT(error_of([] { MaxPooling2D({.data_format = "nhwc"}); }), HasSubstr("data_format"));
  EXPECT_THAT(error_of([] {
                Conv2D(4, 6)(ones({1, 4, 4, 3}));
              }),
              HasSubstr("Conv2D"))
      << "a negative output size";
}

TEST(Reshaping, ChecksSizes) {
  EXPECT_THAT(error_of([] {
                Reshape({4})(ones({2, 3}));
              }),
              HasSubstr("total size of the tensor must be unchanged"));
  EXPECT_THAT(error_of([] {
                Reshape({-1, -1});
              }),
              HasSubstr("one size of the target shape may be -1"));
  EXPECT_THAT(error_of([] { Permute({1, 3}); }), HasSubstr("the numbers from 1 to 2"));
  EXPECT_EQ(Flatten()(ones({2, 0, 3})).shape(), (Shape{2, 0}));
  EXPECT_TRUE(all_equal(Rescaling(0.5, 1)(tensor<std::uint8_t>({2, 4})), Tensor{2.0, 3.0}));
}

TEST(Activation, ByNameOrFunction) {
  EXPECT_TRUE(all_equal(Activation("relu")(Tensor{-1.0, 2.0}), Tensor{0.0, 2.0}));
  EXPECT_TRUE(
      all_equal(Activation([](const Tensor& x) { return x * 3; })(Tensor{2.0}), Tensor{6.0}));
  EXPECT_TRUE(all_equal(ReLU({.max_value = 1.0})(Tensor{-1.0, 0.5, 2.0}), Tensor{0.0, 0.5, 1.0}));
  EXPECT_TRUE(all_equal(ReLU({.negative_slope = 0.5, .threshold = 1.0})(Tensor{-1.0, 1.0, 2.0}),
                        Tensor{-1.0, 0.0, 2.0}));
  EXPECT_TRUE(all_equal(LeakyReLU({.negative_slope = 0.5})(Tensor{-2.0, 2.0}), Tensor{-1.0, 2.0}));
  EXPECT_THAT(
      error_of([] { Activation("sigmiod"); }),
      HasSubstr(
          "There is no activation 'sigmiod'. Did you mean 'sigmoid'? Choose one of celu, elu"));
}

TEST(Activation, SparsemaxGivesSharesThatAddUp) {
  // Two classes share, one has nothing: tau = (1.0 + 0.8 - 1) / 2.
  const Tensor y = activations::sparsemax(Tensor{1.0, 0.8, -1.0});
  EXPECT_LT(reduce_max(abs(y - Tensor{0.6, 0.4, 0.0})).item<float>(), 1e-6);
  const Tensor x = random::normal({5, 7}, {.stddev = 2.0, .seed = 1});
  EXPECT_LT(reduce_max(abs(reduce_sum(activations::sparsemax(x), -1) - 1)).item<float>(), 1e-5);
  EXPECT_LT(reduce_max(abs(reduce_sum(activations::sparsemax(x, 0), 0) - 1)).item<float>(), 1e-5);
}

TEST(BatchNormalization, IsFrozenWithItsLayer) {
  const BatchNormalization norm({.momentum = 0.5});
  const Tensor x{{1.0, 2.0}, {3.0, 6.0}};
  norm(x, {.training = true});
  EXPECT_NEAR(norm.get_weights()[2].at<float>({1}), 2.0, 1e-6) << "half of the batch's mean";
  norm.set_trainable(false);
  const Tensor before = norm.get_weights()[2];
  norm(x, {.training = true});
  EXPECT_TRUE(all_equal(norm.get_weights()[2], before));
}

TEST(MultiHeadAttention, LooksAtEarlierPositionsOnlyIfAsked) {
  utils::set_random_seed(2);
  const MultiHeadAttention attention(2, 4);
  Tensor x = random::normal({1, 5, 6});
  const Tensor whole = attention(x, x, {.use_causal_mask = true});
  const Tensor beginning = slice(x, {0, 0, 0}, {1, 3, 6});
  const Tensor part = attention(beginning, beginning, {.use_causal_mask = true});
  const Tensor difference = reduce_max(abs(slice(whole, {0, 0, 0}, {1, 3, 6}) - part));
  EXPECT_LT(difference.item<float>(), 1e-5);
  EXPECT_THAT(error_of([&] { attention(x); }), HasSubstr("self-attention give the same one twice"));
}

TEST(Initializers, RepeatWithASeedAndFollowTheGlobalOne) {
  const initializers::GlorotUniform seeded(7);
  EXPECT_TRUE(all_equal(seeded({4, 4}), seeded({4, 4})));
  const Initializer free = "glorot_uniform";
  EXPECT_FALSE(all_equal(free({4, 4}), free({4, 4})));
  utils::set_random_seed(3);
  const Tensor first = free({4, 4});
  utils::set_random_seed(3);
  EXPECT_TRUE(all_equal(free({4, 4}), first));
  EXPECT_THAT(error_of([] { Initializer("glorot"); }), HasSubstr("Choose one of constant"));
}

TEST(Initializers, OrthogonalIs) {
  for (const Shape& shape : {Shape{4, 4}, Shape{6, 3}, Shape{3, 6}, Shape{2, 3, 4}}) {
    const Tensor q =
        reshape(initializers::Orthogonal({.gain = 2.0, .seed = 1})(shape), {-1, shape.dim(-1)});
    const bool tall = q.dim(0) >= q.dim(1);
    const Tensor product =
        tall ? matmul(q, q, {.transpose_a = true}) : matmul(q, q, {.transpose_b = true});
    const Tensor error = reduce_max(abs(product - eye(product.dim(0)) * 4));
    EXPECT_LT(error.item<float>(), 1e-5) << shape;
  }
  EXPECT_THROW(initializers::Orthogonal()({4}), InvalidArgumentError);
}

TEST(Initializers, WrongResultsAreNoticed) {
  const Initializer wrong = [](const Shape&, DType) { return zeros({1}); };
  EXPECT_THAT(error_of([&] {
                Dense(2, {.kernel_initializer = wrong}).build({-1, 3});
              }),
              HasSubstr("gave float[1] where float[3,2] was asked for"));
}

}  // namespace
}  // namespace tandem::keras
