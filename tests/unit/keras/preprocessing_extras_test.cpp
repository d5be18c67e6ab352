// Layers of sound and of bent images, and what keras.utils has beside training.

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/io/gfile.h"
#include "tandem/keras/keras.h"
#include "tandem/ops/ops.h"

namespace tandem::keras {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Adapt, TakesVectors) {
  const Normalization scaled({.axis = std::nullopt});
  scaled.adapt(std::vector<float>{1.0F, 3.0F});
  EXPECT_THAT(scaled(Tensor{{1.0F}, {3.0F}}).to_vector<float>(), ElementsAre(-1.0F, 1.0F));
  const StringLookup words;
  words.adapt(std::vector<std::string>{"b", "a", "b"});
  EXPECT_THAT(words.get_vocabulary(), ElementsAre("[UNK]", "b", "a"));
  const TextVectorization texts;
  texts.adapt(std::vector<std::string>{"the cat", "the dog the cat"});
  EXPECT_THAT(texts.get_vocabulary(), ElementsAre("", "[UNK]", "the", "cat", "dog"));
}

// Keras 3's vocabulary and numbers.
TEST(TextVectorization, StandardizesAndSplitsByCallables) {
  const TextVectorization lists(
      {.standardize = [](const Tensor& texts) { return strings::lower(texts); },
       .split = [](const Tensor& texts) { return strings::split_ragged(texts, ","); }});
  lists.adapt(std::vector<std::string>{"A,b b", "a,C"});
  EXPECT_THAT(lists.get_vocabulary(), ElementsAre("", "[UNK]", "a", "c", "b b"));
  const Tensor texts{"a,c", "b b"};
  EXPECT_EQ(lists(texts).to_string(), "[[2 3]\n [4 0]]");
  const data::Dataset numbers = data::from_tensor_slices({texts}).batch(2).map(
      [lists](const Tensor& batch) { return lists(batch); });
  for (const auto& element : numbers) EXPECT_EQ(element[0].to_string(), "[[2 3]\n [4 0]]");
  const Sequential model{Input({}, {.dtype = string}), lists, Embedding(5, 2)};
  EXPECT_EQ(model.predict(texts, {.verbose = 0}).shape(), (Shape{2, 2, 2}));
  EXPECT_THROW(model.to_json(), UnimplementedError);

  // Rows of a matrix end where the empty texts begin.
  const TextVectorization padded({.standardize = std::nullopt, .split = [](const Tensor& t) {
                                    return strings::split_ragged(t, "-").to_tensor("");
                                  }});
  padded.adapt(std::vector<std::string>{"x-Y-Y", "x"});
  EXPECT_THAT(padded.get_vocabulary(), ElementsAre("", "[UNK]", "x", "Y"));
}

TEST(TextVectorization, ReportsWhatCallablesMustReturn) {
  const auto message = [](const TextVectorizationOptions& options) -> std::string {
    try {
      TextVectorization(options).adapt(std::vector<std::string>{"a b", "c"});
    } catch (const InvalidArgumentError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message({.standardize = [](const Tensor&) { return Tensor{"one"}; }}),
              HasSubstr("`standardize` must return a text for each text, string[2]"));
  EXPECT_THAT(
      message({.split = [](const Tensor& t) { return strings::split_ragged(t)[Slice(0, 1)]; }}),
      HasSubstr("`split` must return a list of tokens for each text"));
}

// As TensorFlow's tutorials export a classifier of texts.
TEST(TextVectorization, MayBeginASequentialThatDataBuild) {
  const TextVectorization tokens({.max_tokens = 10, .output_sequence_length = 4});
  const Tensor texts{"good film", "bad film"};
  tokens.adapt(texts);
  const Sequential classifier{Embedding(10, 4), GlobalAveragePooling1D(), Dense(1)};
  const Sequential whole{tokens, classifier, Activation("sigmoid")};
  whole.compile({.optimizer = "adam", .loss = "binary_crossentropy", .metrics = {"accuracy"}});
  const data::Dataset batches = data::from_tensor_slices({texts, Tensor{1, 0}}).batch(2);
  EXPECT_EQ(whole.evaluate(batches, {.verbose = 0}).entries().size(), 2u);
  EXPECT_EQ(whole.predict(texts, {.verbose = 0}).shape(), (Shape{2, 1}));
  EXPECT_EQ(whole.inputs()[0].dtype(), DType::kString);
  const Sequential lookup{StringLookup({.vocabulary = {"a", "b"}})};
  EXPECT_EQ(lookup(Tensor{"b", "z"}).to_vector<std::int64_t>(), (std::vector<std::int64_t>{2, 0}));
}

TEST(RandomElasticTransform, BendsWhileTrainingAlone) {
  const Tensor column = reshape(cast(range(Tensor(32)), float32), {1, 1, 32, 1});
  const Tensor ramp = ones({2, 24, 32, 1}) * column * 8.0;
  const RandomElasticTransform bend({.seed = 1});
  EXPECT_EQ(bend(ramp).to_vector<float>(), ramp.to_vector<float>());
  const Tensor bent = bend(ramp, {.training = true});
  EXPECT_EQ(bent.shape(), ramp.shape());
  const float moved = reduce_mean(abs(bent - ramp)).item<float>();
  EXPECT_GT(moved, 0.05F);
  EXPECT_LT(moved, 64.0F);
  EXPECT_GE(reduce_min(bent).item<float>(), 0.0F);
  EXPECT_LE(reduce_max(bent).item<float>(), 248.0F);
  // Nowhere is there another value than the image has.
  const Tensor grey = ones({1, 20, 20, 3}) * 77.0;
  for (const char* mode : {"reflect", "nearest", "wrap", "mirror"}) {
    const Tensor same =
        RandomElasticTransform({.fill_mode = mode, .seed = 2})(grey, {.training = true});
    EXPECT_LT(reduce_max(abs(same - grey)).item<float>(), 1e-3F) << mode;
  }
  EXPECT_THROW(RandomElasticTransform({.fill_mode = "none"}), InvalidArgumentError);
}

TEST(Spectrograms, RefuseWhatDoesNotFit) {
  EXPECT_THROW(STFTSpectrogram({.mode = "loud"}), InvalidArgumentError);
  EXPECT_THROW(STFTSpectrogram({.frame_length = 8, .frame_step = 9}), InvalidArgumentError);
  EXPECT_THROW(STFTSpectrogram({.frame_length = 8, .fft_length = 4}), InvalidArgumentError);
  EXPECT_THROW(STFTSpectrogram({.window = "round"}), InvalidArgumentError);
  EXPECT_THROW(MelSpectrogram({.fft_length = 8, .sequence_length = 9}), InvalidArgumentError);
  // In models of any length of sound, whose kernels train.
  const auto sound = Input({-1, 1});
  const Model model(sound, STFTSpectrogram({.frame_length = 16})(sound));
  EXPECT_EQ(model(ones({2, 64, 1})).shape(), (Shape{2, 7, 9}));
  EXPECT_EQ(model.trainable_weights().size(), 2U);
}

TEST(Lookups, NeedWhatTheirOutputModeNeeds) {
  EXPECT_THROW(StringLookup({.output_mode = "count", .pad_to_max_tokens = true}),
               InvalidArgumentError);
  EXPECT_THROW(StringLookup({.vocabulary = {"a"}, .output_mode = "tf_idf"}), InvalidArgumentError);
  EXPECT_THROW(StringLookup({.vocabulary = {"a"}, .idf_weights = {1}}), InvalidArgumentError);
  EXPECT_THROW(Resizing(2, 2, {.crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true}),
               InvalidArgumentError);
}

TEST(UtilsConfig, IsFrozenAndWrittenAsJson) {
  utils::Config config({{"learning_rate", 0.5}, {"seed", std::int64_t{3}}});
  config.set("ema", true);
  EXPECT_EQ(std::get<std::int64_t>(config["seed"]), 3);
  EXPECT_EQ(config.to_json(), R"({"ema":true,"learning_rate":0.5,"seed":3})");
  config.freeze();
  EXPECT_THROW(config.set("seed", std::int64_t{4}), FailedPreconditionError);
  config.unfreeze();
  EXPECT_EQ(std::get<bool>(config.pop("ema")), true);
  EXPECT_FALSE(config.contains("ema"));
  try {
    config["sead"];
    ADD_FAILURE() << "there is no such setting";
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'seed'"));
  }
}

TEST(BoundingBoxes, RefuseUnknownFormats) {
  namespace b = utils::bounding_boxes;
  const Tensor boxes{{1.0, 2.0, 3.0, 4.0}};
  EXPECT_THROW(b::convert_format(boxes, "xyz", "xyxy"), InvalidArgumentError);
  EXPECT_THROW(b::convert_format(boxes, "xyxy", "rel_xyxy"), InvalidArgumentError);
  EXPECT_THROW(b::convert_format(ones({2, 3}), "xyxy", "xywh"), InvalidArgumentError);
  EXPECT_THAT(b::convert_format(boxes, "XYXY", "xywh").to_vector<float>(), ElementsAre(1, 2, 2, 2));
}

TEST(Paths, MayBeOfTheFileSystemLibrary) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  EXPECT_TRUE(io::gfile::exists(folder));
  EXPECT_THROW(utils::load_img(folder / "no.such.png"), NotFoundError);
}

}  // namespace
}  // namespace tandem::keras
