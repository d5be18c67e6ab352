// keras.datasets from files as Keras has them in its cache, made by expected/make_datasets.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tandem/tandem.h"

namespace {

namespace datasets = td::keras::datasets;
using td::Tensor;

const std::string kFiles = "tests/unit/keras/expected/datasets/";

std::vector<std::int64_t> numbers(const Tensor& t) {
  return td::cast(td::reshape(t, {-1}), td::int64).to_vector<std::int64_t>();
}

TEST(BuiltinDatasets, Mnist) {
  const auto [train, test] = datasets::mnist::load_data(kFiles + "mnist.npz");
  EXPECT_EQ(train.first.dtype(), td::uint8);
  EXPECT_EQ(train.first.shape(), td::Shape({3, 28, 28}));
  EXPECT_EQ(numbers(train.second), (std::vector<std::int64_t>{7, 2, 1}));
  EXPECT_EQ(test.first.shape(), td::Shape({2, 28, 28}));
}

TEST(BuiltinDatasets, FashionMnist) {
  const auto [train, test] = datasets::fashion_mnist::load_data(kFiles + "fashion-mnist");
  EXPECT_EQ(train.first.shape(), td::Shape({2, 28, 28}));
  EXPECT_EQ(numbers(train.second), (std::vector<std::int64_t>{9, 3}));
  EXPECT_EQ(numbers(test.second), (std::vector<std::int64_t>{4}));
}

TEST(BuiltinDatasets, Cifar) {
  const auto [train, test] = datasets::cifar10::load_data(kFiles + "cifar-10-python.tar.gz");
  EXPECT_EQ(train.first.shape(), td::Shape({10, 32, 32, 3}));
  EXPECT_EQ(numbers(train.second), (std::vector<std::int64_t>{0, 1, 1, 2, 2, 3, 3, 4, 4, 5}));
  // Each image has its number, 100 more and 200 more in the three channels.
  EXPECT_EQ(numbers(train.first[1][0][0]), (std::vector<std::int64_t>{1, 101, 201}));
  EXPECT_EQ(numbers(test.second), (std::vector<std::int64_t>{9, 8}));
  const auto [coarse, unused] =
      datasets::cifar100::load_data("coarse", kFiles + "cifar-100-python.tar.gz");
  EXPECT_EQ(numbers(coarse.second), (std::vector<std::int64_t>{3, 4}));
}

TEST(BuiltinDatasets, HousesInTheOrderOfKeras) {
  const auto [train, test] = datasets::boston_housing::load_data(kFiles + "boston_housing.npz");
  const auto expected = td::io::load_npz(kFiles + "expected.npz");
  EXPECT_EQ(numbers(train.second), numbers(expected.at("boston_y_train")));
  EXPECT_EQ(numbers(test.first), numbers(expected.at("boston_x_test")));
}

TEST(BuiltinDatasets, TextsInTheOrderOfKeras) {
  const auto [train, test] = datasets::imdb::load_data(
      {.path = kFiles + "imdb.npz", .num_words = 20, .skip_top = 5, .maxlen = 7});
  const auto expected = td::io::load_npz(kFiles + "expected.npz");
  EXPECT_EQ(numbers(td::keras::utils::pad_sequences(train.first)),
            numbers(expected.at("imdb_x_train")));
  EXPECT_EQ(numbers(train.second), numbers(expected.at("imdb_y_train")));
  EXPECT_EQ(numbers(td::keras::utils::pad_sequences(test.first)),
            numbers(expected.at("imdb_x_test")));
  const auto [news, rest] = datasets::reuters::load_data({.path = kFiles + "reuters.npz"});
  EXPECT_EQ(numbers(td::keras::utils::pad_sequences(news.first)),
            numbers(expected.at("reuters_x_train")));
  EXPECT_EQ(numbers(rest.second), numbers(expected.at("reuters_y_test")));
}

TEST(BuiltinDatasets, SayWhereAMissingFileComesFrom) {
  const std::string home = std::filesystem::temp_directory_path() / "tandem_no_keras_home";
  setenv("KERAS_HOME", home.c_str(), 1);
  try {
    td::keras::utils::get_file({.origin = "/nowhere/at/all.npz"});
    FAIL();
  } catch (const td::NotFoundError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("/nowhere/at/all.npz"),
                                             testing::HasSubstr(home + "/datasets/all.npz")));
  }
  unsetenv("KERAS_HOME");
}

}  // namespace
