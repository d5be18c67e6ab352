#include <algorithm>
#include <cstdint>
#include <limits>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/npy.h"
#include "tandem/io/zip.h"
#include "tandem/keras/builtin_datasets.h"
#include "tandem/keras/internal/dataset_files.h"
#include "tandem/keras/internal/model_config.h"
#include "tandem/keras/internal/numpy_shuffle.h"
#include "tandem/keras/internal/pickle.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::keras::datasets {
namespace {

using Sequences = std::vector<std::vector<std::int64_t>>;

struct Labelled {
  Sequences texts;
  std::vector<std::int64_t> labels;
};

const std::string& entry(const std::vector<io::ZipEntry>& entries, const std::string& name,
                         const std::string& path) {
  for (const io::ZipEntry& e : entries)
    if (e.name == name + ".npy") return e.content;
  throw DataLossError(cat(path, " has no array '", name, "': it is another dataset's file."));
}

// An array of Python's lists: the header of an .npy file, then a pickle.
Sequences read_lists(const std::string& npy, const std::string& path) {
  if (npy.size() < 12 || npy.compare(0, 6, "\x93NUMPY") != 0)
    throw DataLossError(cat(path, ": an array in it is damaged."));
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(npy[i]); };
  std::size_t begin = 10 + byte(8) + 256 * std::size_t{byte(9)};
  if (byte(6) > 1)
    begin = 12 + byte(8) + 256 * std::size_t{byte(9)} + 65536 * std::size_t{byte(10)};
  if (begin > npy.size()) throw DataLossError(cat(path, ": an array in it is cut off."));
  const internal::PickledRef value =
      internal::read_pickle(std::string_view(npy).substr(begin), path);
  const internal::PickledArray array = internal::array_of(*value, path);
  Sequences texts;
  for (const internal::PickledRef& row : array.objects) {
    const auto* list = std::get_if<internal::Pickled::List>(&row->value);
    if (!list) throw DataLossError(cat(path, ": a text in it is no list."));
    std::vector<std::int64_t>& text = texts.emplace_back();
    for (const internal::PickledRef& word : list->values) {
      const auto* number = std::get_if<std::int64_t>(&word->value);
      if (!number || *number < 0 || *number > std::numeric_limits<std::int32_t>::max())
        throw DataLossError(cat(path, ": a word in it is no number of 31 bits."));
      text.push_back(*number);
    }
  }
  return texts;
}

std::vector<std::int64_t> read_labels(const std::string& npy, const std::string& path) {
  return cast(Tensor(io::decode_npy(npy, path)), int64).to_vector<std::int64_t>();
}

Labelled read(const std::vector<io::ZipEntry>& entries, const std::string& x, const std::string& y,
              const std::string& path) {
  Labelled all{read_lists(entry(entries, x, path), path),
               read_labels(entry(entries, y, path), path)};
  if (all.texts.size() != all.labels.size())
    throw DataLossError(cat(path, ": there are not as many labels as texts."));
  return all;
}

std::vector<io::ZipEntry> entries_of(const std::string& path) {
  constexpr std::size_t kMaxUnpacked = std::size_t{1} << 30;
  return io::read_zip(fs::read_file(path), kMaxUnpacked, path);
}

// In Keras' order, each with the first word and the shift, without those that are too long.
Labelled prepared(const Labelled& all, const std::vector<std::size_t>& order,
                  const TextOptions& o) {
  Labelled result;
  for (const std::size_t i : order) {
    std::vector<std::int64_t> text;
    if (o.start_char) text.push_back(*o.start_char);
    for (const std::int64_t word : all.texts[i]) text.push_back(word + o.index_from);
    if (o.maxlen && static_cast<std::int64_t>(text.size()) >= *o.maxlen) continue;
    result.texts.push_back(std::move(text));
    result.labels.push_back(all.labels[i]);
  }
  return result;
}

std::int64_t words_of(const Sequences& texts) {
  std::int64_t most = 0;
  for (const auto& text : texts)
    for (const std::int64_t word : text) most = std::max(most, word);
  return most;
}

void replace_rare_words(Sequences& texts, std::int64_t num_words, const TextOptions& o) {
  for (auto& text : texts) {
    std::vector<std::int64_t> kept;
    for (const std::int64_t word : text) {
      if (word >= o.skip_top && word < num_words) {
        kept.push_back(word);
      } else if (o.oov_char) {
        kept.push_back(*o.oov_char);
      }
    }
    text = std::move(kept);
  }
}

Texts texts_of(const Labelled& all, std::size_t begin, std::size_t end) {
  const auto from = static_cast<std::ptrdiff_t>(begin), to = static_cast<std::ptrdiff_t>(end);
  return {Sequences(all.texts.begin() + from, all.texts.begin() + to),
          Tensor(std::vector<std::int64_t>(all.labels.begin() + from, all.labels.begin() + to))};
}

std::map<std::string, std::int64_t> word_index(const std::string& path, const std::string& name) {
  const std::string file = internal::dataset_file(path, name);
  std::map<std::string, std::int64_t> index;
  const ConfigObject json = internal::object_from_json(fs::read_file(file), file);
  for (const auto& [word, number] : json.config.entries()) {
    const auto* value = std::get_if<std::int64_t>(&number);
    if (!value) throw DataLossError(cat(file, ": the number of '", word, "' is none."));
    index[word] = *value;
  }
  return index;
}

}  // namespace

namespace imdb {

TextSplits load_data(const TextOptions& o) {
  const std::string path = internal::dataset_file(o.path, "imdb.npz");
  const std::vector<io::ZipEntry> entries = entries_of(path);
  // One generator shuffles both parts in Keras, so the second goes on where the first ended.
  Labelled train = read(entries, "x_train", "y_train", path);
  Labelled test = read(entries, "x_test", "y_test", path);
  internal::NumpyShuffle shuffle(o.seed);
  train = prepared(train, shuffle.next(train.texts.size()), o);
  test = prepared(test, shuffle.next(test.texts.size()), o);
  const std::int64_t num_words =
      o.num_words.value_or(std::max(words_of(train.texts), words_of(test.texts)));
  replace_rare_words(train.texts, num_words, o);
  replace_rare_words(test.texts, num_words, o);
  return {texts_of(train, 0, train.texts.size()), texts_of(test, 0, test.texts.size())};
}

std::map<std::string, std::int64_t> get_word_index(const String& path) {
  return word_index(path, "imdb_word_index.json");
}

}  // namespace imdb

namespace reuters {

TextSplits load_data(const TextOptions& o) {
  if (!(o.test_split >= 0 && o.test_split <= 1)) {
    throw InvalidArgumentError(
        cat("load_data: test_split must be from 0 to 1, got ", o.test_split, "."));
  }
  const std::string path = internal::dataset_file(o.path, "reuters.npz");
  const Labelled given = read(entries_of(path), "x", "y", path);
  Labelled all = prepared(given, internal::NumpyShuffle(o.seed).next(given.texts.size()), o);
  replace_rare_words(all.texts, o.num_words.value_or(words_of(all.texts)), o);
  const auto at =
      static_cast<std::size_t>(static_cast<double>(all.texts.size()) * (1 - o.test_split));
  return {texts_of(all, 0, at), texts_of(all, at, all.texts.size())};
}

std::map<std::string, std::int64_t> get_word_index(const String& path) {
  return word_index(path, "reuters_word_index.json");
}

std::vector<std::string> get_label_names() {
  return {"cocoa",        "grain",   "veg-oil",   "earn",
          "acq",          "wheat",   "copper",    "housing",
          "money-supply", "coffee",  "sugar",     "trade",
          "reserves",     "ship",    "cotton",    "carcass",
          "crude",        "nat-gas", "cpi",       "money-fx",
          "interest",     "gnp",     "meal-feed", "alum",
          "oilseed",      "gold",    "tin",       "strategic-metal",
          "livestock",    "retail",  "ipi",       "iron-steel",
          "rubber",       "heat",    "jobs",      "lei",
          "bop",          "zinc",    "orange",    "pet-chem",
          "dlr",          "gas",     "silver",    "wpi",
          "hog",          "lead"};
}

}  // namespace reuters
}  // namespace tandem::keras::datasets
