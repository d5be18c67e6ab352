// keras.datasets from files as Keras has them in its cache, made by expected/make_datasets.py.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/fs/gzip.h"
#include "tandem/tandem.h"

#include "tests/unit/folder.h"

namespace td = tandem;

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

// The content of a file in a tar archive, which begins in the block after its name.
std::string file_of_tar(const std::string& path, const std::string& name) {
  std::ifstream file(path, std::ios::binary);
  const std::string zipped{std::istreambuf_iterator<char>(file), {}};
  const std::string tar = td::fs::gunzip(zipped, std::size_t{1} << 24, path);
  const std::size_t at = tar.find(name + '\0');
  return tar.substr(at + 512, std::stoull(tar.substr(at + 124, 11), nullptr, 8));
}

// Whether damaged data are read or refused with a typed error; any other end fails the test.
bool loads(const std::filesystem::path& folder, const std::string& train) {
  std::ofstream(folder / "train", std::ios::binary) << train;
  try {
    datasets::cifar100::load_data("fine", folder);
    return true;
  } catch (const td::Error&) {
    return false;
  }
}

TEST(BuiltinDatasets, RefuseDamagedPickles) {
  const td::Folder of_test;
  const std::filesystem::path folder = of_test.path();
  const std::string archive = kFiles + "cifar-100-python.tar.gz";
  const std::string train = file_of_tar(archive, "cifar-100-python/train");
  std::ofstream(folder / "test", std::ios::binary) << file_of_tar(archive, "cifar-100-python/test");
  ASSERT_TRUE(loads(folder, train));
  for (std::size_t size = 0; size < train.size(); size += size < 200 ? 1 : 97)
    EXPECT_FALSE(loads(folder, train.substr(0, size))) << size << " bytes";
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = train;
    for (int i = 0; i < 1 + round % 3; ++i) {
      // The pixels in the middle may be any bytes.
      const std::size_t near_end = random() % 400;
      const std::size_t at = near_end < 200 ? near_end : bytes.size() - near_end % 200 - 1;
      bytes[at] = static_cast<char>(random());
    }
    loads(folder, bytes);
  }
  const std::string list_in_itself =
      "]q\x01h\x01"
      "a.";
  EXPECT_FALSE(loads(folder, list_in_itself));
  EXPECT_FALSE(loads(folder, std::string(100000, ']') + std::string(99999, 'a') + '.'));
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
