// Masks that calls of a functional model are given as KerasTensors. That the real Keras reads and
// writes such files alike: tests/conformance/keras_files.py.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/keras/clone_model.h"
#include "tandem/keras/keras.h"
#include "tandem/keras/serialize.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/random_ops.h"

namespace tandem::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <class E, class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const Error& error) {
    return std::string("of another kind: ") + error.what();
  }
  return "";
}

const Tensor kSequences = random::stateless_normal({2, 3, 4}, {1, 2});
Tensor steps() { return cast(Tensor{{1, 0, 1}, {0, 1, 0}}, DType::kBool); }

struct Masked {
  LSTM lstm{2, {.return_sequences = true, .name = "lstm"}};
  GlobalAveragePooling1D pool{{.name = "pool"}};
  Model model;
  Masked() {
    const KerasTensor x = Input({3, 4}, {.name = "x"});
    const KerasTensor m = Input({3}, {.dtype = boolean, .name = "m"});
    model = Model({x, m}, pool(lstm(x, {.mask = m})));
  }
  Tensor expected() const { return pool(lstm(kSequences, {.mask = steps()}), {.mask = steps()}); }
};

bool same(const Tensor& a, const Tensor& b) { return a.array() == b.array(); }

TEST(ExplicitMasks, AreInputsOfTheCallAndTravelOn) {
  const Masked m;
  EXPECT_TRUE(same(m.model({kSequences, steps()}), m.expected()));
  const Tensor all = m.model({kSequences, cast(ones({2, 3}), DType::kBool)});
  EXPECT_FALSE(same(all, m.expected())) << "the mask makes a difference";
}

TEST(ExplicitMasks, AreKeptByFilesAndClones) {
  const Masked m;
  const Model again = model_from_json(m.model.to_json());
  EXPECT_EQ(again.to_json(), m.model.to_json());
  again.set_weights(m.model.get_weights());
  EXPECT_TRUE(same(again({kSequences, steps()}), m.expected()));
  const Model clone = models::clone_model(m.model);
  clone.set_weights(m.model.get_weights());
  EXPECT_TRUE(same(clone({kSequences, steps()}), m.expected()));
}

TEST(ExplicitMasks, MayBeComputedInTheModel) {
  const KerasTensor tokens = Input({3}, {.dtype = int32, .name = "tokens"});
  const KerasTensor x = Embedding(5, 4, {.mask_zero = true})(tokens);
  const LSTM lstm(2);
  const Model zero(tokens, lstm(x)), three(tokens, lstm(x, {.mask = tokens != 3}));
  const Tensor with_zero{{1, 0, 2}}, with_three{{1, 3, 2}};
  EXPECT_FALSE(same(zero(with_zero), three(with_zero)));
  const Model again = model_from_json(three.to_json());
  again.set_weights(three.get_weights());
  EXPECT_TRUE(same(again(with_three), three(with_three)));
  EXPECT_TRUE(same(again(with_zero), three(with_zero)));
  // What Embedding computes by itself needs no operation of the model.
  EXPECT_EQ(model_from_json(zero.to_json()).layers().size(), 3u);
}

TEST(ExplicitMasks, WithoutAFormInAFileAreNamed) {
  const KerasTensor x = Input({3, 4}, {.name = "x"});
  const KerasTensor m = Input({3}, {.dtype = boolean, .name = "m"});
  const Model model({x, m}, Dense(2, {.name = "d"})(x, {.mask = m}));
  EXPECT_THAT(error_of<UnimplementedError>([&] { model.to_json(); }),
              AllOf(HasSubstr("'d'"), HasSubstr("mask")));
  // A file that says so, which Keras would not write.
  const Model plain({x, m}, {Dense(2, {.name = "d"})(x), m});
  std::string json = plain.to_json();
  const std::string call = "\"keras_history\":[\"x\",0,0]}}],\"kwargs\":{";
  const std::size_t at = json.find(call);
  ASSERT_NE(at, std::string::npos) << json;
  json.insert(at + call.size(),
              "\"mask\":{\"class_name\":\"__keras_tensor__\",\"config\":{\"shape\":[null,3],"
              "\"dtype\":\"bool\",\"keras_history\":[\"m\",0,0]}}");
  EXPECT_THAT(error_of<UnimplementedError>([&] { model_from_json(json); }),
              AllOf(HasSubstr("'d'"), HasSubstr("'mask'")));
}

TEST(ExplicitMasks, OfOtherKindsAreRefused) {
  const LSTM lstm(2, {.name = "lstm"});
  const KerasTensor x = Input({3, 4}), m = Input({3}, {.dtype = boolean});
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { lstm(kSequences, {.mask = m}); }),
              AllOf(HasSubstr("'lstm'"), HasSubstr("KerasTensor")));
  EXPECT_THAT(error_of<InvalidArgumentError>([&] {
                lstm(x, {.mask = {m, m}});
              }),
              HasSubstr("2 masks for 1 input"));
  EXPECT_THAT(
      error_of<InvalidArgumentError>([&] { lstm(x, {.mask = Input({5}, {.dtype = boolean})}); }),
      HasSubstr("[batch, steps]"));
}

}  // namespace
}  // namespace tandem::keras
