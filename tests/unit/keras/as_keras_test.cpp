// What Keras forgives: other lengths and sizes than the first batch's, axes of size 1, integers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/data/data.h"
#include "tandem/io/gfile.h"
#include "tandem/io/npy.h"
#include "tandem/keras/keras.h"
#include "tandem/ops/call.h"
#include "tandem/ops/ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/saved_model/module.h"
#include "tandem/saved_model/value.h"
#include "tandem/train/checkpoint_state.h"

namespace tandem::keras {
namespace {

TEST(UnbuiltSequential, TakesOtherLengthsAndSizesThanTheFirst) {
  const Sequential text{Embedding(20, 4), LSTM(4), Dense(1)};
  EXPECT_EQ(text(ones({2, 3}, int32)).shape(), (Shape{2, 1}));
  EXPECT_EQ(text(ones({2, 5}, int32)).shape(), (Shape{2, 1}));
  const Sequential images{Conv2D(2, 3), GlobalAveragePooling2D(), Dense(1)};
  EXPECT_EQ(images(ones({2, 8, 8, 1})).shape(), (Shape{2, 1}));
  EXPECT_EQ(images(ones({2, 9, 7, 1})).shape(), (Shape{2, 1}));
  EXPECT_THROW(images(ones({2, 9, 7, 3})), InvalidArgumentError);
  const Sequential flat{Flatten(), Dense(1)};
  flat(ones({2, 4, 1}));
  EXPECT_THROW(flat(ones({2, 5, 1})), InvalidArgumentError);
}

TEST(UnbuiltSequential, TrainsOnBatchesOfSeveralLengths) {
  const auto of_length = [](std::int64_t length) {
    return data::from_tensor_slices({ones({8, length}, int32), ones({8, 1})}).batch(4);
  };
  const auto batches = of_length(3).concatenate(of_length(5));
  for (const Sequential& model : {Sequential{Embedding(20, 4), LSTM(4), Dense(1)},
                                  Sequential{Input({-1}), Embedding(20, 4), LSTM(4), Dense(1)}}) {
    model.compile({.loss = "mse"});
    EXPECT_NO_THROW(model.fit(batches, {.verbose = Verbose::kSilent}));
  }
}

TEST(Inputs, GetAndLoseAnAxisOfSizeOne) {
  const Sequential model{Input({4, 4, 1}), Flatten(), Dense(1)};
  EXPECT_EQ(model(ones({2, 4, 4})).shape(), (Shape{2, 1}));
  const auto x = Input({3});
  const Model functional(x, Dense(1)(x));
  EXPECT_EQ(functional(ones({2, 3, 1})).shape(), (Shape{2, 1}));
  EXPECT_THROW(functional(ones({2, 4})), InvalidArgumentError);
  EXPECT_EQ(Dense(2)(ones({2, 3}, int32)).dtype(), float32);
}

TEST(Null, IsAnInvalidArgumentWhereANameIsExpected) {
  const char* const null = nullptr;
  const auto expect_named = [](const auto& call, const char* what) {
    try {
      call();
      ADD_FAILURE() << "nothing was thrown for " << what;
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(what));
    }
  };
  const Sequential model{Input({2}), Dense(1)};
  expect_named([&] { const DeviceScope scope(null); }, "the name of a device");
  expect_named([&] { const NameScope scope(null); }, "the name of a scope");
  expect_named([&] { model.get_layer(null); }, "the name of a layer");
  expect_named([&] { model.save(null); }, "the path of a model");
  expect_named([&] { models::load_model(null); }, "the path of a model");
  expect_named([&] { model.save_weights(null); }, "the path of weights");
  expect_named([&] { model.load_weights(null); }, "the path of weights");
  expect_named([&] { Dense(1, {.activation = null}); }, "the name of an activation");
  expect_named([&] { model.compile({.loss = null}); }, "the name of a loss");
}

TEST(Null, IsAnInvalidArgumentInOptionsAndArguments) {
  const char* const null = nullptr;
  const auto expect_line = [](const auto& call, int line) {
    try {
      call();
      ADD_FAILURE() << "nothing was thrown in line " << line;
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(cat("in line ", line, " (")));
    } catch (const std::exception& error) {
      ADD_FAILURE() << "in line " << line << ": " << error.what();
    }
  };
  expect_line([&] { Dense(1, {.name = null}); }, __LINE__);
  expect_line([&] { Conv2D(1, 3, {.padding = null}); }, __LINE__);
  EXPECT_THROW(Bidirectional(LSTM(2), {.merge_mode = null}), InvalidArgumentError);
  EXPECT_THROW(StringLookup({.mask_token = null}), InvalidArgumentError);
  expect_line([&] { TextVectorization({.standardize = null}); }, __LINE__);
  expect_line([&] { optimizers::Adam({.name = null}); }, __LINE__);
  expect_line([&] { losses::Huber({.name = null}); }, __LINE__);
  expect_line([&] { metrics::AUC({.curve = null}); }, __LINE__);
  expect_line([&] { callbacks::EarlyStopping({.monitor = null}); }, __LINE__);
  expect_line([&] { callbacks::ModelCheckpoint checkpoint(null); }, __LINE__);
  expect_line([&] { Sequential model({Dense(1)}, null); }, __LINE__);
  expect_line([&] { RandomFlip flip(null); }, __LINE__);
  expect_line([&] { utils::load_img(null); }, __LINE__);
  expect_line([&] { losses::get(null); }, __LINE__);
  expect_line([&] { Variable(1.0F, {.name = null}); }, __LINE__);
  expect_line([&] { call(null, {Tensor(1)}); }, __LINE__);
  expect_line([&] { raw_op(null, {Tensor(1)}); }, __LINE__);
  expect_line([&] { einsum(null, {ones({2})}); }, __LINE__);
  expect_line([&] { debugging::assert_equal(1, 1, null); }, __LINE__);
  expect_line([&] { strings::join({Tensor("a")}, null); }, __LINE__);
  expect_line([&] { data::from_tensor_slices({ones({2})}).cache(null); }, __LINE__);
  expect_line([&] { data::make_csv_dataset("x.csv", 1, {.label_name = null}); }, __LINE__);
  expect_line([&] { io::gfile::exists(null); }, __LINE__);
  expect_line([&] { io::save_npz(null, {}); }, __LINE__);
  expect_line([&] { train::latest_checkpoint(null); }, __LINE__);
  expect_line([&] { config::list_physical_devices(null); }, __LINE__);
  EXPECT_THROW(AttrValue{null}, InvalidArgumentError);
  EXPECT_THROW(data::list_files(null), InvalidArgumentError);
  EXPECT_THROW(data::TFRecordDataset({"x", null}), InvalidArgumentError);
  EXPECT_THROW(data::TextLineDataset{null}, InvalidArgumentError);
  EXPECT_THROW(nn::Padding{null}, InvalidArgumentError);
  EXPECT_THROW(saved_model::Value{null}, InvalidArgumentError);
  EXPECT_THROW(saved_model::Asset{null}, InvalidArgumentError);
}

TEST(StepsPerEpoch, WarnOnceWhenDataRunsOut) {
  const Sequential model{Dense(1)};
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const auto batches = data::from_tensor_slices({ones({6, 2}), ones({6, 1})}).batch(2);
  testing::internal::CaptureStderr();
  model.fit(batches, {.epochs = 3, .verbose = Verbose::kSilent, .steps_per_epoch = 2});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::HasSubstr("ran out of data"));
  EXPECT_THAT(text, testing::HasSubstr(".repeat()"));
  EXPECT_EQ(text.find("ran out"), text.rfind("ran out"));
}

TEST(RandomLayers, DrawFromAVariable) {
  const Tensor x = ones({4, 16});
  const Dropout dropout(0.5, {.seed = 7});
  ASSERT_EQ(dropout.variables().size(), 1u);
  EXPECT_TRUE(dropout.weights().empty());
  const Tensor saved = dropout.variables()[0].value();
  const Tensor first = dropout(x, {.training = true}), second = dropout(x, {.training = true});
  EXPECT_FALSE(all_equal(first, second));
  dropout.variables()[0].assign(saved);
  EXPECT_TRUE(all_equal(dropout(x, {.training = true}), first));
  const Sequential model{Dense(2), Dropout(0.5), Dense(1)};
  model(x);
  EXPECT_EQ(model.weights().size(), 4u);
  EXPECT_EQ(model.variables().size(), 5u);
}

TEST(KerasTensors, TakeArithmeticAndFunctions) {
  const auto x = Input({3});
  const auto y = (x - 1.0) * 2.0 + nn::relu(-x) + reduce_mean(x, 1, true) / 2;
  const auto z = apply([](Tensor t) { return cumsum(t, 1); }, y);
  const Model model(x, Lambda([](Tensor t) { return t + 1.0; })(z));
  const Tensor in{{1.0, 2.0, 3.0}};
  const Tensor expected =
      cumsum((in - 1.0) * 2.0 + nn::relu(-in) + reduce_mean(in, 1, true) / 2, 1) + 1.0;
  EXPECT_EQ(model(in).to_string(), expected.to_string());
}

TEST(Utils, EncodePadAndSplit) {
  EXPECT_EQ(utils::to_categorical(Tensor{0, 2}).to_string(), "[[1. 0. 0.]\n [0. 0. 1.]]");
  const std::vector<std::vector<int>> rows{{1}, {2, 3, 4}};
  EXPECT_EQ(utils::pad_sequences(rows).to_string(), "[[0 0 1]\n [2 3 4]]");
  EXPECT_EQ(utils::pad_sequences(rows, {.maxlen = 2, .padding = "post"}).to_string(),
            "[[1 0]\n [3 4]]");
  const auto [left, right] = utils::split_dataset(data::range(10), 0.3);
  EXPECT_EQ(left.cardinality(), 3);
  EXPECT_EQ(right.cardinality(), 7);
}

}  // namespace
}  // namespace tandem::keras
