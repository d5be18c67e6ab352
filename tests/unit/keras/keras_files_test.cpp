// Files of whole models. That the real Keras reads them, and that its own are read:
// tests/conformance/keras_files.py.

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/hdf5.h"
#include "tandem/io/safetensors.h"
#include "tandem/io/zip.h"
#include "tandem/keras/keras.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/serialization.h"
#include "tandem/keras/serialize.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"

#include "tests/unit/folder.h"

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

// Whether files of HDF5 can be read and written here.
bool has_hdf5() {
  try {
    io::encode_hdf5({});
    return true;
  } catch (const UnimplementedError&) {
    return false;
  }
}

Sequential network() {
  return Sequential{Input({4}), Dense(3, {.activation = "relu", .name = "first"}),
                    Dense(2, {.name = "second"})};
}

// y = factor · x, with a weight besides.
class Scale final : public LayerImpl {
 public:
  explicit Scale(double factor, const std::string& name = "")
      : LayerImpl("Scale", {.name = name}), factor_(factor) {}
  void build(const PartialShape& input) override {
    offset_ = add_weight("offset", {input.dim(-1)}, {.initializer = "ones"});
  }
  Tensor call(const Tensor& x, bool) override { return x * factor_ + offset_; }
  void describe(Config& config) const override { config.set("factor", factor_); }

 private:
  double factor_;
  Variable offset_;
};

TEST(KerasFiles, JsonHasTheArchitecture) {
  const KerasTensor a = Input({4}, {.name = "a"}), b = Input({4}, {.name = "b"});
  const Dense shared(4, {.name = "shared"});
  const KerasTensor y = Concatenate()({shared(a), shared(b)});
  const Model model({a, b}, {Dense(2)(y), y}, "twice");
  const Model again = model_from_json(model.to_json());
  EXPECT_EQ(again.to_json(), model.to_json());
  EXPECT_EQ(again.name(), "twice");
  EXPECT_EQ(again.weights().size(), 4u);  // the shared layer is one
  EXPECT_EQ(again.layers().size(), model.layers().size());
}

TEST(KerasFiles, ConfigMakesTheLayerAgain) {
  const Conv2D layer(3, {2, 1},
                     {.strides = {1, 2},
                      .kernel_initializer = initializers::HeNormal(7),
                      .kernel_regularizer = regularizers::L1L2(0.1, 0.2)});
  const Layer again = layer_from_config(layer.class_name(), layer.config());
  EXPECT_EQ(again.describe(), layer.describe());
  const Tensor x = ones({1, 4, 4, 2});
  EXPECT_TRUE(layer(x).array() == again(x).array());  // the seed is part of the config
}

TEST(KerasFiles, WhatTandemLacksIsNamed) {
  Config config;
  config.set("units", std::int64_t{3}).set("name", std::string("d"));
  config.set("lora_rank", std::int64_t{4});
  EXPECT_THAT(error_of<UnimplementedError>([&] { layer_from_config("Dense", config); }),
              AllOf(HasSubstr("'d'"), HasSubstr("lora_rank")));
  EXPECT_THAT(error_of<UnimplementedError>([] { layer_from_config("Lambda", {}); }),
              HasSubstr("'Lambda'"));
  EXPECT_THAT(error_of<InvalidArgumentError>(
                  [] { layer_from_config("Dense", Config().set("units", std::string("three"))); }),
              HasSubstr("'units'"));
}

TEST(KerasFiles, ClassesOfOnesOwnAreRegistered) {
  if (!has_hdf5()) GTEST_SKIP() << "libtandem_hdf5.so is missing: install libhdf5-dev";
  register_layer("test", "Scale", [](const Config& config) {
    return make_layer<Scale>(std::get<double>(config.at("factor")),
                             std::get<std::string>(config.at("name")));
  });
  const Folder folder;
  const Sequential model{Input({4}), make_layer<Scale>(2.5, "mine"), Dense(2)};
  model.save(folder.file("m.keras"));
  EXPECT_THAT(model.to_json(), HasSubstr("\"registered_name\":\"test>Scale\""));
  const Model again = models::load_model(folder.file("m.keras"));
  const Tensor x = ones({2, 4});
  EXPECT_TRUE(model(x).array() == again(x).array());
}

TEST(KerasFiles, ClassesOfOnesOwnAreGivenToTheCall) {
  class Half final : public LayerImpl {
   public:
    explicit Half(const std::string& name) : LayerImpl("Half", {.name = name}) {}
    Tensor call(const Tensor& x, bool) override { return x * 0.5; }
  };
  const utils::CustomObjects objects{{"Half", [](const Config& config) {
                                        return make_layer<Half>(
                                            std::get<std::string>(config.at("name")));
                                      }}};
  const Folder folder;
  std::string json;
  {
    const utils::CustomObjectScope scope(objects);
    const Sequential model{Input({4}), make_layer<Half>("h")};
    json = model.to_json();
    if (has_hdf5()) model.save(folder.file("m.keras"));
  }
  const Tensor x = ones({2, 4});
  EXPECT_EQ(models::model_from_json(json, objects)(x).to_vector<float>()[0], 0.5f);
  // The call has left nothing behind.
  EXPECT_THAT(error_of<UnimplementedError>([&] { models::model_from_json(json); }),
              HasSubstr("'Half'"));
  if (!has_hdf5()) return;
  const Model again = models::load_model(folder.file("m.keras"), {.custom_objects = objects});
  EXPECT_EQ(again(x).to_vector<float>()[0], 0.5f);
  EXPECT_THAT(error_of<UnimplementedError>([&] { models::load_model(folder.file("m.keras")); }),
              HasSubstr("'Half'"));
}

TEST(KerasFiles, LearntVocabulariesAreKept) {
  const KerasTensor x = Input({1}, {.dtype = string});
  const TextVectorization words({.output_mode = "tf_idf"});
  words.adapt(Tensor(std::vector<std::string>{"a b b", "b c"}));
  const Model model({x}, {words(x)});
  const Folder folder;
  model.save(folder.file("m.keras"));
  const Model again = models::load_model(folder.file("m.keras"));
  const Tensor texts = Tensor(std::vector<std::string>{"b zz", "c"});
  EXPECT_TRUE(all_equal(model(texts), again(texts)));
  // The architecture alone has none, and says so.
  const std::string missing =
      error_of<FailedPreconditionError>([&] { model_from_json(model.to_json())(texts); });
  EXPECT_THAT(missing, HasSubstr("has no vocabulary yet"));

  auto entries = io::read_zip(fs::read_file(folder.file("m.keras")), 1 << 20, "m.keras");
  for (io::ZipEntry& entry : entries) {
    if (entry.name.ends_with("vocabulary.txt")) entry.content = "[UNK]\nb";
  }
  fs::write_file(folder.file("other.keras"), io::make_zip(entries));
  EXPECT_THAT(
      error_of<FailedPreconditionError>([&] { models::load_model(folder.file("other.keras")); }),
      HasSubstr("idf_weights"));
}

TEST(KerasFiles, DamagedVocabulariesAreRefused) {
  const KerasTensor x = Input({1}, {.dtype = int64});
  const IntegerLookup numbers;
  numbers.adapt(Tensor(std::vector<std::int64_t>{3, 4, 4}));
  const Model model({x}, {numbers(x)});
  const Folder folder;
  model.save(folder.file("m.keras"));
  auto entries = io::read_zip(fs::read_file(folder.file("m.keras")), 1 << 20, "m.keras");
  for (io::ZipEntry& entry : entries) {
    if (entry.name.ends_with("vocabulary.txt")) entry.content = "-1\n4\nthree";
  }
  fs::write_file(folder.file("other.keras"), io::make_zip(entries));
  EXPECT_THAT(error_of<DataLossError>([&] { models::load_model(folder.file("other.keras")); }),
              AllOf(HasSubstr("other.keras"), HasSubstr("vocabulary.txt"), HasSubstr("'three'")));
}

TEST(KerasFiles, SafetensorsByName) {
  const Folder folder;
  const Sequential model = network();
  model.save_weights(folder.file("w.safetensors"));
  const Sequential again = network();
  again.load_weights(folder.file("w.safetensors"));
  const Tensor x = ones({2, 4});
  EXPECT_TRUE(model(x).array() == again(x).array());

  // Names of another library.
  const auto tensors = io::load_safetensors(folder.file("w.safetensors"));
  io::save_safetensors(folder.file("theirs.safetensors"),
                       {{"0.weight", tensors.at("first/kernel")},
                        {"0.bias", tensors.at("first/bias")},
                        {"2.weight", tensors.at("second/kernel")},
                        {"2.bias", tensors.at("second/bias")},
                        {"extra", Tensor(1.0f)}});
  const Sequential third = network();
  const std::map<std::string, std::string> names{{"first/kernel", "0.weight"},
                                                 {"first/bias", "0.bias"},
                                                 {"second/kernel", "2.weight"},
                                                 {"second/bias", "2.bias"}};
  third.load_weights(folder.file("theirs.safetensors"), {.names = names});
  EXPECT_TRUE(model(x).array() == third(x).array());
  EXPECT_THAT(
      error_of<NotFoundError>([&] { third.load_weights(folder.file("theirs.safetensors")); }),
      AllOf(HasSubstr("first/bias"), HasSubstr("theirs.safetensors")));
  EXPECT_THAT(error_of<NotFoundError>([&] {
                third.load_weights(folder.file("theirs.safetensors"), {.names = {{"none", "x"}}});
              }),
              HasSubstr("'none'"));
}

TEST(KerasFiles, MappedWeightsAreTrainedWithoutTouchingTheFile) {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  Sequential model = network();
  model.save_weights(path);
  const std::string before = fs::read_file(path);
  model.load_weights(path);
  model.compile({.optimizer = "sgd", .loss = "mse"});
  model.train_on_batch(ones({2, 4}), ones({2, 2}));
  EXPECT_EQ(fs::read_file(path), before);
  // Its gradient is never 0, as those of the first layer are where no unit is active.
  EXPECT_FALSE(model.weights()[3].read_value().array() ==
               io::load_safetensors(path).at("second/bias").array());
}

TEST(KerasFiles, DamagedArchivesAreRefused) {
  if (!has_hdf5()) GTEST_SKIP() << "libtandem_hdf5.so is missing: install libhdf5-dev";
  const Folder folder;
  const std::string path = folder.file("m.keras");
  const auto load = [&] { models::load_model(path); };
  fs::write_file(path, io::make_zip({{"metadata.json", "{}"}}));
  EXPECT_THAT(error_of<DataLossError>(load), HasSubstr("config.json"));
  fs::write_file(path, io::make_zip({{"config.json", "{\"a\": 1, \"a\": 2}"}}));
  EXPECT_THAT(error_of<DataLossError>(load), HasSubstr("twice"));
  network().save(path);
  std::vector<io::ZipEntry> entries = io::read_zip(fs::read_file(path), 1 << 20, path);
  // Files whose names lead elsewhere are of no interest to the reader, and are not written.
  entries.push_back({"../../evil", "x"});
  fs::write_file(path, io::make_zip(entries));
  models::load_model(path);
  EXPECT_FALSE(fs::exists(folder.file("../evil")));
  for (io::ZipEntry& entry : entries) {
    if (entry.name == "model.weights.h5") entry.content.resize(entry.content.size() / 2);
  }
  fs::write_file(path, io::make_zip(entries));
  EXPECT_THAT(error_of<DataLossError>(load), HasSubstr("model.weights.h5"));
}

TEST(KerasFiles, NothingIsChangedUnlessAllFits) {
  if (!has_hdf5()) GTEST_SKIP() << "libtandem_hdf5.so is missing: install libhdf5-dev";
  const Folder folder;
  const std::string path = folder.file("m.weights.h5");
  const Sequential other{Input({4}), Dense(3), Dense(5)};
  other.save_weights(path);
  const Sequential model = network();
  const Tensor before = model.weights()[0].read_value();
  EXPECT_THAT(error_of<InvalidArgumentError>([&] { model.load_weights(path); }),
              AllOf(HasSubstr("second"), HasSubstr("[3,2]"), HasSubstr("[3,5]")));
  EXPECT_TRUE(model.weights()[0].read_value().array() == before.array());
}

}  // namespace
}  // namespace tandem::keras
