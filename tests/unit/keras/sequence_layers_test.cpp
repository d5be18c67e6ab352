#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

// Masks on their way, randomness, errors: what the stored references of recurrent layers and their
// neighbours do not show.

namespace tandem::keras {
namespace {

using testing::HasSubstr;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "no InvalidArgumentError";
}

bool all_close(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return false;
  return reduce_all(math::abs(a - b) <= 1e-5).item<bool>();
}

Tensor mask_of(const Tensor& numbers) { return cast(numbers, DType::kBool); }

struct Statistics {
  double mean = 0;
  double deviation = 0;
};
Statistics statistics_of(const Tensor& x) {
  const std::vector<float> values = x.to_vector<float>();
  const auto n = static_cast<double>(values.size());
  Statistics s;
  for (const float v : values) s.mean += v / n;
  for (const float v : values) s.deviation += (v - s.mean) * (v - s.mean) / n;
  s.deviation = std::sqrt(s.deviation);
  return s;
}

TEST(Masks, ReachTheLayersOfAModelAndTracedCallsAlone) {
  const Embedding embedding(5, 3, {.mask_zero = true});
  const LSTM lstm(2);
  const Tensor padded{{3, 1, 0, 0}};
  const Tensor bare{{3, 1}};
  const Sequential model{Input({-1}, {.dtype = int32}), embedding, lstm};
  EXPECT_TRUE(all_close(model(padded), model(bare)));
  const auto traced = function([&](const Tensor& x) { return lstm(embedding(x)); });
  EXPECT_TRUE(all_close(traced(padded), model(bare)));
  // Eager calls one by one are reported.
  const Tensor mask = embedding.compute_mask(padded);
  EXPECT_TRUE(all_equal(mask, mask_of(Tensor{{1, 1, 0, 0}})));
  EXPECT_TRUE(all_close(lstm(embedding(padded), {.mask = mask}), model(bare)));
  EXPECT_FALSE(all_close(lstm(embedding(padded)), model(bare)));
}

TEST(Masks, EndAtLayersThatDoNotKeepThem) {
  const Tensor x = ones({1, 2, 2});
  const Tensor mask = mask_of(Tensor{{1, 0}});
  EXPECT_TRUE(Dense(3).compute_mask(x, mask).defined());
  EXPECT_FALSE(Dense(3).compute_mask(x).defined());
  EXPECT_FALSE(Flatten().compute_mask(x, mask).defined());
  EXPECT_FALSE(GlobalAveragePooling1D().compute_mask(x, mask).defined());
}

TEST(Masks, OfOtherShapesAreRefused) {
  const LSTM lstm(2);
  const Tensor x = ones({2, 3, 4});
  EXPECT_THAT(error_of([&] { lstm(x, {.mask = mask_of(Tensor{{1, 0}})}); }), HasSubstr("mask"));
  const Dense dense(2);
  const Conv1D conv(2, 2);
  const GlobalAveragePooling1D pool;
  for (const Layer& layer : {Layer(dense), Layer(conv), Layer(pool)}) {
    for (const Tensor& mask : {mask_of(Tensor{{1, 0}}), mask_of(ones({2, 5})), Tensor(true),
                               mask_of(ones({2, 3, 4, 1}))}) {
      EXPECT_THAT(error_of([&] { layer(x, {.mask = mask}); }), HasSubstr("does not fit the input"));
    }
    EXPECT_NO_THROW(layer(x, {.mask = mask_of(ones({2, 3}))}));
  }
  EXPECT_THAT(error_of([&] {
                lstm(x, {.mask = {Tensor{true}, Tensor{true}}});
              }),
              HasSubstr("2 masks for 1 input"));
  EXPECT_THAT(error_of([&] {
                lstm(Input({3, 4}), {.mask = Tensor{true}});
              }),
              HasSubstr("KerasTensors"));
}

TEST(Recurrent, SaysWhichInputDoesNotFit) {
  const LSTM lstm(2);
  const Tensor x = ones({2, 3, 4}), state = zeros({2, 2});
  lstm(x);
  EXPECT_THAT(error_of([&] {
                lstm(ones({2, 3, 5}));
              }),
              HasSubstr("was built for steps of 4 features, but the input has 5"));
  EXPECT_THAT(error_of([&] {
                lstm({x, state, zeros({2, 3})});
              }),
              HasSubstr("first state 2 must be (2, 2), but has shape (2, 3)"));
  EXPECT_THAT(error_of([&] {
                lstm({x, zeros({5, 2}), state});
              }),
              HasSubstr("first state 1 must be (2, 2), but has shape (5, 2)"));
  for (const Layer& layer :
       {Layer(LSTM(3)), Layer(GRU(3)), Layer(SimpleRNN(3)), Layer(Bidirectional(LSTM(3)))}) {
    EXPECT_THAT(error_of([&] { layer(ones({2, 12, 4, 5})); }), HasSubstr("(2, 12, 4, 5)"));
    EXPECT_THROW((Sequential{Input({12, 4, 5}), layer}), InvalidArgumentError);
  }
  const LSTMCell cell(2);
  EXPECT_THAT(error_of([&] {
                cell({ones({2, 4}), zeros({2, 3}), state});
              }),
              HasSubstr("state 1 must be (2, 2), but has shape (2, 3)"));
}

TEST(Recurrent, GoesThroughSequencesOfUnknownLength) {
  utils::set_random_seed(3);
  for (const bool sequences : {false, true}) {
    const Bidirectional layer(GRU(3, {.return_sequences = sequences}));
    const auto traced = function([&](const Tensor& x) { return layer(x); },
                                 {.input_shapes = {PartialShape{-1, -1, 2}}});
    for (const std::int64_t steps : {1, 4}) {
      const Tensor x = random::normal({2, steps, 2});
      EXPECT_TRUE(all_close(traced(x), layer(x)));
    }
  }
}

TEST(Recurrent, TakesAndGivesStates) {
  const LSTM lstm(3, {.return_sequences = true, .return_state = true});
  const Tensor x = random::normal({2, 5, 4});
  const std::vector<Tensor> whole = lstm.outputs({x});
  ASSERT_EQ(whole.size(), 3u);
  const std::vector<Tensor> parts = split(x, IntList{2, 3}, 1);
  const std::vector<Tensor> begin = lstm.outputs({parts[0]});
  const std::vector<Tensor> end = lstm.outputs({parts[1], begin[1], begin[2]});
  EXPECT_TRUE(all_close(concat({begin[0], end[0]}, 1), whole[0]));
  EXPECT_TRUE(all_close(end[2], whole[2]));
  EXPECT_THAT(error_of([&] { lstm.outputs({x, begin[1]}); }), HasSubstr("2 first state"));
}

TEST(Recurrent, DropsTheSameFeaturesInAllSteps) {
  utils::set_random_seed(5);
  const SimpleRNN rnn(4, {.activation = "linear",
                          .use_bias = false,
                          .kernel_initializer = "identity",
                          .recurrent_initializer = "zeros",
                          .dropout = 0.5,
                          .return_sequences = true});
  const Tensor y = rnn(ones({8, 6, 4}), {.training = true});
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < 8; ++i) {
    for (std::int64_t f = 0; f < 4; ++f) {
      zeros += y.at<float>({i, 0, f}) == 0;
      for (std::int64_t t = 1; t < 6; ++t) {
        EXPECT_EQ(y.at<float>({i, t, f}), y.at<float>({i, 0, f}));
      }
    }
  }
  EXPECT_GT(zeros, 4);
  EXPECT_LT(zeros, 28);
}

class RunningSum final : public RNNCellImpl {
 public:
  explicit RunningSum(std::int64_t size) : RNNCellImpl("RunningSum"), size_(size) {
    without_weights();
  }
  std::vector<std::int64_t> state_sizes() const override { return {size_}; }
  std::vector<Tensor> step(const Tensor& x, std::span<const Tensor> states,
                           std::span<const Tensor>) override {
    const Tensor sum = states[0] + x;
    return {sum, sum};
  }

 private:
  std::int64_t size_;
};

TEST(Recurrent, RunsCellsOfOnesOwn) {
  const RNN sums(make_layer<RunningSum>(1), {.return_sequences = true});
  const Tensor x = reshape(Tensor{1.0, 2.0, 3.0}, {1, 3, 1});
  EXPECT_TRUE(all_equal(sums(x), reshape(Tensor{1.0, 3.0, 6.0}, {1, 3, 1})));
  EXPECT_THROW(Bidirectional{sums}, UnimplementedError);
}

TEST(Recurrent, RefusesWhatMakesNoSense) {
  EXPECT_THAT(error_of([] { LSTM(0); }), HasSubstr("units"));
  EXPECT_THAT(error_of([] { GRU(2, {.dropout = 1.5}); }), HasSubstr("dropout"));
  EXPECT_THAT(error_of([] { LSTM(2)(ones({2, 3})); }), HasSubstr("[batch, steps, features]"));
  EXPECT_THAT(error_of([] { LSTM(2)(ones({2, 0, 3})); }), HasSubstr("no steps"));
  EXPECT_THAT(error_of([] { LSTM(2, {.unroll = true})(Input({-1, 3})); }), HasSubstr("unroll"));
  EXPECT_THAT(error_of([] { RNN(Dense(2)); }), HasSubstr("LSTMCell"));
  EXPECT_THAT(error_of([] { StackedRNNCells({}); }), HasSubstr("at least one"));
  EXPECT_THAT(error_of([] { StackedRNNCells({Dense(2)}); }), HasSubstr("LSTMCell"));
  EXPECT_THAT(error_of([] { Bidirectional(Dense(2)); }), HasSubstr("recurrent"));
  EXPECT_THAT(error_of([] { Bidirectional(LSTM(2, {.go_backwards = true})); }),
              HasSubstr("backward_layer"));
  EXPECT_THAT(error_of([] { Bidirectional(LSTM(2), {.backward_layer = LSTM(2)}); }),
              HasSubstr("go_backwards"));
  EXPECT_THAT(error_of([] { Bidirectional(LSTM(2), {.merge_mode = "max"}); }),
              HasSubstr("'concat'"));
  EXPECT_THAT(error_of([] { TimeDistributed(Dense(2))(ones({2, 3})); }), HasSubstr("min_ndim=3"));
  EXPECT_THAT(error_of([] { ConvLSTM2D(2, 3)(ones({1, 2, 2, 4, 1})); }), HasSubstr("\"same\""));
  EXPECT_THAT(error_of([] { ConvLSTM2D(2, 3, {.strides = 2, .dilation_rate = 2}); }),
              HasSubstr("dilation_rate"));
}

TEST(Noise, KeepsWhatItPromises) {
  utils::set_random_seed(7);
  const Tensor x = random::normal({100, 1000});
  const CallOptions training{.training = true};
  const Statistics alpha = statistics_of(AlphaDropout(0.3)(x, training));
  EXPECT_NEAR(alpha.mean, 0, 0.02);
  EXPECT_NEAR(alpha.deviation, 1, 0.02);
  const Statistics gauss = statistics_of(GaussianDropout(0.2)(ones({100, 1000}), training));
  EXPECT_NEAR(gauss.mean, 1, 0.01);
  EXPECT_NEAR(gauss.deviation, 0.5, 0.01);
  EXPECT_THAT(error_of([] { GaussianDropout(1.0); }), HasSubstr("`rate`"));
  EXPECT_THAT(error_of([] { AlphaDropout(-1); }), HasSubstr("`rate`"));
}

TEST(Noise, SpatialDropoutDropsWholeChannels) {
  utils::set_random_seed(9);
  const CallOptions training{.training = true};
  const Tensor y = SpatialDropout1D(0.5)(ones({10, 6, 8}), training);
  for (std::int64_t i = 0; i < 10; ++i) {
    for (std::int64_t c = 0; c < 8; ++c) {
      for (std::int64_t t = 1; t < 6; ++t)
        EXPECT_EQ(y.at<float>({i, t, c}), y.at<float>({i, 0, c}));
    }
  }
  const Tensor first =
      SpatialDropout2D(0.5, {.data_format = "channels_first"})(ones({10, 8, 3, 3}), training);
  const std::vector<float> sums = reduce_sum(first, {2, 3}).to_vector<float>();
  EXPECT_TRUE(std::all_of(sums.begin(), sums.end(), [](float s) { return s == 0 || s == 18; }));
  EXPECT_GT(std::count(sums.begin(), sums.end(), 0.0f), 10);
  EXPECT_EQ(SpatialDropout3D(0.5)(ones({2, 3, 3, 3, 4}), training).shape(), (Shape{2, 3, 3, 3, 4}));
  EXPECT_THAT(error_of([&] {
                SpatialDropout2D(0.5)(ones({2, 3}), training);
              }),
              HasSubstr("noise_shape"));
}

TEST(Attention, GivesScores) {
  const Tensor x = random::normal({2, 3, 4});
  const std::vector<Tensor> plain = Attention().outputs({x, x}, {.return_attention_scores = true});
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_TRUE(all_close(reduce_sum(plain[1], {-1}), ones({2, 3})));
  const std::vector<Tensor> heads =
      MultiHeadAttention(2, 3).outputs({x, x}, {.return_attention_scores = true});
  EXPECT_EQ(heads.at(1).shape(), (Shape{2, 2, 3, 3}));
  EXPECT_THAT(error_of([&] { Attention()(x); }), HasSubstr("{query, value}"));
  EXPECT_THAT(error_of([] { Attention({.score_mode = "cosine"}); }), HasSubstr("'dot'"));
  EXPECT_THAT(error_of([] { MultiHeadAttention(1, 1, {.sliding_window = 0}); }),
              HasSubstr("sliding_window"));
}

TEST(Dot, RefusesAxesThatDoNotFit) {
  EXPECT_THAT(error_of([] { Dot(1)({ones({2, 3}), ones({2, 4})}); }), HasSubstr("3 (at axis 1)"));
  EXPECT_THAT(error_of([] { Dot(0)({ones({2, 3}), ones({2, 3})}); }), HasSubstr("after the batch"));
  EXPECT_THAT(error_of([] { Dot(1)(std::vector<Tensor>{ones({2, 3})}); }), HasSubstr("2 inputs"));
}

TEST(Normalizations, RefuseWhatDoesNotFit) {
  EXPECT_THAT(error_of([] {
                GroupNormalization({.groups = 3})(ones({2, 4}));
              }),
              HasSubstr("3 groups"));
  EXPECT_THAT(error_of([] { GroupNormalization({.groups = 0}); }), HasSubstr("groups"));
  EXPECT_THAT(error_of([] {
                PReLU({.shared_axes = {3}})(ones({2, 4}));
              }),
              HasSubstr("shared_axes"));
  EXPECT_THAT(error_of([] { RepeatVector(0); }), HasSubstr("n must be positive"));
}

TEST(Margins, TakeBracesAsUsersWriteThem) {
  const Tensor x = ones({1, 2, 3, 1});
  EXPECT_EQ(ZeroPadding2D({{1, 0}, {2, 2}})(x).shape(), (Shape{1, 3, 7, 1}));
  EXPECT_EQ(ZeroPadding2D({1, 2})(x).shape(), (Shape{1, 4, 7, 1}));
  EXPECT_EQ(Cropping2D({{1, 0}, {0, 1}})(x).shape(), (Shape{1, 1, 2, 1}));
  EXPECT_EQ(ZeroPadding3D({{0, 0}, {1, 0}, {2, 2}})(ones({1, 1, 1, 1, 1})).shape(),
            (Shape{1, 1, 2, 5, 1}));
}

}  // namespace
}  // namespace tandem::keras
