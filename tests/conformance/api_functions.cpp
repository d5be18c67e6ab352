// Computes cases of what is made of ops, besides those of api_values.cpp, and writes them to an
// .npz file: api_functions OUT DATA, where DATA is a folder of files that check_api_functions.py
// wrote. check_api_functions.py, which has the same names, computes them
// with the real TensorFlow, and compares.

#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tandem/tandem.h"

#include "tests/conformance/api_cases.h"

namespace td = tandem;
using td::Tensor;
using td::TensorArray;

namespace {

using api_cases::add;
using api_cases::differentiated;
using api_cases::found;
using api_cases::numbers;

// Why a call is refused: what kind of error it is.
void fails(const std::string& name, const std::function<void()>& call) {
  std::string kind = "none";
  try {
    call();
  } catch (const td::Error& error) {
    kind = td::code_name(error.code());
  }
  found[name] = Tensor(kind);
}

void tensor_array_cases() {
  const Tensor x = numbers({4, 3});
  const auto filled = [](const Tensor& t) {
    TensorArray a(td::float32, 4);
    for (int i = 0; i < 4; ++i) a = a.write(3 - i, t[i] * 2.0);
    return a;
  };
  differentiated(
      "ta write", [&](Tensor t) { return filled(t).stack(); }, x);
  differentiated(
      "ta read", [&](Tensor t) { return filled(t).read(1); }, x);
  differentiated(
      "ta unstack",
      [](Tensor t) {
        const auto a = TensorArray(td::float32, 4).unstack(t);
        return a.read(0) * a.read(2);
      },
      x);
  differentiated(
      "ta gather",
      [&](Tensor t) {
        return filled(t).gather(Tensor{2, 0});
      },
      x);
  differentiated(
      "ta scatter",
      [](Tensor t) {
        return TensorArray(td::float32, 4).scatter(Tensor{1, 3, 0, 2}, t).stack();
      },
      x);
  differentiated(
      "ta split concat",
      [](Tensor t) {
        const auto a = TensorArray(td::float32, 2, {.infer_shape = false}).split(t, Tensor{1, 3});
        return a.concat() * 3.0;
      },
      x);
  differentiated(
      "ta loop",
      [](Tensor t) {
        const TensorArray all(td::float32, 4);
        const auto [i, out] = td::while_loop(
            [](Tensor k, TensorArray) { return k < 4; },
            [t](Tensor k, TensorArray a) {
              return std::pair(k + 1, a.write(k, td::gather(t, k) * td::cast(k, td::float32)));
            },
            std::pair(Tensor(0), all));
        return out.stack();
      },
      x);
  TensorArray growing(td::int32, 0, {.dynamic_size = true});
  for (int i = 0; i < 3; ++i) growing = growing.write(i, i * i);
  add("ta dynamic", {growing.stack(), growing.size()});
  fails("ta outside", [] { TensorArray(td::float32, 2).write(2, 1.0); });
  fails("ta dtype", [] { TensorArray(td::float32, 2).write(0, Tensor{1, 2}); });
  fails("ta shape", [] { TensorArray(td::float32, 2).write(0, Tensor{1.0}).write(1, 2.0); });
}

void operator_case(const std::string& name, const td::linalg::LinearOperator& op, const Tensor& x,
                   bool solves = true) {
  add(name, {op.to_dense(), op.matmul(x), op.matmul(x, true), op.diag_part(), op.shape_tensor()});
  if (!solves) return;
  add(name + " solve", {op.solve(x), op.solve(x, true), op.determinant(), op.log_abs_determinant(),
                        op.trace(), op.inverse().to_dense()});
}

void operator_cases() {
  namespace la = td::linalg;
  const Tensor x = numbers({3, 2}, 1);
  const Tensor full = numbers({3, 3}) + td::eye(3) * 3.0;
  const la::LinearOperatorFullMatrix matrix(full);
  operator_case("operator full", matrix, x);
  operator_case("operator diag", la::LinearOperatorDiag(Tensor{1.0, -2.0, 3.0}), x);
  operator_case("operator identity", la::LinearOperatorIdentity(3), x);
  operator_case("operator scaled", la::LinearOperatorScaledIdentity(3, Tensor(2.5)), x);
  operator_case("operator zeros", la::LinearOperatorZeros(3), x, false);
  operator_case("operator tril", la::LinearOperatorLowerTriangular(full), x);
  operator_case(
      "operator tridiag",
      la::LinearOperatorTridiag(Tensor{{1.0, 2.0, 0.0}, {4.0, 5.0, 6.0}, {0.0, 1.0, 2.0}}), x);
  operator_case("operator toeplitz",
                la::LinearOperatorToeplitz(Tensor{4.0, 2.0, 3.0}, Tensor{4.0, 0.5, 1.5}), x);
  operator_case("operator householder", la::LinearOperatorHouseholder(Tensor{1.0, 2.0, -1.0}), x);
  operator_case("operator permutation", la::LinearOperatorPermutation(Tensor{2, 0, 1}), x);
  const Tensor spectrum = td::complex(Tensor{6.0, 2.0, 2.0}, Tensor{0.0, 1.0, -1.0});
  operator_case("operator circulant", la::LinearOperatorCirculant(spectrum, td::float32), x);
  operator_case("operator circulant2",
                la::LinearOperatorCirculant2D(
                    td::complex(Tensor{{5.0, 2.0}, {3.0, 4.0}}, td::zeros({2, 2})), td::float32),
                numbers({4, 2}));
  operator_case(
      "operator circulant3",
      la::LinearOperatorCirculant3D(
          td::complex(td::abs(numbers({2, 1, 2})) + 1.0, td::zeros({2, 1, 2})), td::float32),
      numbers({4, 2}));
  operator_case("operator adjoint", la::LinearOperatorAdjoint(matrix), x);
  operator_case("operator inversion", la::LinearOperatorInversion(matrix), x);
  const la::LinearOperatorDiag diag(Tensor{1.0, -2.0, 3.0});
  operator_case("operator composition", la::LinearOperatorComposition({matrix, diag}), x);
  const la::LinearOperatorFullMatrix small(Tensor{{2.0, 1.0}, {0.5, 3.0}});
  operator_case("operator kronecker", la::LinearOperatorKronecker({small, matrix}),
                numbers({6, 2}));
  operator_case("operator block_diag", la::LinearOperatorBlockDiag({small, matrix}),
                numbers({5, 2}));
  operator_case("operator block_lower",
                la::LinearOperatorBlockLowerTriangular(
                    {{small}, {la::LinearOperatorFullMatrix(numbers({3, 2}, 2)), matrix}}),
                numbers({5, 2}));
  operator_case("operator low_rank",
                la::LinearOperatorLowRankUpdate(la::LinearOperatorDiag(Tensor{4.0, 5.0, 6.0}),
                                                numbers({3, 2}, 3), Tensor{1.0, 2.0}),
                x);
  const la::LinearOperatorFullMatrix batch(numbers({2, 3, 3}) + td::eye(3) * 3.0);
  operator_case("operator batch", batch, numbers({2, 3, 2}, 1));
  const Tensor spd = td::matmul(full, full, {.transpose_b = true});
  const la::LinearOperatorFullMatrix positive(
      spd, {.is_self_adjoint = true, .is_positive_definite = true});
  add("operator cholesky", {positive.cholesky().to_dense(), positive.eigvals(), positive.cond(),
                            positive.add_to_tensor(x[{td::Slice(), td::Slice(0, 1)}])});
  const auto solved = la::experimental::conjugate_gradient(positive, Tensor{1.0, 2.0, 3.0});
  add("conjugate_gradient", {solved.x});
  differentiated(
      "operator gradient",
      [x](Tensor t) { return td::linalg::LinearOperatorToeplitz(t[0], t[1]).matmul(x); },
      Tensor{{4.0, 2.0, 3.0}, {4.0, 0.5, 1.5}});
  fails("operator shapes", [&] { static_cast<void>(matrix.matmul(numbers({2, 2}))); });
}

void signal_cases() {
  namespace s = td::signal;
  const Tensor x = numbers({2, 6, 4}), c = td::complex(x, numbers({2, 6, 4}, 2));
  const auto parts = [](const Tensor& t) {
    return td::stack({td::math::real(t), td::math::imag(t)});
  };
  add("fftnd", {parts(s::fftnd(c, {2, 6, 4}, {0, 1, 2})), parts(s::fftnd(c, {6, 4}, {1, 2})),
                parts(s::fftnd(c, {4, 6}, {2, 1}, "ortho")), parts(s::ifftnd(c, {6, 4}, {1, 2})),
                parts(s::ifftnd(c, {2, 6, 4}, {0, 1, 2}, "forward"))});
  add("rfftnd", {parts(s::rfftnd(x, {6, 4}, {1, 2})), parts(s::rfftnd(x)),
                 parts(s::rfftnd(x, {6, 4}, {1, 2}, "forward"))});
  add("irfftnd", {s::irfftnd(s::rfftnd(x, {6, 4}, {1, 2}), {6, 4}, {1, 2})});
  const auto wav =
      td::audio::encode_wav(td::clip_by_value(numbers({8, 2}) * 1.2, -1.0, 1.0), Tensor(16000));
  add("encode_wav", {td::io::encode_base64(wav)});
  const auto sound = td::audio::decode_wav(wav);
  const auto other = td::audio::decode_wav(wav, 1, 10);
  add("decode_wav", {sound.audio, sound.sample_rate, other.audio});
  fails("decode_wav bytes", [] { td::audio::decode_wav(Tensor("RIFFnothing")); });
}

// Images of 9 by 7 in base64: lossy, lossless, and both with transparency.
constexpr const char* kWebp[] = {
    "UklGRlQAAABXRUJQVlA4IEgAAAAQAgCdASoJAAcAAUAmJbACdLoAAwhBG_RgAP79KEzWWmCS7b2WJtRt"
    "DPln_eQr_iQkuzXlfiaAT_y59nI3Z_4od_ZM_7_r8AA",
    "UklGRjYAAABXRUJQVlA4TCoAAAAvCIABALkyRPQ_duWP6H9AQds2TMiUP8q3IZgOBWkbsLDdiQkAxMpx"
    "-ww",
    "UklGRjgAAABXRUJQVlA4TCwAAAAvCIABELkyRPQ_duWP6H9AQds2TMiUP8q3IZgOBWkbsLDdGfYJAEgr"
    "h7PPAA",
    "UklGRoQAAABXRUJQVlA4WAoAAAAQAAAACAAABgAAQUxQSB8AAAABRyAQSCTy2x9kh4jIDGQBJmMYSyyx"
    "5P9lENH_WCMvAFZQOCA-AAAA0AEAnQEqCQAHAAKAQiWwAnQA9DGLeUAA_vfYHIKzrERTaosmJdz_Mp-O"
    "5mcz_n8bbDtcXf3FXrv_imoAAAA"};

// Where libwebp is not installed, neither side has these.
void webp_cases() {
  try {
    for (int i = 0; i < 4; ++i) {
      const Tensor bytes = td::io::decode_base64(Tensor(kWebp[i]));
      add("decode_webp " + std::to_string(i),
          {td::image::decode_webp(bytes), td::image::decode_webp(bytes, i < 2 ? 3 : 4)});
      fails("decode_webp channels " + std::to_string(i),
            [&] { td::image::decode_webp(bytes, i < 2 ? 4 : 3); });
    }
  } catch (const td::UnimplementedError& error) {
    std::cerr << "without WebP: " << error.what() << '\n';
  }
}

void quantization_cases() {
  namespace q = td::quantization;
  const Tensor x = numbers({2, 6}), g = numbers({2, 6}, 1);
  add("fake_quant args gradient", {q::fake_quant_with_min_max_args_gradient(g, x, -0.5f, 0.8f)});
  const auto vars =
      q::fake_quant_with_min_max_vars_gradient(g, x, Tensor(-0.5), Tensor(0.8), {.num_bits = 4});
  add("fake_quant vars gradient",
      {vars.backprops_wrt_input, vars.backprop_wrt_min, vars.backprop_wrt_max});
  const auto channels = q::fake_quant_with_min_max_vars_per_channel_gradient(
      g, x, td::fill({6}, Tensor(-0.5)), td::fill({6}, Tensor(0.7)));
  add("fake_quant channels gradient",
      {channels.backprops_wrt_input, channels.backprop_wrt_min, channels.backprop_wrt_max});
  add("quantize_v2",
      {q::quantize_and_dequantize_v2(x, Tensor(-0.5), Tensor(0.8), {.range_given = true})});
  const auto a = q::quantize(td::abs(x), Tensor(0.0), Tensor(1.0), td::DType::kQuint8);
  const auto b = q::quantize(td::abs(g) * 2.0, Tensor(0.0), Tensor(2.0), td::DType::kQuint8);
  const auto joined = q::quantized_concat(0, {a.output, b.output}, {a.output_min, b.output_min},
                                          {a.output_max, b.output_max});
  add("quantized_concat", {td::cast(td::bitcast(joined.output, td::uint8), td::int32),
                           joined.output_min, joined.output_max});
}

void io_cases() {
  const auto sparse = td::sparse::from_dense(Tensor{{0.0, 1.0, 0.0}, {2.0, 0.0, 3.0}});
  const auto one = td::io::serialize_sparse(sparse);
  const auto rows = td::io::serialize_many_sparse(sparse);
  const auto back = td::io::deserialize_many_sparse(rows, td::float32);
  add("deserialize_many_sparse", {back.indices, back.values, back.dense_shape});
  const auto stacked = td::io::deserialize_many_sparse(td::stack({one, one}), td::float32);
  add("deserialize_sparse", {stacked.indices, stacked.values, stacked.dense_shape});
  const auto example = td::io::decode_json_example(Tensor{
      R"({"features": {"feature": {"a": {"int64List": {"value": [1, "2"]}},
          "b": {"floatList": {"value": [0.5]}}, "c": {"bytesList": {"value": ["aGk="]}}}}})"});
  const auto parsed =
      td::io::parse_example(example, {{"a", td::io::FixedLenFeature{{2}, td::int64}},
                                      {"b", td::io::FixedLenFeature{{1}}},
                                      {"c", td::io::FixedLenFeature{{1}, td::string}}});
  add("decode_json_example", {parsed["a"], parsed["b"], parsed["c"]});
  td::io::Example places;
  places.set("ix", std::vector<std::int64_t>{3, 1}).set("v", std::vector<float>{0.5f, 1.5f});
  const auto merged =
      td::io::parse_example(Tensor(std::vector<std::string>(2, places.serialize())),
                            {{"s", td::io::SparseFeature{{"ix"}, "v", td::float32, {5}}}});
  const auto& s = merged.sparse.at("s");
  add("SparseFeature", {s.indices, s.values, s.dense_shape});
  td::lookup::experimental::DenseHashTable table(td::int64, td::int64, Tensor(std::int64_t{-1}),
                                                 Tensor(std::int64_t{-2}),
                                                 Tensor(std::int64_t{-3}));
  const auto keys = [](std::vector<std::int64_t> k) { return Tensor(k); };
  table.insert(keys({1, 2, 3}), keys({10, 20, 30}));
  table.erase(keys({2}));
  add("dense table", {table.lookup(keys({1, 2, 3, 4})), table.size()});
  td::Variable w(Tensor{1.0, 2.0});
  td::train::ExponentialMovingAverage ema(0.9), young(0.9, {.zero_debias = true});
  for (int i = 0; i < 3; ++i) {
    ema.apply({w});
    young.apply({w});
    w.assign_add(Tensor{1.0, -0.5});
  }
  ema.apply({w});
  add("moving average", {ema.average(w).value()});
}

// All elements' components, one after the other.
void add_all(const std::string& name, const td::data::Dataset& dataset) {
  std::vector<Tensor> all;
  for (const td::data::Element& element : dataset)
    all.insert(all.end(), element.begin(), element.end());
  add(name, all);
}

void data_cases(const std::string& folder) {
  namespace ku = td::keras::utils;
  const auto labelled = td::data::make_csv_dataset(
      folder + "/*.csv", 2, {.label_name = "y", .num_epochs = 1, .shuffle = false});
  std::vector<Tensor> columns;
  for (const td::data::TensorMap& row : labelled.maps()) {
    for (const char* name : {"0/a", "0/b", "0/c", "0/d", "1"}) columns.push_back(row.at(name));
  }
  add("csv", columns);
  const auto selected = td::data::make_csv_dataset(folder + "/*.csv", 3,
                                                   {.select_columns = {"c", "a"},
                                                    .num_epochs = 2,
                                                    .shuffle = false,
                                                    .num_rows_for_inference = 1});
  columns.clear();
  for (const td::data::TensorMap& row : selected.maps()) {
    for (const char* name : {"a", "c"}) columns.push_back(row.at(name));
  }
  add("csv select", columns);
  fails("csv label",
        [&] { td::data::make_csv_dataset(folder + "/*.csv", 2, {.label_name = "q"}); });
  add_all("text",
          ku::text_dataset_from_directory(
              folder + "/texts", {.batch_size = 2, .max_length = 5, .seed = 3, .verbose = false}));
  add_all("text split",
          ku::text_dataset_from_directory(folder + "/texts", {.label_mode = "categorical",
                                                              .batch_size = std::nullopt,
                                                              .shuffle = false,
                                                              .validation_split = 0.4,
                                                              .subset = "validation",
                                                              .verbose = false}));
  fails("text mode", [&] {
    ku::text_dataset_from_directory(folder + "/texts", {.label_mode = "words", .verbose = false});
  });
  add_all("audio",
          ku::audio_dataset_from_directory(
              folder + "/sounds",
              {.batch_size = 2, .output_sequence_length = 6, .shuffle = false, .verbose = false}));
  const Tensor series = numbers({20, 2}), targets = td::range(Tensor(20));
  add_all("timeseries", ku::timeseries_dataset_from_array(series, {}, 5, {.batch_size = 4}));
  add_all("timeseries targets",
          ku::timeseries_dataset_from_array(
              series, targets, 4, {.sequence_stride = 3, .sampling_rate = 2, .batch_size = 2}));
  add_all("timeseries shuffled",
          ku::timeseries_dataset_from_array(
              series, targets, 3,
              {.batch_size = 4, .shuffle = true, .seed = 7, .start_index = 2, .end_index = 18}));
  add_all("timeseries single",
          ku::timeseries_dataset_from_array(series, {}, 6, {.batch_size = std::nullopt}).take(3));
  fails("timeseries stride",
        [&] { ku::timeseries_dataset_from_array(series, {}, 6, {.sequence_stride = 0}); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    tensor_array_cases();
    operator_cases();
    signal_cases();
    webp_cases();
    quantization_cases();
    io_cases();
    data_cases(argv[2]);
    td::io::save_npz(argv[1], found);
  } catch (const td::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
