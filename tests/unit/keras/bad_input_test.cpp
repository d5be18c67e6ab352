// What newcomers get wrong: each is a typed error whose message names what is amiss, never a crash
// and never a wrong result where TensorFlow or Keras refuse.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/unit/folder.h"

namespace tandem::keras {
namespace {

using testing::HasSubstr;

struct Case {
  const char* message;
  std::function<void()> run;
};

template <class E>
void expect_errors(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    try {
      c.run();
      ADD_FAILURE() << "no error";
    } catch (const E& e) {
      EXPECT_THAT(e.what(), HasSubstr(c.message));
    } catch (const std::exception& e) {
      ADD_FAILURE() << "another type: " << e.what();
    }
  }
}

Tensor x() { return ones({4, 3}); }
Tensor y() { return ones({4, 2}); }
Sequential model() {
  Sequential m{Input({3}), Dense(2)};
  m.compile({.optimizer = "sgd", .loss = "mse"});
  return m;
}

// Takes a size that is not known as one.
class Forgetful final : public LayerImpl {
 public:
  Forgetful() : LayerImpl("Forgetful") {}
  void build(const PartialShape& input) override { add_weight("w", {input[0], 2}); }
};

// Devices that compute asynchronously report where the values are waited for.
TEST(BadInput, OfTensors) {
  expect_errors<InvalidArgumentError>({
      {"Matrix size-incompatible",
       [] {
         matmul(ones({2, 3}), ones({4, 5}));
       }},
      {"Incompatible shapes",
       [] {
         add(ones({2, 3}), ones({4}));
       }},
      {"use td::cast", [] { ones({2}) + cast(ones({2}), int32); }},
      {"Invalid reduction dimension (2",
       [] {
         reduce_sum(ones({2, 3}), 2);
       }},
      {"needs at least one value", [] { concat(std::vector<Tensor>{}, 0); }},
      {"Axis 7 is out of range",
       [] {
         ones({2, 3}).shape()[7];
       }},
      {"read as a single value", [] { ones({2}).item<float>(); }},
      {"not in [0, 3)",
       [] {
         gather(ones({3, 2}), Tensor{5}).synchronize();
       }},
      {"Input is not invertible",
       [] {
         linalg::inv(zeros({2, 2})).synchronize();
       }},
      {"Unknown image file format", [] { io::decode_jpeg(Tensor("not a jpeg")); }},
      {"Data too short", [] { audio::decode_wav(Tensor("RIFF1234")); }},
      {"are a scalar",
       [] {
         RaggedTensor::from_row_splits(Tensor(1), Tensor{0, 1});
       }},
      {"do not form a valid RaggedTensor",
       [] {
         RaggedTensor::from_row_splits(Tensor{1, 2, 3}, Tensor{0, 2, 5});
       }},
      {"is out of bounds",
       [] {
         sparse::to_dense({{{0, 9}}, {1.0}, {3, 4}}).synchronize();
       }},
      {"td::linalg::matvec multiplies a vector",
       [] {
         matmul(ones({2, 3}), ones({3})).synchronize();
       }},
  });
  expect_errors<UnimplementedError>({
      {"td::strings::to_number", [] { cast(Tensor("12"), int32); }},
      {"td::strings::as_string", [] { cast(Tensor(12), DType::kString); }},
  });
}

TEST(BadInput, OfLayers) {
  expect_errors<InvalidArgumentError>({
      {"units must be positive, got -2", [] { Dense(-2); }},
      {"Did you mean 'relu'?", [] { Dense(2, {.activation = "reluu"}); }},
      {"found ndim=2",
       [] {
         Conv2D(4, 3)(ones({2, 8}));
       }},
      {"Computed output size would be zero or negative: [1,0,0,4] of an input of shape [1,8,8,3]",
       [] {
         Conv2D(4, 9)(ones({1, 8, 8, 3}));
       }},
      {"Computed output size would be zero",
       [] {
         MaxPooling2D(5)(ones({1, 4, 4, 1}));
       }},
      {"Computed output size would be zero",
       [] {
         Sequential m{Input({4, 4, 1}), Conv2D(4, 5)};
       }},
      {"expected axis -1",
       [] {
         const Dense dense(2);
         dense(ones({4, 3}));
         dense(ones({4, 5}));
       }},
      {"When `num_oov_indices=0` all inputs should be in vocabulary",
       [] { StringLookup({.vocabulary = {"a"}, .num_oov_indices = 0})(Tensor{"z"}); }},
      {"in the range [-1, 1]. Received: 5 to -5", [] { RandomRotation(-5.0); }},
      {"num_classes must be positive", [] { metrics::MeanIoU({.num_classes = 0}); }},
      {"maxlen must not be negative",
       [] {
         utils::pad_sequences({{1, 2}, {3}}, {.maxlen = -1});
       }},
      {"Seed must be between 0 and 2**32 - 1", [] { utils::set_random_seed(-1); }},
      {"learning rate must be finite", [] { optimizers::Adam(std::nan("")); }},
      {"`max_tokens` must be greater than 1", [] { TextVectorization({.max_tokens = 1}); }},
      {"Choose one of 'int', 'multi_hot'", [] { TextVectorization({.output_mode = "ints"}); }},
      {"in build of layer 'forgetful' (Forgetful) for input of shape (None, 8)",
       [] {
         Sequential m{Input({8}), make_layer<Forgetful>()};
       }},
  });
  expect_errors<UnimplementedError>({
      {"keras.applications.MobileNetV2(include_top=False).save_weights(",
       [] { applications::MobileNetV2({.include_top = false, .weights = "imagenet"}); }},
      {"StringLookup",
       [] {
         Sequential{Dense(2)}.predict(Tensor{{"a", "b"}}, {.verbose = 0});
       }},
  });
}

TEST(BadInput, OfTraining) {
  const auto fit = [](FitOptions options) {
    options.verbose = 0;
    model().fit(x(), y(), options);
  };
  expect_errors<InvalidArgumentError>({
      {"batch_size must be positive, got -1", [&] { fit({.batch_size = -1}); }},
      {"epochs must not be negative", [&] { fit({.epochs = -2}); }},
      {"number of steps must be positive", [&] { fit({.steps_per_epoch = 0}); }},
      {"LearningRateScheduler needs a function",
       [&] { fit({.callbacks = {callbacks::LearningRateScheduler(nullptr)}}); }},
      {"is a null pointer", [&] { fit({.callbacks = {std::shared_ptr<Callback>()}}); }},
      {"There are no examples",
       [] {
         model().fit(zeros({0, 3}), zeros({0, 2}), {.verbose = 0});
       }},
      {"same number of samples",
       [] {
         model().fit(x(), ones({5, 2}), {.verbose = 0});
       }},
      {"is an undefined tensor", [] { model().fit(Tensor(), y(), {.verbose = 0}); }},
      {"did you call batch()?",
       [] {
         model().fit(data::from_tensor_slices({x(), y()}), {.verbose = 0});
       }},
      {"the dataset is undefined", [] { model().fit(data::Dataset(), {.verbose = 0}); }},
  });
  expect_errors<FailedPreconditionError>({
      {"You must call `compile()`", [] { Sequential{Dense(2)}.fit(x(), y(), {.verbose = 0}); }},
      {"has no weights yet", [] { Sequential{Dense(2)}.save_weights("w.weights.h5"); }},
      {"has no layers", [] { Sequential{}.predict(x(), {.verbose = 0}); }},
      {"refers to no layer", [] { Model().predict(x()); }},
  });
  expect_errors<NotFoundError>({
      {"load_weights: there is no file 'none.h5'", [] { model().load_weights("none.h5"); }},
      {"there is no folder 'none'", [] { model().save("none/m.keras"); }},
  });
}

TEST(BadInput, OfDataAndFiles) {
  const Folder folder;
  const std::string damaged = folder.file("damaged"), csv = folder.file("rows.csv");
  io::write_file(Tensor(damaged), Tensor("garbage garbage garbage"));
  io::write_file(Tensor(csv), Tensor("a,b\n1,2\n3,4\n"));
  const auto drain = [](const data::Dataset& dataset) {
    for (const auto& element : dataset) (void)element;
  };
  expect_errors<InvalidArgumentError>({
      {"must return a Callable",
       [&] {
         drain(data::from_generator([] { return data::Generator(); }, {{float32, PartialShape()}}));
       }},
      {"Batch size must be greater than zero", [] { data::range(3).batch(0); }},
      {"are not compatible",
       [] {
         data::from_tensor_slices({ones({3}), ones({4})});
       }},
      {"must be one of the columns: ['a', 'b']",
       [&] { drain(data::make_csv_dataset(csv, 2, {.label_name = "c", .num_epochs = 1})); }},
  });
  expect_errors<NotFoundError>({
      {"/no/such", [&] { drain(data::TextLineDataset("/no/such/file.txt")); }},
      {"/no/such", [] { models::load_model("/no/such.keras"); }},
      {"/no/such", [] { saved_model::load("/no/such/model"); }},
      {"No such layer: 'nope'", [] { model().get_layer("nope"); }},
  });
  expect_errors<DataLossError>({
      {damaged.c_str(), [&] { drain(data::TFRecordDataset(damaged)); }},
  });
}

}  // namespace
}  // namespace tandem::keras
