#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tandem/tandem.h>

// What is known of shapes before any data comes: layers that make weights need it of those before
// them. The shapes expected are those that Keras 3 reports for the same layers.

namespace tandem::keras {
namespace {

struct Case {
  PartialShape input;  // of one example
  std::function<Layer()> make;
  PartialShape output;
};

template <class F>
Case of(const PartialShape& input, F make, const PartialShape& output) {
  return {input, [make] { return Layer(make()); }, output};
}

#define LAYER(...) [] { return __VA_ARGS__; }

std::vector<Case> vectors() {
  return {
      of({3}, LAYER(Dense(4)), {-1, 4}),
      of({3}, LAYER(RepeatVector(4)), {-1, 4, 3}),
      of({3}, LAYER(Activation("relu")), {-1, 3}),
      of({3}, LAYER(ReLU()), {-1, 3}),
      of({3}, LAYER(LeakyReLU()), {-1, 3}),
      of({3}, LAYER(ELU()), {-1, 3}),
      of({3}, LAYER(PReLU()), {-1, 3}),
      of({3}, LAYER(Softmax()), {-1, 3}),
      of({3}, LAYER(Dropout(0.5)), {-1, 3}),
      of({3}, LAYER(AlphaDropout(0.5)), {-1, 3}),
      of({3}, LAYER(GaussianDropout(0.5)), {-1, 3}),
      of({3}, LAYER(GaussianNoise(0.5)), {-1, 3}),
      of({3}, LAYER(ActivityRegularization()), {-1, 3}),
      of({3}, LAYER(Rescaling(2)), {-1, 3}),
      of({3}, LAYER(Identity()), {-1, 3}),
      of({3}, LAYER(Flatten()), {-1, 3}),
      of({6}, LAYER(Reshape({2, -1})), {-1, 2, 3}),
      of({-1}, LAYER(Embedding(9, 4)), {-1, -1, 4}),
      of({5}, LAYER(Embedding(9, 4)), {-1, 5, 4}),
  };
}

std::vector<Case> sequences() {
  const PartialShape some{8, 3}, any{-1, 3};
  return {
      of(any, LAYER(Dense(4)), {-1, -1, 4}),
      of(any, LAYER(ZeroPadding1D({2, 1})), {-1, -1, 3}),
      of(some, LAYER(ZeroPadding1D({2, 1})), {-1, 11, 3}),
      of(any, LAYER(Cropping1D({1, 1})), {-1, -1, 3}),
      of(some, LAYER(Cropping1D({1, 1})), {-1, 6, 3}),
      of(any, LAYER(UpSampling1D(2)), {-1, -1, 3}),
      of(some, LAYER(UpSampling1D(2)), {-1, 16, 3}),
      of(any, LAYER(Conv1D(4, 3)), {-1, -1, 4}),
      of(any, LAYER(Conv1D(4, 3, {.padding = "causal"})), {-1, -1, 4}),
      of(some, LAYER(Conv1D(4, 3, {.padding = "causal", .dilation_rate = 2})), {-1, 8, 4}),
      of(any, LAYER(Conv1DTranspose(4, 3)), {-1, -1, 4}),
      of(some, LAYER(Conv1DTranspose(4, 3, {.strides = 2, .padding = "same"})), {-1, 16, 4}),
      of(some, LAYER(Conv1DTranspose(4, 3)), {-1, 10, 4}),
      of(any, LAYER(DepthwiseConv1D(3, {.depth_multiplier = 2})), {-1, -1, 6}),
      of(any, LAYER(SeparableConv1D(4, 3)), {-1, -1, 4}),
      of(any, LAYER(MaxPooling1D(2)), {-1, -1, 3}),
      of(some, LAYER(MaxPooling1D(2)), {-1, 4, 3}),
      of(any, LAYER(AveragePooling1D(2)), {-1, -1, 3}),
      of(any, LAYER(GlobalMaxPooling1D()), {-1, 3}),
      of(any, LAYER(GlobalAveragePooling1D()), {-1, 3}),
      of(any, LAYER(SimpleRNN(4)), {-1, 4}),
      of(any, LAYER(LSTM(4, {.return_sequences = true})), {-1, -1, 4}),
      of(some, LAYER(LSTM(4, {.return_sequences = true})), {-1, 8, 4}),
      of(any, LAYER(GRU(4, {.return_sequences = true})), {-1, -1, 4}),
      of(some, LAYER(GRU(4, {.return_sequences = true, .unroll = true})), {-1, 8, 4}),
      of(any, LAYER(RNN(StackedRNNCells({LSTMCell(4), GRUCell(5)}), {.return_sequences = true})),
         {-1, -1, 5}),
      of(any, LAYER(Bidirectional(LSTM(4, {.return_sequences = true}))), {-1, -1, 8}),
      of(any, LAYER(TimeDistributed(Dense(4))), {-1, -1, 4}),
      of(some, LAYER(TimeDistributed(Dense(4))), {-1, 8, 4}),
      of(any, LAYER(Masking()), {-1, -1, 3}),
      of(any, LAYER(BatchNormalization()), {-1, -1, 3}),
      of(any, LAYER(LayerNormalization()), {-1, -1, 3}),
      of(any, LAYER(RMSNormalization()), {-1, -1, 3}),
      of(any, LAYER(UnitNormalization()), {-1, -1, 3}),
      of(any, LAYER(GroupNormalization({.groups = 3})), {-1, -1, 3}),
      of(any, LAYER(Softmax({.axis = 1})), {-1, -1, 3}),
      of(some, LAYER(Softmax({.axis = {1, 2}})), {-1, 8, 3}),
      of(any, LAYER(PReLU({.shared_axes = {1}})), {-1, -1, 3}),
      of(any, LAYER(SpatialDropout1D(0.5)), {-1, -1, 3}),
      of(any, LAYER(Permute({2, 1})), {-1, 3, -1}),
      of(some, LAYER(Permute({2, 1})), {-1, 3, 8}),
      of(any, LAYER(Reshape({-1, 3, 1})), {-1, -1, 3, 1}),
      of({-1, 4}, LAYER(Reshape({2, -1, 2})), {-1, 2, -1, 2}),
      of(some, LAYER(Reshape({4, -1})), {-1, 4, 6}),
      of(any, LAYER(Flatten()), {-1, -1}),
      of(some, LAYER(Flatten()), {-1, 24}),
  };
}

std::vector<Case> images() {
  const PartialShape some{8, 8, 3}, any{-1, -1, 3};
  return {
      of(any, LAYER(ZeroPadding2D({{1, 0}, {0, 2}})), {-1, -1, -1, 3}),
      of(some, LAYER(ZeroPadding2D(1)), {-1, 10, 10, 3}),
      of(any, LAYER(Cropping2D(1)), {-1, -1, -1, 3}),
      of(some, LAYER(Cropping2D(1)), {-1, 6, 6, 3}),
      of(any, LAYER(UpSampling2D(2)), {-1, -1, -1, 3}),
      of(some, LAYER(UpSampling2D(2)), {-1, 16, 16, 3}),
      of({8, -1, 3}, LAYER(UpSampling2D({2, 3})), {-1, 16, -1, 3}),
      of(any, LAYER(UpSampling2D({2, 3}, {.interpolation = "bilinear"})), {-1, -1, -1, 3}),
      of({8, -1, 3}, LAYER(UpSampling2D({2, 3}, {.interpolation = "bicubic"})), {-1, 16, -1, 3}),
      of(some, LAYER(UpSampling2D(2, {.interpolation = "lanczos3"})), {-1, 16, 16, 3}),
      of(any, LAYER(Conv2D(4, 3)), {-1, -1, -1, 4}),
      of(any, LAYER(Conv2DTranspose(4, 3, {.strides = 2, .padding = "same"})), {-1, -1, -1, 4}),
      of({-1, 8, 3}, LAYER(Conv2DTranspose(4, 3)), {-1, -1, 10, 4}),
      of(some, LAYER(Conv2DTranspose(4, 3)), {-1, 10, 10, 4}),
      of(any, LAYER(DepthwiseConv2D(3)), {-1, -1, -1, 3}),
      of(any, LAYER(SeparableConv2D(4, 3)), {-1, -1, -1, 4}),
      of(any, LAYER(MaxPooling2D(2)), {-1, -1, -1, 3}),
      of(any, LAYER(AveragePooling2D(2)), {-1, -1, -1, 3}),
      of(any, LAYER(GlobalMaxPooling2D()), {-1, 3}),
      of(any, LAYER(GlobalAveragePooling2D({.keepdims = true})), {-1, 1, 1, 3}),
      of(any, LAYER(SpatialDropout2D(0.5)), {-1, -1, -1, 3}),
      of(any, LAYER(BatchNormalization()), {-1, -1, -1, 3}),
      of(any, LAYER(GroupNormalization({.groups = 3})), {-1, -1, -1, 3}),
      of(any, LAYER(Permute({3, 1, 2})), {-1, 3, -1, -1}),
      of(some, LAYER(Permute({3, 1, 2})), {-1, 3, 8, 8}),
      of({-1, 8, 3}, LAYER(ConvLSTM1D(4, 3, {.return_sequences = true})), {-1, -1, 6, 4}),
      of({-1, 8, 3}, LAYER(TimeDistributed(Conv1D(4, 3))), {-1, -1, 6, 4}),
      of({-1, 8, 3}, LAYER(TimeDistributed(Flatten())), {-1, -1, 24}),
  };
}

std::vector<Case> volumes() {
  const PartialShape some{6, 6, 6, 2}, any{-1, -1, -1, 2};
  return {
      of(any, LAYER(ZeroPadding3D(1)), {-1, -1, -1, -1, 2}),
      of(some, LAYER(ZeroPadding3D(1)), {-1, 8, 8, 8, 2}),
      of(any, LAYER(Cropping3D(1)), {-1, -1, -1, -1, 2}),
      of(any, LAYER(UpSampling3D(2)), {-1, -1, -1, -1, 2}),
      of(some, LAYER(UpSampling3D(2)), {-1, 12, 12, 12, 2}),
      of(any, LAYER(Conv3D(4, 2)), {-1, -1, -1, -1, 4}),
      of(any, LAYER(Conv3DTranspose(4, 2)), {-1, -1, -1, -1, 4}),
      of(some, LAYER(Conv3DTranspose(4, 2, {.strides = 2})), {-1, 12, 12, 12, 4}),
      of(any, LAYER(MaxPooling3D(2)), {-1, -1, -1, -1, 2}),
      of(any, LAYER(AveragePooling3D(2)), {-1, -1, -1, -1, 2}),
      of(any, LAYER(GlobalMaxPooling3D()), {-1, 2}),
      of(any, LAYER(GlobalAveragePooling3D()), {-1, 2}),
      of(any, LAYER(SpatialDropout3D(0.5)), {-1, -1, -1, -1, 2}),
      of({-1, 8, 8, 3}, LAYER(ConvLSTM2D(4, 3)), {-1, 6, 6, 4}),
      of({2, 5, 5, 5, 1}, LAYER(ConvLSTM3D(2, 2)), {-1, 4, 4, 4, 2}),
  };
}

#undef LAYER

// Layers that need sizes of what comes in.
std::vector<std::vector<Layer>> followers(const PartialShape& shape) {
  std::vector<std::vector<Layer>> all;
  if (shape.dim(shape.rank() - 1) >= 0) {
    all = {{Dense(2)}, {BatchNormalization()}, {LayerNormalization()}, {Flatten()}};
    if (shape.rank() == 3) {
      all.push_back({Conv1D(2, 1)});
      all.push_back({LSTM(2)});
    }
    if (shape.rank() == 4) all.push_back({Conv2D(2, 1)});
    if (shape.rank() == 5) all.push_back({Conv3D(2, 1)});
  }
  std::int64_t unknown = 0;
  for (const std::int64_t d : shape.dims()) unknown += d < 0;
  if (unknown == 1) all.push_back({Flatten(), Dense(2)});
  return all;
}

PartialShape with_batch(const PartialShape& example) {
  std::vector<std::int64_t> dims = example.dims();
  dims.insert(dims.begin(), -1);
  return PartialShape(dims);
}

void check(const Case& c) {
  const Layer alone = c.make();
  SCOPED_TRACE(alone.describe() + " of " + c.input.to_string());
  const bool tokens = alone.class_name() == "Embedding";
  const InputOptions options{.dtype = tokens ? int32 : float32};
  EXPECT_EQ(alone(Input(c.input, options)).shape(), c.output);
  if (!tokens) {
    EXPECT_EQ(c.make().compute_output_shape(with_batch(c.input)), c.output);
  }

  std::vector<std::int64_t> sizes = with_batch(c.input).dims();
  for (std::int64_t& d : sizes) d = d < 0 ? 6 : d;
  const Tensor x = tokens ? ones(sizes, int32) : random::normal(sizes);
  const auto first = followers(c.output), second = followers(c.output);
  for (std::size_t i = 0; i < first.size(); ++i) {
    SCOPED_TRACE("and " + first[i][0].describe());
    std::vector<Layer> layers{Input(c.input, options), c.make()};
    layers.insert(layers.end(), first[i].begin(), first[i].end());
    const Sequential known(layers);
    layers = {c.make()};
    layers.insert(layers.end(), second[i].begin(), second[i].end());
    const Sequential found(layers);  // learns its sizes from the data
    EXPECT_TRUE(first[i].back().built());
    const Shape shape = known.predict_on_batch(x).shape();
    EXPECT_EQ(found.predict_on_batch(x).shape(), shape);
  }
}

TEST(StaticShapes, OfVectors) {
  for (const Case& c : vectors()) check(c);
}
TEST(StaticShapes, OfSequences) {
  for (const Case& c : sequences()) check(c);
}
TEST(StaticShapes, OfImages) {
  for (const Case& c : images()) check(c);
}
TEST(StaticShapes, OfVolumes) {
  for (const Case& c : volumes()) check(c);
}

TEST(StaticShapes, OfSeveralInputs) {
  const PartialShape any{-1, -1, 3};
  const KerasTensor a = Input({-1, 3}), b = Input({-1, 3});
  const std::vector<KerasTensor> both{a, b};
  EXPECT_EQ(Add()(both).shape(), any);
  EXPECT_EQ(Subtract()(both).shape(), any);
  EXPECT_EQ(Multiply()(both).shape(), any);
  EXPECT_EQ(Average()(both).shape(), any);
  EXPECT_EQ(Maximum()(both).shape(), any);
  EXPECT_EQ(Minimum()(both).shape(), any);
  EXPECT_EQ(Concatenate()(both).shape(), (PartialShape{-1, -1, 6}));
  EXPECT_EQ(Concatenate({.axis = 1})(both).shape(), any);
  EXPECT_EQ(Dot(2)(both).shape(), (PartialShape{-1, -1, -1}));
  EXPECT_EQ(Attention()(both).shape(), any);
  EXPECT_EQ(AdditiveAttention()(both).shape(), any);
  EXPECT_EQ(MultiHeadAttention(2, 4)(both).shape(), any);
}

}  // namespace
}  // namespace tandem::keras
