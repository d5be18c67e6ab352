#include "tandem/saved_model/saved_model.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/keras/layers.h"
#include "tandem/keras/model.h"
#include "tandem/ops/lookup.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/folder.h"

namespace tandem::saved_model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class E>
std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

PartialShape vector() { return PartialShape({-1}); }

TEST(SavedModel, VariablesFunctionsAndSignaturesComeBack) {
  const Folder folder;
  const Variable w(Tensor{1.0, 2.0}, {.name = "w"});
  const Variable steps(Tensor(3), {.trainable = false, .name = "steps"});
  auto scale = function([&](Tensor x) { return x * w; }, {.input_shapes = {vector()}});
  auto count = function([&] { return Tensor(steps.assign_add(1)); });
  Module layer;
  layer.set("w", w);
  Module model;
  model.set("layer", layer)
      .set("steps", steps)
      .set("answer", Tensor(42))
      .set("scale", Function(scale.concrete(Tensor{1.0, 1.0}), {.inputs = {"x"}}))
      .set("count", Function(count.concrete()));
  save(model, folder.file("m"),
       {.signatures = {{"serving_default", Signature(scale.concrete(Tensor{1.0, 1.0}),
                                                     {.inputs = {"x"}, .outputs = {"y"}})}}});
  w.assign({0.0, 0.0});  // is no part of what was saved

  const Module loaded = load(folder.file("m"));
  EXPECT_THAT(loaded.names(), ElementsAre("layer", "steps", "answer", "scale", "count"));
  EXPECT_EQ(loaded.variables().size(), 2u);
  EXPECT_EQ(loaded.trainable_variables().size(), 1u);
  EXPECT_EQ(loaded.variable("layer.w").name(), "w");
  EXPECT_EQ(loaded.constant("answer").item<int>(), 42);
  EXPECT_THAT(loaded.function("scale")(Tensor{10.0, 20.0}).tensor().to_vector<float>(),
              ElementsAre(10, 40));
  EXPECT_THAT(loaded.tags(), ElementsAre("serve"));
  EXPECT_THAT(loaded.signature_names(), ElementsAre("serving_default"));
  const Signature signature = loaded.signature();
  ASSERT_EQ(signature.inputs().size(), 1u);
  EXPECT_EQ(signature.inputs()[0].to_string(), "x: float[?]");
  const Tensor y = signature({{"x", Tensor{1.0, 1.0}}}).at("y");
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(1, 2));
  // Functions change the variables of their own model.
  EXPECT_EQ(loaded.function("count").call({}).tensor().item<int>(), 4);
  EXPECT_EQ(loaded.variable("steps").value().item<int>(), 4);
  EXPECT_EQ(load(folder.file("m")).variable("steps").value().item<int>(), 3);
  EXPECT_EQ(steps.value().item<int>(), 3);
}

TEST(SavedModel, ACallRunsTheTraceThatFits) {
  const Folder folder;
  auto twice = function([](Tensor x) { return x + x; });
  Module model;
  model.set("twice", Function({twice.concrete(Tensor{1.0, 2.0}), twice.concrete(Tensor{1, 2, 3})},
                              {.inputs = {"x"}}));
  save(model, folder.file("m"));
  const Function loaded = load(folder.file("m")).function("twice");
  EXPECT_EQ(loaded.arg_spec().to_string(), "(x)");
  EXPECT_EQ(loaded(Tensor{4, 5, 6}).tensor().dtype(), int32);
  EXPECT_EQ(loaded.call({}, {{"x", Tensor{4.0, 5.0}}}).tensor().dtype(), float32);
  const std::string unlike = error_of<InvalidArgumentError>([&] {
    loaded(Tensor{1.0, 2.0, 3.0, 4.0});
  });
  EXPECT_THAT(unlike, HasSubstr("Could not find matching concrete function"));
  EXPECT_THAT(unlike, HasSubstr("float[4]"));
  EXPECT_THAT(unlike, HasSubstr("x: int32[3]"));
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { loaded.call({}); }),
              HasSubstr("'x' is missing"));
  EXPECT_THAT(error_of<InvalidArgumentError>([&] {
                loaded.call({Tensor(1)}, {{"z", Tensor(1)}});
              }),
              HasSubstr("it has no argument 'z'"));
}

TEST(SavedModel, ALoadedModelIsTrainedTracedAndSavedAgain) {
  const Folder folder;
  const Variable w(Tensor{2.0, -1.0}, {.name = "w"});
  auto loss = function([&](Tensor x) { return math::reduce_sum(math::square(x * w)); },
                       {.input_shapes = {vector()}});
  Module model;
  model.set("w", w).set("loss", Function(loss.concrete(Tensor{1.0, 1.0}), {.inputs = {"x"}}));
  save(model, folder.file("m"), {.tags = {"serve", "mine"}});
  const Module loaded = load(folder.file("m"), {.tags = {"mine", "serve"}});
  const Tensor x{1.0, 3.0};
  GradientTape tape;
  const Tensor value = loaded.function("loss")(x);
  const auto gradients = tape.gradient(value, loaded.trainable_variables());
  EXPECT_THAT(gradients[0].to_vector<float>(), ElementsAre(4, -18));
  loaded.variable("w").assign_sub(gradients[0] * 0.1f);
  auto traced = function([f = loaded.function("loss")](Tensor t) { return f(t).tensor() * 2.f; });
  const float after = loaded.function("loss")(x).tensor().item<float>();
  EXPECT_FLOAT_EQ(traced(x).item<float>(), 2 * after);

  save(loaded, folder.file("again"));
  const Module again = load(folder.file("again"));
  EXPECT_THAT(again.tags(), ElementsAre("serve", "mine"));
  EXPECT_FLOAT_EQ(again.function("loss")(x).tensor().item<float>(), after);
}

TEST(SavedModel, CustomGradientsComeAlong) {
  const Folder folder;
  auto odd = function(
      [](Tensor x) {
        return math::reduce_sum(custom_gradient(
            [](std::span<const Tensor> in) { return std::vector<Tensor>{math::square(in[0])}; },
            [](std::span<const Tensor> in, std::span<const Tensor>, std::span<const Tensor> grads) {
              return std::vector<Tensor>{grads[0] * in[0] * 100.f};
            },
            {x})[0]);
      },
      {.input_shapes = {vector()}});
  Module model;
  model.set("odd", Function(odd.concrete(Tensor{1.0}), {.inputs = {"x"}}));
  save(model, folder.file("m"));
  for (int i = 0; i < 2; ++i) {
    const Module loaded = load(folder.file("m"));
    GradientTape tape;
    const Tensor x{1.0, 2.0};
    tape.watch(x);
    const Tensor y = loaded.function("odd")(x);
    EXPECT_FLOAT_EQ(y.item<float>(), 5);
    EXPECT_THAT(tape.gradient(y, x).to_vector<float>(), ElementsAre(100, 200));
    save(loaded, folder.file("m"));  // replaces it
  }
  EXPECT_EQ(folder.files(), 1u);
}

TEST(SavedModel, TablesAndAssets) {
  const Folder folder;
  fs::write_file(folder.file("words.txt"), "salt\npepper\n");
  const Asset asset(folder.file("words.txt"));
  const lookup::StaticHashTable ids(
      lookup::TextFileInitializer{.filename = folder.file("words.txt")}, -1);
  const lookup::MutableHashTable counts(string, int64, std::int64_t{0});
  counts.insert({"salt"}, tensor<std::int64_t>({7}));
  auto find = function([&](Tensor words) { return ids.lookup(words) + counts.lookup(words); },
                       {.input_shapes = {vector()}});
  auto read = function([&] { return io::read_file(asset.path()); });
  Module model;  // `counts` is captured, but is no part
  model.set("ids", Table(ids))
      .set("words", asset)
      .set("find", Function(find.concrete(Tensor{"salt"}), {.inputs = {"words"}}))
      .set("read", Function(read.concrete()));
  save(model, folder.file("m"));
  fs::write_file(folder.file("words.txt"), "other\n");
  const Module loaded = load(folder.file("m"));
  EXPECT_THAT(
      loaded.function("find")(Tensor{"pepper", "salt", "sugar"}).tensor().to_vector<std::int64_t>(),
      ElementsAre(1, 7, -1));
  EXPECT_EQ(loaded.function("read").call({}).tensor().item<std::string>(), "salt\npepper\n");
  EXPECT_EQ(loaded.asset("words").path().item<std::string>(),
            folder.file("m") + "/assets/words.txt");
  EXPECT_EQ(loaded.table("ids").size().item<std::int64_t>(), 2);
  EXPECT_TRUE(loaded.has("_captured"));
}

TEST(SavedModel, AModelOfKerasIsServed) {
  const Folder folder;
  const keras::Sequential model{keras::Input({3}), keras::Dense(4, {.activation = "relu"}),
                                keras::Dense(2)};
  const Tensor x{{1.0, 2.0, 3.0}, {-1.0, 0.5, 2.0}};
  const Tensor expected = model.predict_on_batch(x);
  save(model, folder.file("m"));
  const Module loaded = load(folder.file("m"));
  EXPECT_EQ(loaded.trainable_variables().size(), 4u);
  EXPECT_EQ(loaded.module("trainable_variables").names().size(), 4u);
  EXPECT_EQ(loaded.function("serve")(x).tensor().to_vector<float>(), expected.to_vector<float>());
  const Signature serving = loaded.signature();
  const Tensor y = serving({{serving.inputs()[0].name, x}}).at("output_0");
  EXPECT_EQ(y.to_vector<float>(), expected.to_vector<float>());
}

TEST(SavedModel, ErrorsNameWhatIsWrongAndWhatThereIs) {
  const Folder folder;
  EXPECT_THAT(error_of<NotFoundError>([&] { load(folder.file("nothing")); }),
              HasSubstr(folder.file("nothing")));
  std::filesystem::create_directories(folder.file("other"));
  EXPECT_THAT(error_of<NotFoundError>([&] { load(folder.file("other")); }),
              HasSubstr("SavedModel file does not exist at: " + folder.file("other")));
  fs::write_file(folder.file("other/file"), "x");
  Module model;
  model.set("v", Variable(Tensor(1.f)));
  EXPECT_THAT(error_of<AlreadyExistsError>([&] { save(model, folder.file("other")); }),
              HasSubstr("is no SavedModel"));
  save(model, folder.file("m"));
  EXPECT_THAT(error_of<NotFoundError>([&] { load(folder.file("m"), {.tags = {"gpu"}}); }),
              HasSubstr("{'serve'}"));
  const Module loaded = load(folder.file("m"));
  EXPECT_THAT(error_of<NotFoundError>([&] { loaded.variable("w"); }), HasSubstr("'v'"));
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { loaded.function("v"); }),
              HasSubstr("'v' is a variable, not a function"));
  EXPECT_THAT(error_of<NotFoundError>([&] { loaded.signature(); }), HasSubstr("It has none"));
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { model.set("a.b", Tensor(1)); }),
              HasSubstr("'a.b'"));
  Module inner;
  inner.set("outer", model);
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { model.set("inner", inner); }),
              HasSubstr("holds the one"));
}

TEST(SavedModel, NothingIsLeftOfASaveThatFails) {
  const Folder folder;
  Module model;
  model.set("asset", Asset(folder.file("missing.txt")));
  EXPECT_THROW(save(model, folder.file("m")), NotFoundError);
  EXPECT_EQ(folder.files(), 0u);
}

}  // namespace
}  // namespace tandem::saved_model
