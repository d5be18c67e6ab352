#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

/// keras.datasets: small well-known data, for first experiments.
///
///     auto [train, test] = td::keras::datasets::mnist::load_data();
///     auto [images, labels] = train;
///
/// `path` is a file (or folder) of yours; without it, or with a plain name, it is looked for in
/// Keras' cache ($KERAS_HOME or ~/.keras, folder datasets), and downloaded where there is a
/// network. What is missing throws NotFoundError, which says where to get it and where to put it;
/// damaged files throw DataLossError. The order of what is shuffled is Keras'.
namespace tandem::keras::datasets {

/// Inputs and labels.
using Examples = std::pair<Tensor, Tensor>;
/// Those to train with, those to test with.
using Splits = std::pair<Examples, Examples>;

namespace mnist {
/// Digits: uint8 [60000, 28, 28] and [60000]; 10000 to test.
TANDEM_EXPORT Splits load_data(const String& path = "mnist.npz");
}  // namespace mnist

namespace fashion_mnist {
/// Pieces of clothing, like MNIST. `path`: a folder with the four `….gz` files.
TANDEM_EXPORT Splits load_data(const String& path = "");
}  // namespace fashion_mnist

namespace cifar10 {
/// Photos of ten classes: uint8 [50000, 32, 32, 3] and [50000, 1]; 10000 to test. `path`:
/// cifar-10-python.tar.gz, or the folder of what it unpacks to.
TANDEM_EXPORT Splits load_data(const String& path = "");
}  // namespace cifar10

namespace cifar100 {
/// … of a hundred classes, or of their twenty groups: label_mode "fine" or "coarse". `path`:
/// cifar-100-python.tar.gz, or the folder of what it unpacks to.
TANDEM_EXPORT Splits load_data(const String& label_mode = "fine", const String& path = "");
}  // namespace cifar100

namespace boston_housing {
/// Prices of houses from 13 numbers each.
TANDEM_EXPORT Splits load_data(const String& path = "boston_housing.npz", double test_split = 0.2,
                               std::int64_t seed = 113);
}  // namespace boston_housing

namespace california_housing {
/// Prices of districts from 8 numbers each; version "large" or "small" (600 districts).
TANDEM_EXPORT Splits load_data(const String& version = "large",
                               const String& path = "california_housing.npz",
                               double test_split = 0.2, std::int64_t seed = 113);
}  // namespace california_housing

/// Texts as numbers of words, of different lengths (utils::pad_sequences makes a matrix), and their
/// labels.
using Texts = std::pair<std::vector<std::vector<std::int64_t>>, Tensor>;
using TextSplits = std::pair<Texts, Texts>;

struct TextOptions {
  String path = {};
  std::optional<std::int64_t> num_words = std::nullopt;  ///< rarer words become oov_char
  std::int64_t skip_top = 0;                             ///< as do the most frequent ones
  std::optional<std::int64_t> maxlen = std::nullopt;     ///< longer texts are left out
  double test_split = 0.2;                               ///< of reuters; imdb is split already
  std::int64_t seed = 113;
  std::optional<std::int64_t> start_char = 1;  ///< before each text
  std::optional<std::int64_t> oov_char = 2;    ///< without one such words are left out
  std::int64_t index_from = 3;                 ///< is added to the numbers of words
};

namespace imdb {
/// Reviews of films, bad (0) or good (1).
TANDEM_EXPORT TextSplits load_data(const TextOptions& options = {});
/// The number of each word, without `index_from`.
TANDEM_EXPORT std::map<std::string, std::int64_t> get_word_index(
    const String& path = "imdb_word_index.json");
}  // namespace imdb

namespace reuters {
/// News of 46 topics.
TANDEM_EXPORT TextSplits load_data(const TextOptions& options = {});
TANDEM_EXPORT std::map<std::string, std::int64_t> get_word_index(
    const String& path = "reuters_word_index.json");
TANDEM_EXPORT std::vector<std::string> get_label_names();
}  // namespace reuters

}  // namespace tandem::keras::datasets
