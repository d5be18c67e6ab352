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

std::vector<std::string> names(const std::vector<Layer>& layers) {
  std::vector<std::string> names;
  for (const Layer& layer : layers) names.push_back(layer.name());
  return names;
}

TEST(Sequential, IsBuiltByInputOrFirstUse) {
  const Sequential known{Input({4}), Dense(3), Dense(2)};
  EXPECT_TRUE(known.built());
  EXPECT_EQ(known.count_params(), 4 * 3 + 3 + 3 * 2 + 2);
  const Sequential later{Dense(3), Dense(2)};
  EXPECT_FALSE(later.built());
  EXPECT_EQ(later(zeros({5, 4})).shape(), (Shape{5, 2}));
  EXPECT_TRUE(later.built());
  EXPECT_EQ(later(zeros({7, 4})).shape(), (Shape{7, 2})) << "any batch size";
}

TEST(Input, TakesNoneForSizesThatAreNotKnown) {
  EXPECT_EQ(Input({none, 8}).shape(), (PartialShape{-1, -1, 8}));
  EXPECT_EQ(Input({4}, {.batch_size = 2}).shape(), (PartialShape{2, 4}));
  EXPECT_EQ(Input({}).shape(), (PartialShape{-1}));
  EXPECT_EQ(Input(PartialShape{-1, 3}).shape(), (PartialShape{-1, -1, 3}));
}

TEST(Sequential, CannotHoldItself) {
  const Sequential model;
  EXPECT_THROW(model.add(model), InvalidArgumentError);
  const Sequential inner{Dense(1)};
  model.add(inner);
  EXPECT_THROW(inner.add(model), InvalidArgumentError);
  inner.add(Dense(2));
  EXPECT_EQ(model(ones({1, 2})).shape(), (Shape{1, 2}));
}

TEST(Sequential, ChecksItsLayersAndInputs) {
  EXPECT_THAT(error_of([] {
                Sequential{Dense(1, {.name = "a"}), Dense(1, {.name = "a"})};
              }),
              HasSubstr("Name 'a' is already the name of a layer"));
  EXPECT_THAT(error_of([] { Sequential{Dense(1), Input({2})}; }), HasSubstr("must be the first"));
  EXPECT_THAT(error_of([] { Sequential{}(zeros({1, 1})); }), HasSubstr("has no layers"));
  const Sequential model{Input({8, 8, 1}), Flatten()};
  EXPECT_THAT(error_of([&] {
                model(zeros({2, 7, 8, 1}));
              }),
              HasSubstr("expected shape (None, 8, 8, 1), found shape (2, 7, 8, 1)"));
  EXPECT_THAT(error_of([&] { model.add(Input({3})); }),
              HasSubstr("takes inputs of shape (None, 8, 8, 1) already"));
  const Sequential later{Dense(1)};
  later.build({-1, 2});
  EXPECT_THAT(error_of([&] { later.add(Input({2})); }), HasSubstr("(None, 2) already"));
}

TEST(Sequential, BuildsLayersAsTheyComeAfterAnInput) {
  clear_session();
  const Sequential model;
  model.add(Input({4}));
  EXPECT_FALSE(model.built());
  model.add(Dense(3));
  EXPECT_TRUE(model.built());
  EXPECT_EQ(model.weights().size(), 2u);
  model.add(Dense(2));
  EXPECT_EQ(model.count_params(), 4 * 3 + 3 + 3 * 2 + 2);
  EXPECT_THAT(model.summary_text(), HasSubstr("(None, 2)"));
  EXPECT_EQ(model(zeros({5, 4})).shape(), (Shape{5, 2}));
}

TEST(Sequential, TakesLayersAfterItWasBuiltAndUsed) {
  const Tensor x = ones({8, 4}), y = ones({8, 1});
  const Sequential model{Dense(3)};
  model.compile({.optimizer = "adam", .loss = "mse"});
  EXPECT_EQ(model.predict(x, {.verbose = Verbose::kSilent}).shape(), (Shape{8, 3}));
  model.train_on_batch(x, ones({8, 3}));
  const Tensor kept = model.weights()[0].read_value();
  model.add(Dense(1));
  EXPECT_TRUE(all_equal(model.weights()[0].read_value(), kept));
  EXPECT_EQ(model.weights().size(), 4u);
  EXPECT_EQ(model.predict(x, {.verbose = Verbose::kSilent}).shape(), (Shape{8, 1}));
  model.train_on_batch(x, y);
  EXPECT_FALSE(all_equal(model.weights()[0].read_value(), kept)) << "trained with all its weights";
}

TEST(Sequential, KeepsItsLayersWhereOneDoesNotFit) {
  const Sequential model{Input({4}), Dense(3)};
  EXPECT_THAT(error_of([&] { model.add(Conv2D(2, 3)); }), HasSubstr("expected ndim=4"));
  EXPECT_EQ(model.layers().size(), 1u);
  EXPECT_EQ(model(zeros({5, 4})).shape(), (Shape{5, 3}));
  const Sequential empty{Input({4})};
  EXPECT_THAT(error_of([&] { empty.add(Conv2D(2, 3)); }), HasSubstr("expected ndim=4"));
  EXPECT_FALSE(empty.built());
  empty.add(Dense(2));
  EXPECT_EQ(empty.weights().size(), 2u);
}

// The names of losses are those of outputs, which are the last layer's.
TEST(Sequential, StaysAsItIsWhereWhatItWasCompiledWithDoesNotFit) {
  const Sequential model{Input({4}), Dense(3, {.name = "a"})};
  CompileOptions options;
  options.optimizer = "sgd";
  options.loss = std::map<std::string, Loss>{{"a", Loss("mse")}};
  model.compile(options);
  EXPECT_THROW(model.add(Dense(1, {.name = "b"})), InvalidArgumentError);
  EXPECT_EQ(model.layers().size(), 1u);
  EXPECT_EQ(model(zeros({2, 4})).shape(), (Shape{2, 3}));
  model.train_on_batch(ones({8, 4}), ones({8, 3}));
  EXPECT_THROW(model.pop(), InvalidArgumentError);
  EXPECT_EQ(model.layers().size(), 1u);
  EXPECT_EQ(model(zeros({2, 4})).shape(), (Shape{2, 3}));
  model.train_on_batch(ones({8, 4}), ones({8, 3}));
}

TEST(Sequential, HasANewOptimizerForNewLayersInMixedFloat16Too) {
  mixed_precision::set_global_policy("mixed_float16");
  const Sequential model{Input({4}), Dense(3)};
  model.compile({.optimizer = "adam", .loss = "mse"});
  model.train_on_batch(ones({8, 4}), ones({8, 3}));
  EXPECT_NO_THROW(model.add(Dense(1)));
  EXPECT_NO_THROW(model.train_on_batch(ones({8, 4}), ones({8, 1})));
  mixed_precision::set_global_policy("float32");
}

TEST(Sequential, ForgetsAnInputThatItWasNotGiven) {
  const Sequential model{Dense(3)};
  model(zeros({2, 4}));
  model.pop();
  model.add(Dense(2));
  EXPECT_EQ(model(zeros({2, 7})).shape(), (Shape{2, 2}));
}

TEST(Sequential, LetsItsLastLayerBeTakenAway) {
  const Tensor x = ones({8, 4});
  const Sequential model{Input({4}), Dense(3), Dense(1, {.name = "head"})};
  EXPECT_EQ(model.predict(x, {.verbose = Verbose::kSilent}).shape(), (Shape{8, 1}));
  EXPECT_EQ(model.pop().name(), "head");
  EXPECT_EQ(model.predict(x, {.verbose = Verbose::kSilent}).shape(), (Shape{8, 3}));
  model.add(Dense(2, {.name = "head"}));
  EXPECT_EQ(model.predict(x, {.verbose = Verbose::kSilent}).shape(), (Shape{8, 2}));
  model.pop();
  model.pop();
  EXPECT_FALSE(model.built());
  EXPECT_THROW(model.pop(), FailedPreconditionError);
  model.add(Dense(5));
  EXPECT_EQ(model(x).shape(), (Shape{8, 5})) << "the Input stayed";
}

TEST(Handles, ThatWereMovedFromCanStillBeUsed) {
  KerasTensor input = Input({4}, {.name = "kept"});
  const KerasTensor other_input = std::move(input);
  EXPECT_EQ(input.name(), other_input.name());
  Metric metric("mae");
  const Metric other_metric = std::move(metric);
  metric.update_state(Tensor{1.0}, Tensor{3.0});
  EXPECT_TRUE(all_equal(other_metric.result(), Tensor(2.0f)));
  Optimizer optimizer("sgd");
  const Optimizer other_optimizer = std::move(optimizer);
  EXPECT_EQ(optimizer.iterations(), 0);
  Initializer initializer("ones");
  const Initializer other_initializer = std::move(initializer);
  EXPECT_TRUE(all_equal(initializer({2}), ones({2})));
}

TEST(Sequential, ElementsThatAreNoBatchesAreNoEndOfIt) {
  const auto elements = data::from_tensor_slices({zeros({12, 4}), zeros({12, 1})});
  const Sequential model{Dense(1)};
  model.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THAT(error_of([&] { model.fit(elements, {.verbose = Verbose::kSilent}); }),
              HasSubstr("did you call batch()?"));
  EXPECT_FALSE(model.built());
  EXPECT_EQ(model.fit(elements.batch(4), {.verbose = Verbose::kSilent}).epochs().size(), 1u);
}

TEST(Sequential, CanBeAddedToAndNested) {
  const Sequential inner{Dense(3), Activation("relu")};
  const Sequential outer({}, "outer");
  outer.add(inner);
  outer.add(Dense(1));
  EXPECT_EQ(outer(zeros({2, 4})).shape(), (Shape{2, 1}));
  EXPECT_EQ(outer.weights().size(), 4u);
  EXPECT_EQ(outer.get_layer(inner.name()).weights().size(), 2u);
  EXPECT_THAT(error_of([&] { outer.get_layer("x"); }),
              HasSubstr("No such layer: 'x'. Model 'outer' has the layers"));
}

TEST(Model, ConnectsSeveralInputsAndOutputs) {
  clear_session();
  const KerasTensor image = Input({4}, {.name = "image"});
  const KerasTensor text = Input({3}, {.name = "text"});
  const KerasTensor both = Concatenate()({Dense(2)(image), text});
  const Model model({image, text},
                    {Dense(1, {.name = "price"})(both), Dense(5, {.name = "kind"})(both)});
  EXPECT_EQ(model.name(), "functional");
  EXPECT_THAT(names(model.layers()),
              ElementsAre("image", "dense", "text", "concatenate", "price", "kind"));
  const std::vector<Tensor> outputs =
      model.outputs(std::vector<Tensor>{zeros({2, 4}), zeros({2, 3})});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].shape(), (Shape{2, 1}));
  EXPECT_EQ(outputs[1].shape(), (Shape{2, 5}));
  EXPECT_THAT(error_of([&] { model(zeros({2, 4})); }), HasSubstr("has 2 inputs but was given 1"));
  EXPECT_THAT(
      error_of([&] {
        model({zeros({2, 4}), zeros({2, 9})});
      }),
      HasSubstr("Input 1 ('text') of model 'functional' has shape (None, 3) but was given (2, 9)"));
}

TEST(Model, SharesLayersThatAreCalledTwice) {
  const Dense shared(3);
  const KerasTensor a = Input({4});
  const KerasTensor b = Input({4});
  const Model model({a, b}, Add()({shared(a), shared(b)}));
  EXPECT_EQ(model.weights().size(), 2u);
  const Tensor x = ones({1, 4});
  EXPECT_TRUE(all_equal(model({x, x}), shared(x) + shared(x)));
}

TEST(Model, MayBeginInTheMiddleOfAnother) {
  const KerasTensor x = Input({4});
  const KerasTensor hidden = Dense(3)(x);
  const KerasTensor y = Dense(2)(hidden);
  const Model whole(x, y), end(hidden, y), begin(x, hidden);
  const Tensor value = ones({1, 4});
  EXPECT_TRUE(all_equal(end(begin(value)), whole(value)));
  EXPECT_EQ(end.weights().size(), 2u);
}

TEST(Model, IsALayer) {
  const KerasTensor x = Input({4});
  const Model inner(x, Dense(3)(x), "inner");
  const KerasTensor z = Input({4});
  const Model outer(z, Dense(1)(inner(z)));
  EXPECT_EQ(outer(ones({2, 4})).shape(), (Shape{2, 1}));
  EXPECT_THAT(outer.summary_text({.line_length = 80}), HasSubstr("inner (Functional)"));
  EXPECT_THAT(outer.summary_text({.line_length = 80, .expand_nested = true}), HasSubstr("└ "));
}

TEST(Model, NoticesWhatIsDisconnected) {
  const KerasTensor a = Input({4}, {.name = "a"});
  const KerasTensor b = Input({4}, {.name = "b"});
  EXPECT_THAT(error_of([&] { Model(a, Add()({a, b})); }), HasSubstr("the outputs depend on 'b'"));
  EXPECT_THAT(error_of([&] { Model(a, Dense(1, {.name = "a"})(a)); }),
              HasSubstr("\"a\" is used more than once"));
}

TEST(Model, PassesTrainingOnUnlessACallSaysOtherwise) {
  const KerasTensor x = Input({1000});
  const Model usual(x, Dropout(0.5)(x));
  const Model always(x, Dropout(0.5)(x, {.training = true}));
  const Tensor value = ones({1, 1000});
  EXPECT_TRUE(all_equal(usual(value), value));
  EXPECT_FALSE(all_equal(usual(value, {.training = true}), value));
  EXPECT_FALSE(all_equal(always(value), value));
  EXPECT_FALSE(all_equal(always.predict(value, {.verbose = Verbose::kSilent}), value));
}

class Residual final : public ModelImpl {
 public:
  Residual() : ModelImpl("Residual"), inner_(add_layer(Dense(4))) {}
  Tensor call(const Tensor& x, bool training) override {
    return x + inner_(x, {.training = training});
  }

 private:
  Layer inner_;
};

TEST(Model, CanBeWrittenByTheUser) {
  utils::set_random_seed(3);
  const Model model = make_model<Residual>();
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = random::normal({32, 4}, {.seed = 1});
  const History history = model.fit(x, x * 2, {.epochs = 300, .verbose = Verbose::kSilent});
  EXPECT_LT(history["loss"].back(), history["loss"].front() / 2);
  EXPECT_THAT(model.summary_text({.line_length = 80}), HasSubstr("dense"));
}

TEST(Model, PredictsWithoutBeingCompiled) {
  const Sequential model{Dense(2)};
  const Tensor x = random::normal({70, 3}, {.seed = 1});
  const Tensor y = model.predict(x, {.verbose = Verbose::kSilent});
  EXPECT_EQ(y.shape(), (Shape{70, 2}));
  EXPECT_LT(reduce_max(abs(y - model(x))).item<float>(), 1e-6);
  EXPECT_EQ(model.predict_on_batch(x).shape(), (Shape{70, 2}));
  const auto dataset = data::from_tensor_slices({x, x}).batch(32);
  EXPECT_TRUE(all_equal(model.predict(dataset, {.verbose = Verbose::kSilent}), y))
      << "labels are passed over";
}

TEST(Model, MayBeDestroyedInAnyOrder) {
  Tensor y;
  KerasTensor kept = Input({3});
  {
    const Dense dense(2);
    const KerasTensor out = dense(kept);
    Model model(kept, out);
    y = model(ones({1, 3}));
    kept = out;
  }
  EXPECT_EQ(y.shape(), (Shape{1, 2}));
  EXPECT_EQ(Dense(1)(kept).shape(), PartialShape({-1, 1}));
}

}  // namespace
}  // namespace tandem::keras
