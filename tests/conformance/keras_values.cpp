// Computes cases of layers, losses, metrics and optimizers and writes them to an .npz file:
// keras_values OUT. check_keras_values.py, which has the same names, computes them with the real
// Keras, and compares.

#include <cmath>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "tandem/tandem.h"

namespace td = tandem;
namespace keras = td::keras;
using td::Tensor;

namespace {

std::map<std::string, Tensor> found;

// Equal numbers on both sides: sin(1.7 i + 0.3 + seed).
Tensor numbers(const std::vector<std::int64_t>& shape, double seed = 0) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + 0.3 + seed)));
  return td::reshape(Tensor(values), shape);
}

void add(const std::string& name, const std::vector<Tensor>& results) {
  for (std::size_t i = 0; i < results.size(); ++i)
    found[name + " " + std::to_string(i)] = results[i];
}

// The result, and the gradients towards inputs and weights, which get the values of `numbers`.
void layer(const std::string& name, const keras::Layer& made, const std::vector<Tensor>& inputs,
           const keras::CallOptions& options = {}) {
  made.outputs(inputs, options);  // builds
  int number = 10;
  for (const td::Variable& weight : made.weights())
    weight.assign(numbers(weight.shape().dims(), number++));
  td::GradientTape tape({.persistent = true});
  for (const Tensor& x : inputs) tape.watch(x);
  const Tensor y = made.outputs(inputs, options).front();
  const Tensor loss = td::reduce_sum(td::square(y));
  std::vector<Tensor> results{y};
  for (const Tensor& gradient : tape.gradient(loss, inputs)) results.push_back(gradient);
  for (const Tensor& gradient :
       tape.gradient(td::reduce_sum(td::square(y)), made.trainable_weights()))
    results.push_back(gradient);
  add(name, results);
}

void layers() {
  using namespace td::keras;
  const Tensor x3 = numbers({2, 7, 3}), x4 = numbers({2, 5, 7, 3}), x5 = numbers({1, 4, 5, 6, 2});
  layer("AdaptiveAveragePooling1D", AdaptiveAveragePooling1D(3), {x3});
  layer("AdaptiveAveragePooling2D", AdaptiveAveragePooling2D({2, 3}), {x4});
  layer("AdaptiveAveragePooling3D", AdaptiveAveragePooling3D(2), {x5});
  layer("AdaptiveMaxPooling1D", AdaptiveMaxPooling1D(3), {x3});
  layer("AdaptiveMaxPooling2D", AdaptiveMaxPooling2D({2, 3}), {x4});
  layer("AdaptiveMaxPooling3D", AdaptiveMaxPooling3D(2), {x5});
  layer("EinsumDense",
        EinsumDense("abc,cd->abd", {-1, 4}, {.activation = "tanh", .bias_axes = "d"}), {x3});
  layer("EinsumDense dots", EinsumDense("...x,xy->...y", {4}, {.bias_axes = "y"}), {x3});
  layer("EinsumDense heads", EinsumDense("abc,cde->abde", {-1, 2, 3}, {.bias_axes = "de"}), {x3});
  layer("GroupQueryAttention", GroupQueryAttention(4, 4, 2), {x3, numbers({2, 5, 3}, 3)});
  layer("GroupQueryAttention causal", GroupQueryAttention(4, 2, 1), {x3, x3},
        {.use_causal_mask = true});
  const ReversibleEmbedding embedding(6, 3, {.logit_soft_cap = 5.0});
  embedding.build({2, 3});
  embedding.weights()[0].assign(numbers({6, 3}, 10));
  add("ReversibleEmbedding",
      {embedding(Tensor{{1, 5}, {0, 2}}), embedding.reverse(numbers({2, 4, 3}))});
  const Layer dense = Dense(4);
  const SpectralNormalization normal(dense);
  normal.build({2, 3});
  dense.weights()[0].assign(numbers({3, 4}, 10));
  td::Variable u;
  for (const td::Variable& weight : normal.weights())
    if (weight.name().ends_with("vector_u")) u = weight;
  u.assign(numbers({1, 4}, 11));
  const Tensor normalized = normal(numbers({2, 3}), {.training = true});
  add("SpectralNormalization", {normalized, dense.weights()[0].value(), u.value()});
  add("HashedCrossing",
      {HashedCrossing(5)({Tensor{"A", "B", "A"}, Tensor{101, 101, 102}}),
       HashedCrossing(4, {.output_mode = "one_hot"})({Tensor{{"A"}, {"B"}}, Tensor{{1}, {2}}})});
  const Tensor image = td::abs(numbers({2, 8, 8, 3})) * 255.0;
  const CallOptions training{.training = true};
  add("colors", {RandomSaturation(ShareRange(0.3, 0.3))(td::abs(numbers({2, 8, 8, 3})), training),
                 RandomColorDegeneration(ShareRange(0.4, 0.4))(image, training),
                 RandomSharpness(ShareRange(0.8, 0.8))(image, training),
                 RandomPosterization(3, 3)(image, training), Solarization()(image, training),
                 AutoContrast()(image, training), Equalization()(image, training),
                 RandomHue(0.0)(image, training), RandomGaussianBlur({.seed = 1})(image),
                 RandomShear(0.0, 0.0)(image, training)});
}

void preprocessing() {
  using namespace td::keras;
  const Tensor sound = numbers({2, 600, 2}), image = td::abs(numbers({2, 11, 14, 3})) * 255.0;
  for (const char* mode : {"log", "magnitude", "psd", "real", "imag", "stft"}) {
    add(std::string("STFTSpectrogram ") + mode,
        {STFTSpectrogram({.mode = mode, .frame_length = 64, .window = "hamming"})(sound)});
  }
  add("STFTSpectrogram",
      {STFTSpectrogram({.mode = "magnitude",
                        .frame_length = 50,
                        .frame_step = 20,
                        .fft_length = 64,
                        .periodic = true,
                        .scaling = "spectrum",
                        .padding = "same",
                        .expand_dims = true})(sound),
       STFTSpectrogram({.mode = "stft", .frame_length = 32, .window = "boxcar", .scaling = ""})(
           sound),
       STFTSpectrogram({.mode = "psd", .frame_length = 32, .expand_dims = true})(sound)});
  // Angles of almost nothing are noise, so that they count by their magnitude.
  const Tensor angle = STFTSpectrogram({.mode = "angle", .frame_length = 16})(sound);
  const Tensor magnitude = STFTSpectrogram({.mode = "magnitude", .frame_length = 16})(sound);
  add("STFTSpectrogram angle", {td::sin(angle) * magnitude, td::cos(angle) * magnitude});
  namespace init = keras::initializers;
  const td::Shape kernel{9, 1, 9};
  add("STFT 0", {init::STFT("imag", {.window = "hann", .periodic = true})(kernel)});
  add("STFT 1", {init::STFT("imag", {.window = "blackman"})(kernel)});
  add("STFT 2", {init::STFT("imag", {.window = "bartlett", .periodic = true})(kernel)});
  const Tensor voice = sound[{td::ellipsis, 0}];
  add("MelSpectrogram",
      {MelSpectrogram({.fft_length = 256, .sequence_stride = 64, .num_mel_bins = 12})(voice),
       MelSpectrogram({.fft_length = 128,
                       .sequence_stride = 50,
                       .sequence_length = 100,
                       .window = "hamming",
                       .num_mel_bins = 8,
                       .max_freq = 6000,
                       .power_to_db = false,
                       .mag_exp = 1})(voice[0])});
  using Clahe = ContrastLimitedAdaptiveHistogramEqualization;
  add("CLAHE", {Clahe()(image), Clahe({.clip_limit = 1.5, .tile_grid_size = {2, 3}})(image),
                Clahe({.max_value = 1, .clip_limit = 0, .tile_grid_size = 4})(image[0] / 255.0)});
  add("RandomElasticTransform", {RandomElasticTransform({.factor = 0.0})(image, {.training = true}),
                                 RandomElasticTransform({.seed = 1})(image)});
  const Tensor boxes{{{10.0, 20.0, 100.0, 150.0}, {5.0, 6.0, 20.0, 25.0}, {0.0, 0.0, 5.0, 5.0}}};
  for (const int i : {0, 1}) {
    add("MaxNumBoundingBoxes " + std::to_string(i),
        MaxNumBoundingBoxes(i == 0 ? 2 : 5).outputs({boxes, Tensor{{1, 2, 3}}}));
  }
  const std::vector<std::pair<int, int>> sizes{{6, 20}, {20, 6}, {22, 28}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto [height, width] = sizes[i];
    add("Resizing " + std::to_string(i),
        {Resizing(height, width, {.pad_to_aspect_ratio = true, .fill_value = 7})(image),
         Resizing(height, width,
                  {.interpolation = "nearest", .pad_to_aspect_ratio = true})(image[0])});
  }
  const Tensor words{{"a", "b", "a", "d"}, {"b", "c", "?", "a"}};
  struct Case {
    std::optional<std::int64_t> max_tokens;
    bool pad;
    bool mask;
  };
  const std::vector<Case> cases{{std::nullopt, false, false}, {9, true, false}, {3, true, true}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [count, padded, masked] = cases[i];
    StringLookupOptions learnt{
        .max_tokens = count, .output_mode = "tf_idf", .pad_to_max_tokens = padded};
    if (masked) learnt.mask_token = "";
    const StringLookup made(learnt);
    made.adapt(words);
    const StringLookup given({.vocabulary = {"a", "b"},
                              .idf_weights = {0.5, 0.25},
                              .max_tokens = count,
                              .output_mode = "tf_idf",
                              .pad_to_max_tokens = padded});
    const IntegerLookup integers(
        {.max_tokens = count, .output_mode = "tf_idf", .pad_to_max_tokens = padded});
    integers.adapt(Tensor{1, 5, 5, 9, 1, 5});
    add("tf_idf " + std::to_string(i),
        {made(words), given(words), integers(Tensor{{1, 5, 77}, {9, 9, 1}})});
  }
  const std::vector<std::string> modes{"multi_hot", "count", "one_hot"};
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const StringLookup made({.vocabulary = {"a", "b"},
                             .max_tokens = 9,
                             .output_mode = modes[i],
                             .pad_to_max_tokens = true});
    Tensor second = made(words);
    if (modes[i] != "one_hot") {
      second = TextVectorization({.max_tokens = 9,
                                  .output_mode = modes[i],
                                  .pad_to_max_tokens = true,
                                  .vocabulary = {"a", "b"}})(Tensor{"a b a", "c"});
    }
    add("padded " + std::to_string(i), {made(words), second});
  }
}

void bounding_boxes() {
  namespace b = td::keras::utils::bounding_boxes;
  const Tensor boxes{{{10.0, 20.0, 100.0, 150.0}, {5.0, 6.0, 20.0, 25.0}, {-4.0, 0.0, 5.0, 300.0}}};
  const Tensor others{
      {{12.0, 22.0, 90.0, 130.0}, {500.0, 600.0, 700.0, 800.0}, {-1.0, -1.0, -1.0, -1.0}}};
  const b::ImageSize size{200, 300};
  for (const std::string source : {"xyxy", "yxyx", "xywh", "center_xywh", "center_yxhw"}) {
    for (const std::string target : {"yxyx", "xywh", "center_xywh", "center_yxhw", "rel_xyxy",
                                     "rel_yxyx", "rel_xywh", "rel_center_xywh"}) {
      const Tensor there = b::convert_format(boxes, source, target, size);
      add("convert " + source + " " + target,
          {there, b::convert_format(there, target, source, size)});
    }
  }
  const b::LabeledBoxes cut = b::clip_to_image_size({boxes, Tensor{{1, 2, 3}}}, {100, 8});
  const Tensor chosen = td::gather(others, Tensor{0, 1, 1}, 1);
  add("boxes",
      {cut.boxes, cut.labels, b::crop(boxes, 10, 5, 50, 60), b::pad(boxes, 3, 4),
       b::affine_transform(boxes, size,
                           {.angle = 30.0F,
                            .translate_x = 0.1F,
                            .translate_y = -0.2F,
                            .scale = 1.5F,
                            .shear_x = 5.0F,
                            .shear_y = -7.0F,
                            .center_x = 0.4,
                            .center_y = 0.6}),
       b::encode_box_to_deltas(boxes[0], chosen,
                               {.box_format = "xywh", .variance = {{0.1, 0.1, 0.2, 0.2}}}),
       b::decode_deltas_to_boxes(
           boxes[0], others / 1000.0,
           {.box_format = "rel_yxyx", .encoding_format = "center_xywh", .image_size = size}),
       b::compute_iou(boxes, others, "xyxy"),
       b::compute_iou(boxes[0], others[0], "xyxy", {.use_masking = true}),
       b::compute_iou(boxes / 300.0, others / 300.0, "rel_yxyx", {.image_size = size}),
       b::compute_ciou(boxes, others, "xywh")});
}

void losses() {
  namespace l = td::keras::losses;
  const Tensor y{0, 2, 1, 2}, p = td::nn::softmax(numbers({4, 3}));
  const Tensor e = td::math::l2_normalize(numbers({4, 5}), {1});
  const Tensor labels{{1, 2, 0}, {2, 2, 1}};
  add("losses", {l::CategoricalGeneralizedCrossEntropy()(y, p),
                 l::categorical_generalized_cross_entropy(y, p, 0.3), l::Circle({.gamma = 2})(y, e),
                 l::circle(y, e, {.gamma = 2}), l::CTC()(labels, numbers({2, 8, 4})),
                 l::ctc(labels, numbers({2, 8, 4}))});
}

void metrics() {
  namespace m = td::keras::metrics;
  const Tensor labels{0.0, 0.0, 1.0, 1.0, 1.0, 0.0}, scores{0.0, 0.3, 0.8, 0.4, 0.9, 0.6};
  const std::map<std::string, keras::Metric> all{
      {"a", m::SensitivityAtSpecificity(0.5)},
      {"b", m::SpecificityAtSensitivity(0.5)},
      {"c", m::PrecisionAtRecall(0.6)},
      {"d", m::RecallAtPrecision(0.8)},
      {"e", m::PrecisionAtRecall(0.3, {.num_thresholds = 1})}};
  for (const auto& [name, metric] : all) {
    metric.update_state(labels, scores, Tensor{1.0, 2.0, 1.0, 1.0, 2.0, 1.0});
    add("points " + name, {metric.result()});
  }
}

void optimizers() {
  namespace o = td::keras::optimizers;
  const std::map<std::string, keras::Optimizer> all{
      {"ScheduleFreeAdamW",
       o::ScheduleFreeAdamW({.learning_rate = 0.01, .warmup_steps = 2, .weight_decay = 0.1})},
      {"accumulation", o::Adam({.learning_rate = 0.01,
                                .weight_decay = 0.1,
                                .clipnorm = 1.0,
                                .gradient_accumulation_steps = 2})},
      {"average", o::SGD({.learning_rate = 0.1,
                          .momentum = 0.9,
                          .use_ema = true,
                          .ema_momentum = 0.8,
                          .ema_overwrite_frequency = 3})},
      {"scale", o::RMSprop({.learning_rate = 0.01, .loss_scale_factor = 4.0})}};
  for (const auto& [name, optimizer] : all) {
    const td::Variable w(numbers({3, 4})), b(numbers({4}, 1));
    for (int step = 0; step < 5; ++step)
      optimizer.apply_gradients({{numbers({3, 4}, 2 + step), w}, {numbers({4}, 5 + step), b}});
    add("optimizer " + name,
        {w.value(), b.value(), td::cast(Tensor(optimizer.iterations()), td::int64)});
  }
  const keras::Dense dense(
      3, {.kernel_constraint = keras::constraints::MaxNorm(0.5), .bias_constraint = "non_neg"});
  dense.build({2, 4});
  const std::vector<td::Variable> weights = dense.weights();
  weights[0].assign(numbers({4, 3}, 10));
  weights[1].assign(numbers({3}, 11));
  o::SGD(0.1).apply_gradients({{numbers({4, 3}, 1), weights[0]}, {numbers({3}, 2), weights[1]}});
  add("constraints", {weights[0].value(), weights[1].value()});
  namespace r = td::keras::regularizers;
  add("regularizers", {r::OrthogonalRegularizer(0.1)(numbers({3, 4})),
                       r::OrthogonalRegularizer(0.1, "columns")(numbers({3, 4}))});
}

void applications() {
  namespace u = td::keras::applications::imagenet_utils;
  const Tensor x = td::abs(numbers({2, 4, 4, 3})) * 255.0;
  add("preprocess_input",
      {u::preprocess_input(x, {.mode = "caffe"}), u::preprocess_input(x, {.mode = "tf"}),
       u::preprocess_input(x, {.mode = "torch"}),
       u::preprocess_input(td::transpose(x, {0, 3, 1, 2}),
                           {.data_format = "channels_first", .mode = "torch"})});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    layers();
    preprocessing();
    bounding_boxes();
    losses();
    metrics();
    optimizers();
    applications();
    td::io::save_npz(argv[1], found);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
