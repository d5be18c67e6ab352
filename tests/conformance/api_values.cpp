// Computes cases and writes them to an .npz file: api_values OUT. check_api_values.py, which has
// the same names, computes them with the real TensorFlow and Keras, and compares. Names that end in
// " grad" are gradients of the sum of the result's squares.

#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "tandem/tandem.h"

#include "tests/conformance/api_cases.h"

namespace td = tandem;
using td::Tensor;

namespace {

using api_cases::add;
using api_cases::differentiated;
using api_cases::found;
using api_cases::numbers;

void math_cases() {
  const Tensor x = numbers({3, 4});
  differentiated(
      "sort", [](Tensor t) { return td::sort(t); }, x);
  differentiated(
      "sort axis 0 descending", [](Tensor t) { return td::sort(t, 0, "DESCENDING"); }, x);
  add("sort ints", {td::sort(Tensor{3, -1, 2, -2147483647})});
  add("argsort", {td::argsort(x), td::argsort(x, 0, "DESCENDING"), td::argsort(Tensor{1, 1, 0})});
  add("meshgrid", td::meshgrid({Tensor{1, 2, 3}, Tensor{4, 5}}));
  add("meshgrid ij", td::meshgrid({Tensor{1, 2, 3}, Tensor{4, 5}}, "ij"));
  add("sequence_mask", {td::sequence_mask(Tensor{1, 3, 2}), td::sequence_mask(Tensor{{1, 2}}, 4)});
  add("unravel_index", {td::unravel_index(Tensor{22, 41, 37}, Tensor{7, 6})});
  add("confusion_matrix", {td::math::confusion_matrix(Tensor{1, 2, 4}, Tensor{2, 2, 4})});
  differentiated(
      "lbeta", [](Tensor t) { return td::math::lbeta(td::abs(t) + 0.1); }, x);
  differentiated(
      "polyval",
      [](Tensor t) {
        return td::math::polyval({Tensor(1.0f), Tensor(-2.0f), Tensor(0.5f)}, t);
      },
      x);
  add("monotone", {td::math::is_non_decreasing(Tensor{1, 1, 2}),
                   td::math::is_strictly_increasing(Tensor{1, 1, 2})});
  add("zero_fraction", {td::math::zero_fraction(Tensor{0.0, 1.0, 0.0, 2.0})});
  add("sqrt_n", {td::math::unsorted_segment_sqrt_n(x, Tensor{0, 1, 0}, 2)});
  add("scalar_mul", {td::scalar_mul(2.0, x)});
  differentiated(
      "map_fn",
      [](Tensor t) { return td::map_fn([](Tensor row) { return td::cumsum(row) * 2.0; }, t); }, x);
  differentiated(
      "scan", [](Tensor t) { return td::scan([](Tensor a, Tensor b) { return a * 0.5 + b; }, t); },
      x);
  differentiated(
      "foldr",
      [](Tensor t) { return td::foldr([](Tensor a, Tensor b) { return a * 0.5 + b; }, t); }, x);
}

void linalg_cases() {
  const Tensor x = numbers({3, 4}), square = numbers({3, 3}) + td::eye(3) * 2.0;
  for (const auto& [name, order] : std::map<std::string, td::NormOrder>{
           {"euclidean", "euclidean"}, {"1", 1}, {"inf", "inf"}, {"3", 3}}) {
    differentiated(
        "norm " + name, [order = order](Tensor t) { return td::norm(t, order); }, x);
    add("norm axis " + name, {td::norm(x, order, 1), td::norm(x, order, 0, true)});
  }
  for (const auto& [name, order] :
       std::map<std::string, td::NormOrder>{{"fro", "fro"}, {"1", 1}, {"inf", "inf"}, {"2", 2}})
    add("norm matrix " + name, {td::norm(x, order, {0, 1})});
  differentiated(
      "trace", [](Tensor t) { return td::linalg::trace(t); }, square);
  add("matrix_rank", {td::linalg::matrix_rank(Tensor{{1.0, 2.0}, {2.0, 4.0}})});
  add("pinv", {td::linalg::pinv(x)});
  add("expm", {td::linalg::expm(square), td::linalg::expm(td::cast(square, td::float64) * 3.0)});
  const auto lu = td::linalg::lu(square);
  add("lu", {td::linalg::lu_solve(lu.lu, lu.p, x), td::linalg::lu_reconstruct(lu.lu, lu.p),
             td::linalg::lu_matrix_inverse(lu.lu, lu.p)});
  add("tensor_diag", {td::linalg::tensor_diag(Tensor{1, 2}),
                      td::linalg::tensor_diag_part(Tensor{{1, 2}, {3, 4}})});
  add("eigh_tridiagonal", {td::linalg::eigh_tridiagonal(Tensor{1.0, 2.0, 3.0}, Tensor{0.5, 0.25})});
  const auto [unit, length] = td::linalg::normalize(x);
  add("normalize", {unit, length});
}

void signal_cases() {
  for (const int n : {7, 8}) {
    const std::string of = " " + std::to_string(n);
    add("windows" + of, {td::signal::hann_window(n), td::signal::hann_window(n, false),
                         td::signal::hamming_window(n), td::signal::kaiser_window(n, 4.0),
                         td::signal::vorbis_window(n)});
  }
  add("kaiser_bessel_derived_window", {td::signal::kaiser_bessel_derived_window(8, 4.0)});
  const Tensor x = numbers({2, 16});
  differentiated(
      "frame", [](Tensor t) { return td::signal::frame(t, 4, 3); }, x);
  add("frame pad",
      {td::signal::frame(x, 5, 3, true, 1.0), td::signal::frame(x, 1, 1, false, 0, 0)});
  differentiated(
      "overlap_and_add", [](Tensor t) { return td::signal::overlap_and_add(t, 3); },
      numbers({2, 4, 5}));
  const Tensor spectrum = td::signal::stft(x, 8, 4);
  add("stft", {td::math::real(spectrum), td::math::imag(spectrum)});
  add("inverse_stft",
      {td::signal::inverse_stft(spectrum, 8, 4, {}, td::signal::inverse_stft_window_fn(4))});
  for (int type = 1; type <= 4; ++type) {
    differentiated(
        "dct " + std::to_string(type), [type](Tensor t) { return td::signal::dct(t, type); }, x);
    add("idct " + std::to_string(type), {td::signal::idct(x, type)});
    if (type > 1) add("dct ortho " + std::to_string(type), {td::signal::dct(x, type, {}, "ortho")});
  }
  add("mdct", {td::signal::mdct(x, 8), td::signal::mdct(x, 8, {}, "ortho")});
  add("inverse_mdct", {td::signal::inverse_mdct(td::signal::mdct(x, 8))});
  add("fftshift", {td::signal::fftshift(x), td::signal::ifftshift(x, {1})});
  add("mel", {td::signal::linear_to_mel_weight_matrix(10, 33)});
  add("mfcc", {td::signal::mfccs_from_log_mel_spectrograms(x)});
}

void nn_cases() {
  const Tensor x = numbers({2, 6, 3}), image = numbers({1, 6, 6, 2});
  differentiated(
      "crelu", [](Tensor t) { return td::nn::crelu(t); }, x);
  differentiated(
      "log_poisson_loss",
      [](Tensor t) {
        return td::nn::log_poisson_loss(td::abs(numbers({2, 6, 3}, 1)) * 3.0, t, true);
      },
      x);
  differentiated(
      "weighted_cross_entropy",
      [](Tensor t) {
        return td::nn::weighted_cross_entropy_with_logits(td::abs(numbers({2, 6, 3}, 1)), t, 2.0f);
      },
      x);
  const auto moments = td::nn::weighted_moments(x, {0, 1}, td::abs(numbers({2, 6, 1}, 1)));
  add("weighted_moments", {moments.mean, moments.variance});
  const auto s = td::nn::sufficient_statistics(x, {0, 1});
  const auto normal = td::nn::normalize_moments(s.count, s.sum, s.sum_of_squares);
  add("sufficient_statistics", {s.count, s.sum, s.sum_of_squares, normal.mean, normal.variance});
  differentiated(
      "conv1d",
      [](Tensor t) {
        return td::nn::conv1d(t, numbers({3, 3, 2}, 2), 2, "SAME");
      },
      x);
  add("conv1d_transpose", {td::nn::conv1d_transpose(x, numbers({3, 2, 3}, 2), {2, 12, 2}, 2)});
  add("convolution", {td::nn::convolution(image, numbers({2, 2, 2, 3}, 1), 1, "VALID", 2)});
  add("atrous_conv2d", {td::nn::atrous_conv2d(image, numbers({2, 2, 2, 3}, 1), 2, "SAME")});
  add("pools", {td::nn::max_pool(image, 2, 2, "SAME"), td::nn::avg_pool1d(x, 2, 2, "VALID"),
                td::nn::pool(image, {3, 3}, "AVG", {1, 1}, "VALID")});
  const auto [value, where] = td::nn::max_pool_with_argmax(image, 2, 2, "SAME");
  add("max_pool_with_argmax", {value, where});
  add("morphology", {td::nn::dilation2d(image, numbers({2, 2, 2}), {1, 1, 1, 1}, "SAME"),
                     td::nn::erosion2d(image, numbers({2, 2, 2}), {1, 1, 1, 1}, "SAME")});
  const td::SparseTensor ids{Tensor(std::vector<std::vector<std::int64_t>>{{0, 0}, {0, 1}, {2, 0}}),
                             Tensor(std::vector<std::int64_t>{1, 0, 2}),
                             Tensor(std::vector<std::int64_t>{3, 2})};
  const td::SparseTensor weights{ids.indices, Tensor{0.5, 2.0, 1.5}, ids.dense_shape};
  const Tensor table = numbers({3, 4});
  for (const std::string combiner : {"mean", "sum", "sqrtn"}) {
    add("safe_embedding " + combiner,
        {td::nn::safe_embedding_lookup_sparse(table, ids, {}, combiner),
         td::nn::safe_embedding_lookup_sparse(table, ids, weights, combiner)});
  }
  const auto [labels, lengths] =
      td::nn::collapse_repeated(Tensor{{1, 1, 2, 2, 1}, {1, 1, 1, 2, 3}}, Tensor{5, 4});
  add("collapse_repeated", {labels, lengths});
}

void image_cases() {
  const Tensor a = td::abs(numbers({2, 16, 16, 3})), b = td::abs(numbers({2, 16, 16, 3}, 0.2));
  add("colours", {td::image::rgb_to_yiq(a), td::image::yiq_to_rgb(a), td::image::rgb_to_yuv(a),
                  td::image::yuv_to_rgb(a)});
  add("psnr", {td::image::psnr(a, b, 1.0)});
  add("ssim", {td::image::ssim(a, b, 1.0)});
  add("ssim_multiscale", {td::image::ssim_multiscale(a, b, 1.0, {0.5, 0.5}, {.filter_size = 4})});
}

void ragged_cases() {
  const auto words = Tensor{"hello w\xc3\xb6rld", "", "a b c"};
  const auto split = td::strings::split_ragged(words);
  add("split", {split.flat_values(), split.row_splits()});
  const auto bytes = td::strings::bytes_split(words);
  add("bytes_split", {bytes.flat_values(), bytes.row_splits()});
  const auto letters = td::strings::unicode_split(words, "UTF-8");
  add("unicode_split", {letters.flat_values(), letters.row_splits()});
  const auto pairs = td::strings::ngrams(split, 2);
  add("ngrams", {pairs.flat_values(), pairs.row_splits()});
  const auto code = td::strings::unicode_decode(words, "UTF-8");
  add("unicode_encode", {td::strings::unicode_encode(code, "UTF-16-BE")});
  const auto range = td::ragged::range(Tensor{0, 5, 8}, Tensor{3, 3, 12});
  add("ragged range", {range.flat_values(), range.row_splits()});
  add("segment ids", {td::ragged::row_splits_to_segment_ids(Tensor{0, 3, 3, 5}),
                      td::ragged::segment_ids_to_row_splits(Tensor{0, 0, 0, 2, 3, 3, 3})});
  const auto x = td::ragged::constant(std::vector<std::vector<float>>{{1, 2, 3}, {}, {4}});
  add("ragged reduce", {td::ragged::reduce_sum(x), td::ragged::reduce_max(x)});
  const auto joined = td::ragged::concat({x, x}, 1);
  add("ragged concat", {joined.flat_values(), joined.row_splits()});
  add("ragged sparse", {x.to_sparse().indices, x.to_sparse().values});
  add("bounding_shape", {x.bounding_shape()});
}

void sparse_cases() {
  const auto a = td::sparse::from_dense(Tensor{{0.0, 1.0, 0.0}, {2.0, 0.0, 3.0}});
  const auto b = td::sparse::from_dense(Tensor{{-1.0, 0.5, 0.0}, {0.0, 0.0, 4.0}});
  const auto dense = [](const td::SparseTensor& x) { return td::sparse::to_dense(x); };
  add("sparse transpose", {dense(td::sparse::transpose(a))});
  add("sparse expand_dims", {dense(td::sparse::expand_dims(a, 1))});
  add("sparse eye", {dense(td::sparse::eye(2, 3))});
  add("sparse maximum", {dense(td::sparse::maximum(a, b)), dense(td::sparse::minimum(a, b))});
  std::vector<Tensor> parts;
  for (const auto& part : td::sparse::split(a, 2, 1)) parts.push_back(dense(part));
  add("sparse split", parts);
  const auto counts = td::sparse::bincount(Tensor{{1, 1, 3}, {0, 1, 1}});
  add("sparse bincount", {counts.indices, counts.values, counts.dense_shape});
}

void random_cases() {
  const auto g = td::random::Generator::from_seed(7);
  add("generator", {g.normal({3}), g.uniform({2, 2}), g.uniform({3}, 0, 10, td::int32),
                    g.truncated_normal({3}), g.make_seeds(2)});
  add("random split", {td::random::split({1, 2}, 3)});
  add("fold_in", {td::random::fold_in({1, 2}, Tensor(5))});
  add("stateless_categorical",
      {td::random::stateless_categorical(Tensor{{0.1, 0.5, 0.4}}, 5, {1, 2})});
  namespace kr = td::keras::random;
  add("keras random", {kr::normal({4}, {.seed = 3}), kr::uniform({4}, {.seed = 3}),
                       kr::randint({4}, 0, 9, td::int32, 3), kr::truncated_normal({4}, {.seed = 3}),
                       kr::shuffle(td::range(6), 0, 3), kr::dropout(td::ones({8}), 0.5, {}, 3)});
  const td::keras::Dropout dropout(0.5, {.seed = 3});
  const td::keras::GaussianNoise noise(1.0, {.seed = 3});
  add("random layers",
      {dropout(td::ones({8}), {.training = true}), dropout(td::ones({8}), {.training = true}),
       noise(td::ones({8}), {.training = true})});
}

#include "api_values_keras.inc"

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    math_cases();
    linalg_cases();
    signal_cases();
    nn_cases();
    image_cases();
    ragged_cases();
    sparse_cases();
    random_cases();
    keras_ops_cases();
    keras_array_cases();
    keras_network_cases();
    keras_training_cases();
    keras_preprocessing_cases();
    keras_augmentation_cases();
    keras_metric_cases();
    td::io::save_npz(argv[1], found);
  } catch (const td::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
