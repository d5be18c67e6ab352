// Effects on the host, strings, and what other new families offer as functions.

#include "tandem/ops/host_ops.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/ctc_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/ragged_functions.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/sparse_ops.h"
#include "tandem/ops/string_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/folder.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

Tensor strings_of(std::initializer_list<std::string> values) { return tensor<std::string>(values); }

TEST(HostOps, PrintsLikeTensorFlow) {
  testing::internal::CaptureStdout();
  print({Tensor("loss"), Tensor{1.5, 2.0}, Tensor{1, 2, 3, 4, 5, 6, 7, 8}},
        {.output_stream = "stdout"});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "\"loss\" [1.5 2] [1 2 3 ... 6 7 8]\n");
}

// The texts are what tf.print of TensorFlow 2.21 shows for the same arguments, but for the quotes
// around a SparseTensor.
TEST(HostOps, PrintsArgumentsAsTheyAreGiven) {
  const PrintOptions out{.output_stream = "stdout"};
  const auto printed = [&](const auto&... values) {
    testing::internal::CaptureStdout();
    print(values..., out);
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(printed("value:", Tensor{1.5, 2.0}), "value: [1.5 2]\n");
  EXPECT_EQ(printed("step", 3, "rate", 0.5, 3.0, true), "step 3 rate 0.5 3.0 True\n");
  EXPECT_EQ(printed(std::string("name"), Tensor("text"), strings_of({"a", "b"})),
            "name \"text\" [\"a\" \"b\"]\n");
  EXPECT_EQ(printed(Tensor("alone")), "alone\n");
  EXPECT_EQ(printed(strings_of({"a"})), "[\"a\"]\n");
  EXPECT_EQ(printed("{}", Tensor(1), "{"), "{} 1 {\n");
  EXPECT_EQ(printed(Shape{2, 3}, int32), "[2,3] int32\n");
  EXPECT_EQ(printed(sparse::SparseTensor{{{0, 1}, {2, 3}}, {1.5, 2.5}, {3, 4}}),
            "SparseTensor(indices=[[0 1]\n [2 3]], values=[1.5 2.5], shape=[3 4])\n");
  EXPECT_EQ(printed(ragged::constant<int>({{1}, {2, 3, 4, 5, 6, 7, 8}, {}})),
            "[[1], [2, 3, 4, ..., 6, 7, 8], []]\n");
  EXPECT_EQ(printed("ragged", ragged::constant<const char*>({{"it's"}, {}})),
            "ragged [['it\\'s'], []]\n");
  testing::internal::CaptureStdout();
  print("a", Tensor(1), PrintOptions{.output_stream = "stdout", .end = ";", .sep = ", "});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "a, 1;");
  EXPECT_THROW(print(static_cast<const char*>(nullptr)), InvalidArgumentError);
}

TEST(HostOps, PrintingKeepsItsPlaceInAFunction) {
  auto f = function([](Tensor x) {
    print({x}, {.output_stream = "stdout"});
    const Tensor twice = x * 2;
    print({twice}, {.output_stream = "stdout"});
    return twice;
  });
  testing::internal::CaptureStdout();
  f(Tensor(3));
  f(Tensor(4));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "3\n6\n4\n8\n");
}

TEST(HostOps, AnAssertionNamesItsData) {
  debugging::assert_true(Tensor(true), {Tensor(1)});
  try {
    debugging::assert_true(Tensor(false), {Tensor("x was"), Tensor{1, 2}});
    FAIL() << "no error";
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), HasSubstr("assertion failed: [x was] [1 2]"));
  }
}

TEST(HostOps, FilesAreWrittenFoundAndRead) {
  const Folder own;
  const std::string folder = own.file("some/deep");
  io::write_file(Tensor(folder + "/a1.txt"), Tensor("one"));
  io::write_file(Tensor(folder + "/a2.txt"), Tensor("two"));
  EXPECT_EQ(io::read_file(Tensor(folder + "/a2.txt")).item<std::string>(), "two");
  EXPECT_THAT(io::matching_files(Tensor(folder + "/a?.t*")).to_vector<std::string>(),
              ElementsAre(folder + "/a1.txt", folder + "/a2.txt"));
  EXPECT_EQ(io::matching_files(Tensor(own.file("so*/d*/*2*"))).dim(0), 1);
  std::filesystem::remove_all(folder);
  EXPECT_THROW(io::read_file(Tensor(folder + "/a2.txt")), NotFoundError);
}

TEST(HostOps, TimeGoesOn) {
  const double before = timestamp().item<double>();
  EXPECT_GT(before, 1.6e9);
  EXPECT_GE(timestamp().item<double>(), before);
}

TEST(StringOps, FunctionsOfStrings) {
  EXPECT_THAT(strings::join({strings_of({"a", "b"}), Tensor("x")}, "-").to_vector<std::string>(),
              ElementsAre("a-x", "b-x"));
  const auto parts = strings::split(strings_of({"a b", " c"}));
  EXPECT_THAT(parts.values.to_vector<std::string>(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(strings::substr(Tensor("日本語"), Tensor(1), Tensor(1), strings::Unit::kUtf8Char)
                  .item<std::string>(),
              "本");
  EXPECT_EQ(strings::upper(Tensor("straße"), "utf-8").item<std::string>(), "STRASSE");
  EXPECT_EQ(strings::as_string(Tensor(1.5), {.precision = 2}).item<std::string>(), "1.50");
  EXPECT_EQ(strings::to_number(Tensor("12"), int32).item<std::int32_t>(), 12);
  EXPECT_EQ(strings::regex_replace(Tensor("aXbX"), Tensor("X"), Tensor("-")).item<std::string>(),
            "a-b-");
  EXPECT_EQ(io::decode_base64(io::encode_base64(Tensor("any"))).item<std::string>(), "any");
}

TEST(ImageOps, ResizingKeepsConstants) {
  const Tensor image = Tensor::from(std::vector<float>(2 * 3 * 3, 7.0f), {1, 2, 3, 3});
  for (const float value : image::resize_bilinear(image, Tensor{5, 7}).to_vector<float>()) {
    EXPECT_EQ(value, 7.0f);
  }
}

// One way leads through blanks alone. (TensorFlow's CTCLoss has another number here, of memory that
// it reads beside its tables.)
TEST(CtcOps, LabelsMayBeBlanks) {
  const Tensor logits = Tensor::from(std::vector<float>(12), {3, 1, 4});
  const Tensor places = Tensor::from(std::vector<std::int64_t>{0, 0}, {1, 2});
  const Tensor loss = nn::ctc_loss(logits, places, Tensor{3}, Tensor{3});
  EXPECT_NEAR(loss.to_vector<float>()[0], 3 * std::log(4.0f), 1e-5);
}

// CTCLossV2 is CTCLoss with the blank first.
TEST(CtcOps, TheBlankMayBeFirst) {
  const Tensor logits = random::normal({6, 2, 4});
  const auto columns = unstack(logits, 4, 2);
  const Tensor turned = stack({columns[3], columns[0], columns[1], columns[2]}, 2);
  const Tensor places = Tensor::from(std::vector<std::int64_t>{0, 0, 0, 1, 1, 0}, {3, 2});
  const Tensor lengths{6, 4};
  const Tensor last = nn::ctc_loss(logits, places, Tensor{0, 2, 1}, lengths);
  const Tensor first = raw_op("CTCLossV2", {turned, places, Tensor{1, 3, 2}, lengths})[0];
  EXPECT_THAT(first.to_vector<float>(), Pointwise(FloatNear(1e-5f), last.to_vector<float>()));
}

TEST(FusedOps, AProductWithBiasAndActivation) {
  struct Case {
    const char* name;
    std::function<Tensor(Tensor)> apply;
  };
  const Case cases[] = {{"Relu", [](Tensor x) { return nn::relu(std::move(x)); }},
                        {"Relu6", [](Tensor x) { return nn::relu6(std::move(x)); }},
                        {"Elu", [](Tensor x) { return nn::elu(std::move(x)); }},
                        {"LeakyRelu", [](Tensor x) { return nn::leaky_relu(std::move(x), 0.2f); }},
                        {"Tanh", [](Tensor x) { return math::tanh(std::move(x)); }},
                        {"Sigmoid", [](Tensor x) { return math::sigmoid(std::move(x)); }}};
  for (const bool turned : {false, true}) {
    const Tensor a = random::normal(turned ? IntList{70, 131} : IntList{131, 70});
    const Tensor b = random::normal(turned ? IntList{90, 70} : IntList{70, 90});
    const Tensor bias = random::normal({90}), more = random::normal({131, 90});
    const Tensor product = matmul(a, b, {.transpose_a = turned, .transpose_b = turned}) + bias;
    for (const Case& activation : cases) {
      for (const bool adds : {false, true}) {
        std::vector<Tensor> inputs = {a, b, bias};
        std::vector<std::string> ops = {"BiasAdd"};
        if (adds) {
          inputs.push_back(more);
          ops.emplace_back("Add");
        }
        ops.emplace_back(activation.name);
        const Tensor fused =
            raw_op("_FusedMatMul", inputs,
                   {{"fused_ops", ops}, {"transpose_a", turned}, {"transpose_b", turned}})[0];
        const Tensor plain = activation.apply(adds ? product + more : product);
        EXPECT_THAT(fused.to_vector<float>(), Pointwise(FloatNear(1e-3f), plain.to_vector<float>()))
            << activation.name << " adds " << adds << " turned " << turned;
      }
    }
  }
  const Tensor one = Tensor::from(std::vector<float>{1}, {1, 1});
  EXPECT_THROW(raw_op("_FusedMatMul", {one, one, Tensor{1.0, 2.0}},
                      {{"fused_ops", std::vector<std::string>{"BiasAdd"}}}),
               InvalidArgumentError);
  EXPECT_THROW(raw_op("_FusedMatMul", {one, one, Tensor{1.0}},
                      {{"fused_ops", std::vector<std::string>{"BiasAdd", "Cos"}}}),
               UnimplementedError);
}

}  // namespace
}  // namespace tandem
