#pragma once

// Cases of keras.ops for api_values.cpp, which includes this file where its helpers are known.

void keras_ops_cases() {
  namespace ops = td::keras::ops;
  const Tensor x = numbers({3, 4}), y = numbers({3, 4}, 1), ints{{7, -3, 2}, {0, 5, 6}};
  using Unary = Tensor (*)(const Tensor&);
  const std::map<std::string, Unary> of_small{{"abs", ops::abs},
                                              {"arccos", ops::arccos},
                                              {"arcsinh", ops::arcsinh},
                                              {"arctanh", ops::arctanh},
                                              {"cbrt", ops::cbrt},
                                              {"ceil", ops::ceil},
                                              {"deg2rad", ops::deg2rad},
                                              {"exp2", ops::exp2},
                                              {"expm1", ops::expm1},
                                              {"i0", ops::i0},
                                              {"rad2deg", ops::rad2deg},
                                              {"isfinite", ops::isfinite},
                                              {"isneginf", ops::isneginf},
                                              {"signbit", ops::signbit},
                                              {"sinc", ops::sinc},
                                              {"trunc", ops::trunc},
                                              {"hard_swish", ops::hard_swish},
                                              {"log_sigmoid", ops::log_sigmoid},
                                              {"silu", ops::silu},
                                              {"selu", ops::selu}};
  for (const auto& [name, f] : of_small) add("ops " + name, {f(x)});
  const std::map<std::string, Unary> of_positive{
      {"log10", ops::log10}, {"log2", ops::log2}, {"log1p", ops::log1p}, {"sqrt", ops::sqrt}};
  for (const auto& [name, f] : of_positive) add("ops " + name, {f(ops::abs(ints) + 1)});
  using Binary = Tensor (*)(td::Operand, td::Operand);
  const std::map<std::string, Binary> of_two{{"add", ops::add},
                                             {"subtract", ops::subtract},
                                             {"multiply", ops::multiply},
                                             {"divide", ops::divide},
                                             {"floor_divide", ops::floor_divide},
                                             {"mod", ops::mod},
                                             {"maximum", ops::maximum},
                                             {"hypot", ops::hypot},
                                             {"logaddexp", ops::logaddexp},
                                             {"arctan2", ops::arctan2},
                                             {"heaviside", ops::heaviside},
                                             {"fmax", ops::fmax},
                                             {"greater", ops::greater},
                                             {"isclose", [](td::Operand a, td::Operand b) {
                                                return ops::isclose(std::move(a), std::move(b));
                                              }}};
  for (const auto& [name, f] : of_two) {
    add("ops " + name, {f(x, y)});
    add("ops " + name + " mixed", {f(td::cast(x * 3.0, td::int32), y)});
  }
  add("ops gcd", {ops::gcd(Tensor{12, 18, 0}, Tensor{8, 27, 5}),
                  ops::lcm(Tensor{12, 18, 0}, Tensor{8, 27, 5})});
  add("ops ints", {ops::divide(ints, 2), ops::add(ints, 0.5), ops::multiply(ints, ints),
                   ops::sqrt(ops::abs(ints)), ops::power(ints, 2)});
  add("ops round", {ops::round(x, 2), ops::clip(x, -0.5, 0.5), ops::nan_to_num(x / 0.0)});
}

void keras_array_cases() {
  namespace ops = td::keras::ops;
  const Tensor x = numbers({3, 4}), cube = numbers({2, 3, 4}), ints{{7, -3, 2}, {0, 5, 6}};
  add("ops made",
      {ops::linspace(0, 1, 5), ops::linspace(0, 1, 5, false), ops::logspace(0, 2, 4),
       ops::geomspace(1, 8, 4), ops::tri(3, 4, 1), ops::vander(Tensor{1.0, 2.0, 3.0}),
       ops::bartlett(5), ops::blackman(5), ops::hamming(5), ops::hanning(5), ops::kaiser(5, 3)});
  add("ops moved", {ops::swapaxes(cube, 0, 2), ops::moveaxis(cube, 0, -1), ops::flip(x),
                    ops::rot90(x), ops::rot90(x, 3), ops::roll(x, 2), ops::roll(x, 1, 1),
                    ops::repeat(x, 2, 1), ops::diag(Tensor{1, 2}, 1), ops::diagonal(x, 1),
                    ops::tril(x, -1), ops::triu(x, 1), ops::tile(x, {2})});
  add("ops joined",
      {ops::append(x, ints), ops::hstack({Tensor{1, 2}, Tensor{3}}),
       ops::vstack({Tensor{1, 2}, Tensor{3, 4}}), ops::dstack({Tensor{1, 2}, Tensor{3, 4}})});
  add("ops array_split", ops::array_split(Tensor{1, 2, 3, 4, 5}, 2));
  add("ops split", ops::split(Tensor{1, 2, 3, 4, 5}, {1, 3}));
  add("ops taken", {ops::take(x, Tensor{0, -1}, 1), ops::take(x, Tensor{5, -1}),
                    ops::take_along_axis(x, ops::argsort(x, 0), 0),
                    ops::take_along_axis(x, ops::argsort(x, 1), 1),
                    ops::slice_update(x, {1, 1}, td::ones({2, 2})), ops::unique(ints),
                    ops::isin(ints, Tensor{2, 7}), ops::digitize(x, Tensor{-0.5, 0.0, 0.5}),
                    ops::searchsorted(Tensor{1, 3, 5}, Tensor{3, 4}, "right"),
                    ops::one_hot(Tensor{0, 2}, 3), ops::multi_hot(Tensor{{0, 2}, {1, 1}}, 3)});
  add("ops nonzero", ops::nonzero(ints));
  const Tensor holes = ops::where(x > 0.5, std::nan(""), x);
  using Reduction = Tensor (*)(const Tensor&, td::Axes, bool);
  const std::map<std::string, Reduction> reductions{
      {"mean", ops::mean},     {"sum", ops::sum},   {"std", ops::std}, {"var", ops::var},
      {"median", ops::median}, {"prod", ops::prod}, {"max", ops::max}, {"all", ops::all}};
  for (const auto& [name, f] : reductions) {
    add("ops " + name, {f(x, {}, false), f(cube, {0, 2}, true), f(ints, 1, false)});
  }
  const std::map<std::string, Reduction> without_nan{{"nanmax", ops::nanmax},
                                                     {"nanmean", ops::nanmean},
                                                     {"nansum", ops::nansum},
                                                     {"nanvar", ops::nanvar}};
  for (const auto& [name, f] : without_nan) add("ops " + name, {f(holes, 1, false)});
  add("ops reduced",
      {ops::quantile(x, Tensor{0.25, 0.5}, 1), ops::percentile(x, Tensor(30.0f)), ops::argmax(x),
       ops::argmin(x, 1), ops::cumsum(x), ops::cumprod(x, 1), ops::diff(x), ops::trapezoid(x),
       ops::corrcoef(x), ops::correlate(Tensor{1.0, 2.0, 3.0}, Tensor{0.0, 1.0, 0.5}, "same"),
       ops::correlate(Tensor{1.0, 2.0, 3.0}, Tensor{0.0, 1.0, 0.5}, "full"),
       ops::average(x, 1, Tensor{1.0, 2.0, 3.0, 4.0}), ops::bincount(Tensor{1, 1, 3}),
       ops::count_nonzero(ints, 1)});
}

void keras_network_cases() {
  namespace ops = td::keras::ops;
  const Tensor x = numbers({3, 4}), y = numbers({4, 2}, 1), image = numbers({2, 6, 6, 3});
  add("ops products",
      {ops::matmul(x, y), ops::dot(x, y), ops::inner(x, numbers({2, 4})),
       ops::outer(Tensor{1, 2}, Tensor{3, 4}), ops::kron(x, y),
       ops::cross(numbers({2, 3}), numbers({2, 3}, 1)), ops::trace(x, 1), ops::vdot(x, x)});
  const Tensor square = numbers({3, 3}) + td::eye(3) * 2.0;
  add("ops linalg", {ops::norm(x), ops::norm(x, 2, 1), ops::normalize(x), ops::normalize(x, 0, 3),
                     ops::solve_triangular(square, numbers({3, 2}))});
  add("ops conv", {ops::conv(image, numbers({3, 3, 3, 2}, 1), 2, "same"),
                   ops::conv_transpose(image, numbers({3, 3, 2, 3}, 1), 2, "same"),
                   ops::conv_transpose(image, numbers({3, 3, 2, 3}, 1), 2, "valid"),
                   ops::depthwise_conv(image, numbers({3, 3, 3, 1}, 1)), ops::max_pool(image, 2),
                   ops::average_pool(image, 2, {}, "same"), ops::adaptive_average_pool(image, 4),
                   ops::adaptive_max_pool(image, {2, 3})});
  const Tensor first = numbers({1, 2, 5, 5});
  const Tensor columns = ops::unfold(first, 3);
  add("ops unfold", {columns, ops::fold(columns, 5, 3)});
  const Tensor q = numbers({2, 4, 2, 3}), k = numbers({2, 4, 2, 3}, 1),
               v = numbers({2, 4, 2, 3}, 2);
  add("ops normalized",
      {ops::layer_normalization(x, td::ones({4}), td::zeros({4})), ops::rms_normalization(x),
       ops::dot_product_attention(q, k, v), ops::dot_product_attention(q, k, v, {}, {}, {}, true),
       ops::batch_normalization(x, td::zeros({4}), td::ones({4}) * 2.0)});
  const Tensor p = td::nn::softmax(x);
  add("ops losses", {ops::binary_crossentropy(td::cast(x > 0, td::float32), p),
                     ops::categorical_crossentropy(td::one_hot({0, 2, 1}, 4), p),
                     ops::sparse_categorical_crossentropy(Tensor{0, 2, 1}, p)});
  const auto spectrum = ops::stft(numbers({2, 32}), 8, 4, 16);
  add("ops stft", {spectrum.first, spectrum.second, ops::istft(spectrum, 8, 4, 16)});
}

void keras_training_cases() {
  using namespace td::keras;
  // Three steps of each optimizer on a matrix and a vector.
  const std::map<std::string, std::function<Optimizer()>> all{
      {"Lion", [] { return optimizers::Lion(0.01); }},
      {"Ftrl",
       [] {
         return optimizers::Ftrl({.learning_rate = 0.1,
                                  .l1_regularization_strength = 0.01,
                                  .l2_regularization_strength = 0.02});
       }},
      {"Lamb", [] { return optimizers::Lamb(0.01); }},
      {"Adafactor", [] { return optimizers::Adafactor(0.01); }},
      {"Muon", [] { return optimizers::Muon(0.01); }}};
  for (const auto& [name, make] : all) {
    const Optimizer optimizer = make();
    const td::Variable w(numbers({3, 4})), b(numbers({4}, 1));
    for (int step = 0; step < 3; ++step)
      optimizer.apply_gradients({{numbers({3, 4}, 2 + step), w}, {numbers({4}, 5 + step), b}});
    add("optimizer " + name, {w.value(), b.value()});
  }
  const Tensor x = numbers({3, 4});
  add("constraints", {constraints::MaxNorm(0.5)(x), constraints::MinMaxNorm(0.2, 0.6, 0.5)(x),
                      constraints::NonNeg()(x), constraints::UnitNorm()(x)});
}

void keras_preprocessing_cases() {
  using namespace td::keras;
  const Tensor x = numbers({6, 3});
  const Normalization normalization;
  normalization.adapt(x);
  const Normalization whole({.axis = std::nullopt});
  whole.adapt(x);
  const Normalization given({.axis = std::nullopt, .mean = {{1.0}}, .variance = {{4.0}}});
  add("layer Normalization", {normalization(x), whole(x), given(x)});
  const Discretization bins({.bin_boundaries = {-0.5f, 0, 0.5f}});
  const Discretization learnt({.num_bins = 4});
  learnt.adapt(numbers({50}));
  add("layer Discretization", {bins(x), learnt(x)});
  const Tensor ids{{0, 2}, {1, 1}};
  add("layer CategoryEncoding", {CategoryEncoding({.num_tokens = 3})(ids),
                                 CategoryEncoding({.num_tokens = 3, .output_mode = "count"})(ids)});
  const Tensor words{"a", "b", "c", "b", ""};
  add("layer Hashing",
      {Hashing({.num_bins = 7})(words), Hashing({.num_bins = 7, .salt = {{3}}})(words)});
  const StringLookup lookup;
  lookup.adapt(words);
  const StringLookup fixed({.vocabulary = {"a", "b"}, .output_mode = "multi_hot"});
  add("layer StringLookup",
      {lookup(Tensor{"b", "zz", "c"}), fixed(Tensor{{"b", "zz"}, {"a", "a"}})});
  const IntegerLookup numbers_of;
  numbers_of.adapt(Tensor{10, 20, 20, 30});
  add("layer IntegerLookup", {numbers_of(Tensor{20, 7, 10})});
  const Tensor texts{"The cat, sat!", "the dog sat on the MAT"};
  const TextVectorization text;
  text.adapt(texts);
  const TextVectorization pairs({.ngrams = {1, 2}, .output_mode = "count"});
  pairs.adapt(texts);
  const TextVectorization weighed({.output_mode = "tf_idf"});
  weighed.adapt(texts);
  const TextVectorization cut({.max_tokens = 4, .output_sequence_length = 3});
  cut.adapt(texts);
  const Tensor queries{"the bird sat", "on"};
  add("layer TextVectorization", {text(queries), pairs(queries), weighed(queries), cut(queries)});
  const Tensor image = td::abs(numbers({2, 8, 8, 3}));
  add("layer Resizing", {Resizing(4, 6)(image), Resizing(5, 5, {.interpolation = "nearest"})(image),
                         CenterCrop(4, 6)(image)});
  add("utils", {utils::to_categorical({0, 2}), utils::normalize(x)});
}

void keras_augmentation_cases() {
  using namespace td::keras;
  // Ranges of one number, so that both sides do the same.
  const Tensor image = td::abs(numbers({2, 8, 8, 3}));
  const CallOptions training{.training = true};
  add("layer Random",
      {RandomRotation(FactorRange(0.1, 0.1))(image, training),
       RandomTranslation(FactorRange(0.2, 0.2), FactorRange(0.1, 0.1))(image, training),
       RandomZoom(FactorRange(0.3, 0.3), FactorRange(-0.2, -0.2))(image, training),
       RandomBrightness(FactorRange(0.002, 0.002))(image, training),
       RandomContrast(0.0)(image, training), RandomFlip()(image)});
}

void keras_metric_cases() {
  using namespace td::keras;
  const Tensor labels{0, 1, 2, 1}, guesses{0, 2, 2, 1};
  const metrics::MeanIoU iou(3);
  iou.update_state(labels, guesses);
  const metrics::IoU one({.num_classes = 3, .target_class_ids = {2}});
  one.update_state(labels, guesses);
  const metrics::BinaryIoU binary;
  binary.update_state(Tensor{0.0, 1.0, 1.0, 0.0}, Tensor{0.1, 0.2, 0.8, 0.7});
  const Tensor p = td::nn::softmax(numbers({4, 3}) * 3.0), t = td::one_hot({0, 2, 1, 1}, 3);
  const metrics::F1Score each, macro({.average = "macro"}),
      micro({.average = "micro", .threshold = 0.4});
  const metrics::FBetaScore beta({.average = "weighted", .beta = 2});
  for (const Metric& metric : std::vector<Metric>{each, macro, micro, beta})
    metric.update_state(t, p);
  const metrics::R2Score r2;
  r2.update_state(numbers({4, 3}), numbers({4, 3}, 0.2));
  const metrics::PearsonCorrelation pearson;
  pearson.update_state(numbers({4, 3}), numbers({4, 3}, 0.5));
  const metrics::ConcordanceCorrelation concordance;
  concordance.update_state(numbers({4, 3}), numbers({4, 3}, 0.5));
  add("metrics", {iou.result(), one.result(), binary.result(), each.result(), macro.result(),
                  micro.result(), beta.result(), r2.result(), pearson.result(),
                  concordance.result(), metrics::categorical_accuracy(t, p),
                  metrics::top_k_categorical_accuracy(t, p, 2), metrics::binary_accuracy(t, p)});
}
