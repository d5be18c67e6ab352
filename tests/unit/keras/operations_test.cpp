// Arithmetic on the tensors of a model, in files. That the real Keras reads it, and that its own is
// read: tests/conformance/keras_files.py.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/keras/keras.h"
#include "tandem/ops/ops.h"

namespace tandem::keras {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// The outputs of a model out of the JSON of `model`, which give what those of `model` give.
Tensor again(const Model& model, const std::vector<Tensor>& inputs) {
  const Model read = models::model_from_json(model.to_json());
  EXPECT_EQ(read.to_json(), model.to_json());
  const auto wanted = model.predict_all(inputs, {.verbose = Verbose::kSilent});
  const auto found = read.predict_all(inputs, {.verbose = Verbose::kSilent});
  EXPECT_EQ(found[0].shape(), wanted[0].shape());
  EXPECT_TRUE(found[0].array() == wanted[0].array()) << model.to_json();
  return found[0];
}
Tensor of_one(const KerasTensor& x, const KerasTensor& y, const Tensor& value) {
  return again(Model({x}, {y}), {value});
}

const Tensor kRows{{1.0f, -2.0f, 3.0f, 4.0f}, {0.5f, 8.0f, -1.0f, 2.0f}};

TEST(KerasOperations, ArithmeticComesBack) {
  const KerasTensor a = Input({4}, {.name = "a"}), b = Input({4}, {.name = "b"});
  EXPECT_EQ(again(Model({a, b}, {a - b}), {kRows, kRows * 3.0}).to_vector<float>()[1], 4.0f);
  EXPECT_EQ(of_one(a, a * 2, kRows).to_vector<float>()[3], 8.0f);
  EXPECT_EQ(of_one(a, 2.5 - a, kRows).to_vector<float>()[0], 1.5f);
  EXPECT_EQ(of_one(a, 1.0 / a, kRows).to_vector<float>()[3], 0.25f);
  EXPECT_EQ(of_one(a, -(a % 2.0), kRows).to_vector<float>()[2], -1.0f);
  EXPECT_EQ(of_one(a, a + Tensor{1.0f, 2.0f, 3.0f, 4.0f}, kRows).to_vector<float>()[3], 8.0f);
  EXPECT_EQ(of_one(a, cast(a > 0.75, float32), kRows).to_vector<float>()[4], 0.0f);
}

TEST(KerasOperations, HaveKerasForm) {
  const KerasTensor x = Input({4}, {.name = "x"});
  const std::string json = Model({x}, {reduce_mean(2 * x, 1, {.keepdims = true})}).to_json();
  EXPECT_THAT(json,
              AllOf(HasSubstr(R"("module":"keras.src.ops.numpy","class_name":"Multiply")"),
                    HasSubstr(R"("registered_name":"Multiply")"),
                    HasSubstr(R"("args":[2,{"class_name":"__keras_tensor__")"),
                    HasSubstr(R"("class_name":"Mean")"), HasSubstr(R"("axis":1,"keepdims":true)")));
}

TEST(KerasOperations, FunctionsComeBack) {
  const KerasTensor x = Input({4});
  for (const KerasTensor& y : {abs(x),
                               exp(x),
                               sqrt(square(x)),
                               pow(x, 2.0),
                               tandem::maximum(x, 0.0),
                               tandem::minimum(1.0, x),
                               tanh(x),
                               reduce_sum(x, -1),
                               reduce_mean(x),
                               reduce_max(x, {0, 1}),
                               reduce_prod(x, 1),
                               cumsum(x, 1),
                               cumsum(x),
                               expand_dims(x, -1),
                               reshape(x, {-1, 2, 2}),
                               transpose(x),
                               transpose(x, {1, 0}),
                               concat({x, x * 2.0}, 1),
                               stack({x, x}, 1),
                               matmul(x, transpose(x)),
                               where(x > 0.0, x, x * 0.1),
                               gather(x, Tensor{1, 0}),
                               gather(x, Tensor{3, 0}, 1),
                               nn::relu(x),
                               nn::softmax(x),
                               nn::gelu(x),
                               nn::leaky_relu(x, 0.3),
                               nn::swish(x),
                               activations::gelu(x, true),
                               activations::elu(x, 0.5),
                               activations::softmax(x, 0),
                               activations::sparsemax(x),
                               stop_gradient(x)}) {
    of_one(x, y, kRows);
  }
}

TEST(KerasOperations, BracketsPickParts) {
  const KerasTensor x = Input({4});
  const KerasTensor column = x[{Slice(), 1}];
  EXPECT_EQ(column.shape(), PartialShape({-1}));
  EXPECT_THAT(of_one(x, column, kRows).to_vector<float>(), ElementsAre(-2.0f, 8.0f));
  EXPECT_THAT(of_one(x, x[0], kRows).to_vector<float>(), ElementsAre(1.0f, -2.0f, 3.0f, 4.0f));
  const KerasTensor strided = x[{ellipsis, newaxis, Slice(none, none, 2)}];
  EXPECT_EQ(strided.shape(), PartialShape({-1, 1, 2}));
  EXPECT_THAT(of_one(x, strided, kRows).to_vector<float>(), ElementsAre(1.0f, 3.0f, 0.5f, -1.0f));
}

TEST(KerasOperations, AxesInBracesAreAxes) {
  const KerasTensor x = Input({4, 3});
  EXPECT_EQ(reduce_max(x, {0, 1}).shape(), PartialShape({3}));
  EXPECT_EQ(reduce_sum(x, {}).shape(), PartialShape::scalar());
  EXPECT_EQ(reduce_mean(x, {.axis = 1, .keepdims = true}).shape(), PartialShape({-1, 1, 3}));
}

TEST(KerasOperations, WhatKerasLacksIsNamed) {
  const KerasTensor x = Input({4});
  const auto refused = [](const Model& model) {
    try {
      model.to_json();
    } catch (const UnimplementedError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused(Model({x}, {apply([](Tensor t) { return t + 1.0; }, x)})),
              HasSubstr("'lambda'"));
  // TensorFlow's mean of integers is an integer, Keras' is not.
  const KerasTensor n = Input({4}, {.dtype = int32});
  EXPECT_THAT(refused(Model({n}, {reduce_mean(n, 1)})), HasSubstr("Mean"));

  std::string json = Model({x}, {abs(x)}).to_json();
  json.replace(json.find("Absolute"), 8, "Unheard!");
  try {
    models::model_from_json(json);
    FAIL() << "an operation that there is not was read";
  } catch (const UnimplementedError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("Operation 'absolute"), HasSubstr("Unheard!")));
  }
  json = Model({x}, {x * 2.0}).to_json();
  json.replace(json.find(",2.0]"), 5, "]");
  EXPECT_THROW(models::model_from_json(json), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::keras
