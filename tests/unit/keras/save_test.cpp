#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/file_system.h"
#include "tandem/io/tensor_bundle.h"
#include <tandem/tandem.h>

#include "tests/unit/folder.h"

namespace tandem::keras {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Save : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }

  Folder folder_;
};

template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "nothing was thrown";
}

Sequential network(std::int64_t units = 4) {
  return {Input({3}), Dense(units, {.activation = "relu"}), BatchNormalization(), Dense(2)};
}

const Tensor kX{{1.0, -2.0, 0.5}, {0.25, 3.0, -1.0}};
const Tensor kY{{1.0, 0.0}, {0.0, 1.0}};

void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].array(), b[i].array()) << i;
}

TEST_F(Save, WeightsComeBack) {
  const Sequential model = network(), other = network();
  model.compile({.optimizer = "adam", .loss = "mse"});
  for (int i = 0; i < 3; ++i) model.train_on_batch(kX, kY);
  model.save_weights(path("w"));
  other.load_weights(path("w"));
  expect_equal(other.get_weights(), model.get_weights());
  EXPECT_EQ(other.predict_on_batch(kX).array(), model.predict_on_batch(kX).array());
}

TEST_F(Save, NamesOfKerasFilesAndFoldersAreRefused) {
  const Sequential model = network();
  const auto refused = [](const auto& action) { return error_of<InvalidArgumentError>(action); };
  for (const char* ending : {".h5", ".hdf5", ".keras"}) {
    EXPECT_THAT(refused([&] { model.save_weights(path("w") + ending); }),
                AllOf(HasSubstr("Keras' own format"), HasSubstr("a checkpoint of TensorFlow"),
                      HasSubstr("give '" + path("w") + "'")));
  }
  EXPECT_THAT(refused([&] { model.save_weights(folder_.path().string()); }),
              HasSubstr("is a folder. What is written is a checkpoint"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_THAT(refused([&] { model.load_weights(folder_.path().string()); }),
              HasSubstr("is a folder"));
  fs::write_file(path("w.h5"), "HDF");
  EXPECT_THAT(refused([&] { model.load_weights(path("w.h5")); }),
              HasSubstr("model.save_weights(\"PATH.weights.h5\")"));
}

TEST_F(Save, NamesAreThoseOfKeras) {
  network().save_weights(path("w"));
  const std::string operation = "model/_functional/_operations/";
  const std::string value = "/.ATTRIBUTES/VARIABLE_VALUE";
  EXPECT_THAT(io::TensorBundleReader(path("w")).names(),
              ElementsAre("_CHECKPOINTABLE_OBJECT_GRAPH", operation + "1/_kernel" + value,
                          operation + "1/bias" + value, operation + "2/beta" + value,
                          operation + "2/gamma" + value, operation + "2/moving_mean" + value,
                          operation + "2/moving_variance" + value, operation + "3/_kernel" + value,
                          operation + "3/bias" + value, "save_counter" + value));
}

// The numbers of the model's operations that have weights.
std::set<int> operations_with_weights(const std::string& checkpoint) {
  std::set<int> numbers;
  const std::string list = "_operations/";
  for (const std::string& name : io::TensorBundleReader(checkpoint).names()) {
    const std::size_t at = name.find(list);
    if (at != std::string::npos) numbers.insert(std::stoi(name.substr(at + list.size())));
  }
  return numbers;
}

// The numbers are those of Keras 3: what computes the masks comes between the layers.
TEST_F(Save, OpsThatComputeMasksCountAmongTheOperations) {
  const auto numbers = [&](const Model& model) {
    model.save_weights(path("w"));
    return operations_with_weights(path("w"));
  };
  const auto tokens = Input({5}, {.dtype = int32});
  const auto text = [&] { return Embedding(9, 4, {.mask_zero = true})(tokens); };
  EXPECT_THAT(numbers(Model(tokens, Dense(2)(LSTM(3)(text())))), ElementsAre(1, 3, 4));
  EXPECT_THAT(numbers(Sequential{Input({5, 4}), Masking(), GRU(3), Dense(2)}), ElementsAre(4, 5));
  EXPECT_THAT(numbers(Sequential{Input({5, 4}), Masking(), Dense(3), Flatten(), Dense(2)}),
              ElementsAre(2, 4))
      << "no one looks at the mask";
  EXPECT_THAT(numbers(Model(tokens, Dense(2)(LSTM(3)(Add()({text(), text()}))))),
              ElementsAre(1, 2, 7, 8));
  EXPECT_THAT(numbers(Model(tokens, Dense(2)(LSTM(3)(Concatenate()({text(), text()}))))),
              ElementsAre(1, 2, 14, 15));
  const auto x = Input({3}), unused = Input({4});
  EXPECT_THAT(numbers(Model({x, unused}, Dense(2)(Dense(3)(x)))), ElementsAre(1, 3));
  const std::string bf16 = "mixed_bfloat16";
  EXPECT_THAT(numbers(Sequential{Input({5, 4}), Masking({.dtype = bf16}), GRU(3, {.dtype = bf16}),
                                 Dense(2, {.dtype = bf16})}),
              ElementsAre(5, 6))
      << "the mask is one of what was cast";
}

TEST_F(Save, FilesThatCountOnlyLayersAreRead) {
  const auto model = [](const Layer& second) {
    return Sequential{Input({5, 4}), second, GRU(3), Dense(2)};
  };
  const Sequential plain = model(Dropout(0.5)), masked = model(Masking());
  plain.save_weights(path("w"));
  EXPECT_THAT(operations_with_weights(path("w")), ElementsAre(2, 3));
  masked.load_weights(path("w"));
  expect_equal(masked.get_weights(), plain.get_weights());
}

TEST_F(Save, StackedCellsAreReadBackButNotFromTensorFlow) {
  const auto model = [](const Layer& recurrent) {
    return Sequential{Input({5, 4}), recurrent, Dense(2)};
  };
  const auto stack = [] { return RNN(StackedRNNCells({LSTMCell(3), GRUCell(4)})); };
  const Sequential ours = model(stack()), again = model(stack());
  testing::internal::CaptureStderr();
  ours.save_weights(path("w"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("StackedRNNCells"));
  again.load_weights(path("w"));
  expect_equal(again.get_weights(), ours.get_weights());
  // Like TensorFlow writes it: without the cells.
  model(GlobalAveragePooling1D()).save_weights(path("without"));
  EXPECT_THAT(error_of<NotFoundError>([&] { again.load_weights(path("without")); }),
              HasSubstr("TensorFlow writes no weights of StackedRNNCells"));
}

TEST_F(Save, TrainingGoesOnWithTheOptimizersState) {
  const Sequential model = network(), other = network();
  for (const Sequential& m : {model, other}) m.compile({.optimizer = "adam", .loss = "mse"});
  for (int i = 0; i < 3; ++i) model.train_on_batch(kX, kY);
  model.save_weights(path("w"), {.optimizer = true});
  other.load_weights(path("w"), {.optimizer = true});
  EXPECT_EQ(other.optimizer().iterations(), 3);
  for (const Sequential& m : {model, other}) m.train_on_batch(kX, kY);
  expect_equal(other.get_weights(), model.get_weights());

  network().load_weights(path("w"));  // the weights alone
  model.save_weights(path("bare"));
  EXPECT_THAT(
      error_of<NotFoundError>([&] { other.load_weights(path("bare"), {.optimizer = true}); }),
      HasSubstr("Optimizer Adam, variable 'adam/iteration'"));
  EXPECT_THROW(network().save_weights(path("w"), {.optimizer = true}), FailedPreconditionError);
}

TEST_F(Save, SequentialAndFunctionalModelsOfEqualLayersExchangeWeights) {
  const Sequential model{Input({3}), Dense(2)};
  const auto x = Input({3});
  const Model other(x, Dense(2)(x));
  model.save_weights(path("w"));
  other.load_weights(path("w"));
  expect_equal(other.get_weights(), model.get_weights());
  other.save_weights(path("v"));
  model.load_weights(path("v"));
}

TEST_F(Save, TheStateOfAnotherOptimizerIsRefused) {
  const Tensor x = random::normal({4, 3}), y = random::normal({4, 2});
  const Sequential model{Input({3}), Dense(2)}, other{Input({3}), Dense(2)};
  model.compile({.optimizer = "adam", .loss = "mse"});
  other.compile({.optimizer = "adadelta", .loss = "mse"});
  model.train_on_batch(x, y);
  model.save_weights(path("w"), {.optimizer = true});
  // As many values of the same shapes, with another meaning.
  const std::vector<Tensor> before = other.get_weights();
  EXPECT_THAT(
      error_of<InvalidArgumentError>([&] { other.load_weights(path("w"), {.optimizer = true}); }),
      HasSubstr("_kernel_momentum' in its place: it is a checkpoint of another optimizer"));
  expect_equal(other.get_weights(), before);
  other.load_weights(path("w"));
}

TEST_F(Save, SharedLayersAreSavedOnce) {
  const auto x = Input({3});
  const Dense shared(3);
  const Model model(x, shared(shared(x)));
  model.save_weights(path("w"));
  EXPECT_EQ(io::TensorBundleReader(path("w")).names().size(), 4u);
  model.load_weights(path("w"));
}

class Wrapped final : public LayerImpl {
 public:
  Wrapped() : LayerImpl("Wrapped"), inner_(add_layer(Dense(3), "inner")) { add_layer(Dense(1)); }
  void build(const PartialShape& input) override {
    factor_ = add_weight("factor.of", {input.dim(-1)});
    for (const Layer& layer : sublayers()) layer.build(input);
  }
  Tensor call(const Tensor& x, bool) override { return inner_(x * factor_); }

 private:
  Layer inner_;
  Variable factor_;
};

TEST_F(Save, LayersOfOnesOwnAreSavedByTheirNames) {
  const Sequential model{Input({3}), make_layer<Wrapped>()},
      other{Input({3}), make_layer<Wrapped>()};
  model.save_weights(path("w"));
  const io::TensorBundleReader reader(path("w"));
  const std::string layer = "model/_functional/_operations/1/";
  for (const char* name : {"factor..of", "inner/_kernel", "layers/1/bias"})
    EXPECT_TRUE(reader.contains(layer + name + "/.ATTRIBUTES/VARIABLE_VALUE")) << name;
  other.load_weights(path("w"));
  expect_equal(other.get_weights(), model.get_weights());
}

TEST_F(Save, SaysWhatDoesNotFitAndChangesNothing) {
  network().save_weights(path("w"));
  const Sequential wider = network(5);
  const std::vector<Tensor> before = wider.get_weights();
  const std::string shapes = error_of<InvalidArgumentError>([&] { wider.load_weights(path("w")); });
  EXPECT_THAT(shapes, HasSubstr("(Dense), variable 'dense"));
  EXPECT_THAT(shapes, HasSubstr("is float[3,5], but checkpoint"));
  EXPECT_THAT(shapes, HasSubstr("has float[3,4] for it"));
  expect_equal(wider.get_weights(), before);

  const Sequential doubles{Input({3}, {.dtype = float64}), Dense(4, {.dtype = float64})};
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { doubles.load_weights(path("w")); }),
              HasSubstr("is double[3,4], but checkpoint"));

  const Sequential longer{Input({3}), Dense(4), BatchNormalization(), Dense(2), Dense(2)};
  EXPECT_THAT(error_of<NotFoundError>([&] { longer.load_weights(path("w")); }),
              HasSubstr("has no value for it (model/_functional/_operations/4/_kernel"));
  const Sequential shorter{Input({3}), Dense(4)};
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { shorter.load_weights(path("w")); }),
              HasSubstr("it is a checkpoint of another model"));

  EXPECT_THROW(network().load_weights(path("none")), NotFoundError);
  const Sequential unbuilt{Dense(2)};
  EXPECT_THROW(unbuilt.save_weights(path("u")), FailedPreconditionError);
  EXPECT_THROW(unbuilt.load_weights(path("w")), FailedPreconditionError);
  std::string data = fs::read_file(path("w.data-00000-of-00001"));
  data[data.size() / 2] ^= 1;
  fs::write_file(path("w.data-00000-of-00001"), data);
  EXPECT_THROW(network().load_weights(path("w")), DataLossError);
}

TEST_F(Save, CheckpointsWithoutObjectsAreRefused) {
  io::TensorBundleWriter writer(path("w"));
  writer.add("dense/kernel", Array::vector<float>({1, 2}));
  writer.finish();
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { network().load_weights(path("w")); }),
              HasSubstr("holds no objects"));
}

TEST_F(Save, ExportedGraphComputesWhatPredictDoes) {
  const auto a = Input({3}, {.name = "first"}), b = Input({2}, {.name = "second"});
  const auto sum = Concatenate()({Dense(4)(a), b});
  const Model model({a, b}, {Dense(2, {.name = "left"})(sum), Dense(1, {.name = "right"})(sum)});
  const ExportedModel exported = model.export_graph(path("model.pb"));
  EXPECT_THAT(exported.inputs, ElementsAre("first:0", "second:0"));
  EXPECT_THAT(exported.outputs, ElementsAre("left:0", "right:0"));
  const io::GraphSession session(io::read_graph_def(path("model.pb")));
  for (const std::int64_t batch : {1, 5}) {
    const Tensor x = random::normal({batch, 3}), y = random::normal({batch, 2});
    const std::vector<Tensor> expected = model.predict_all({x, y});
    const std::vector<Array> got =
        session.run({{"first", x.array()}, {"second", y.array()}}, exported.outputs);
    ASSERT_EQ(got.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      const Array want = expected[i].array();
      ASSERT_EQ(got[i].shape(), want.shape());
      for (std::int64_t k = 0; k < want.num_elements();
           ++k)  // constant weights: sums in another order
        EXPECT_NEAR(got[i].data<float>()[k], want.data<float>()[k], 1e-6);
    }
  }
}

TEST_F(Save, ExportTakesNamesAndText) {
  const Sequential model = network();
  const ExportedModel exported =
      model.export_graph(path("model.pbtxt"), {.inputs = {"x"}, .outputs = {"y"}});
  EXPECT_THAT(exported.inputs, ElementsAre("x:0"));
  EXPECT_THAT(exported.outputs, ElementsAre("y:0"));
  EXPECT_THAT(fs::read_file(path("model.pbtxt")), HasSubstr("name: \"x\""));
  EXPECT_THROW(model.export_graph(path("m.pb"), {.inputs = {"x", "y"}}), InvalidArgumentError);
  EXPECT_THROW(Sequential{Dense(2)}.export_graph(path("m.pb")), FailedPreconditionError);
  EXPECT_THROW(model.export_graph(path("m.pb"), {.outputs = {"a b"}}), InvalidArgumentError);
}

TEST_F(Save, ExportTakesLayersOfAnyName) {
  const auto x = Input({3}, {.name = "Const"});
  const Model odd(x, Dense(2, {.name = "MatMul"})(Dense(2, {.name = "my layer"})(x)));
  ExportedModel exported = odd.export_graph(path("m.pb"));
  EXPECT_THAT(exported.inputs, ElementsAre("Const:0"));
  EXPECT_THAT(exported.outputs, ElementsAre("MatMul:0"));
  exported = odd.export_graph(path("m.pb"), {.inputs = {"MatMul"}});
  EXPECT_THAT(exported.outputs, ElementsAre("MatMul_1:0"));
  const Model spaced(x, Dense(2, {.name = "my layer"})(x));
  EXPECT_THAT(spaced.export_graph(path("m.pb")).outputs, ElementsAre("my_layer:0"));
  const Tensor one{{1.0, 2.0, 3.0}};
  const io::GraphSession session(io::read_graph_def(path("m.pb")));
  EXPECT_EQ(session.run({{"Const", one.array()}}, {"my_layer"})[0].shape(), (Shape{1, 2}));
}

}  // namespace
}  // namespace tandem::keras
