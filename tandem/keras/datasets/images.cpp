#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"
#include "tandem/fs/paths.h"
#include "tandem/keras/builtin_datasets.h"
#include "tandem/keras/internal/cache_paths.h"
#include "tandem/keras/internal/dataset_files.h"
#include "tandem/keras/internal/pickle.h"
#include "tandem/ops/array_ops.h"

namespace tandem::keras::datasets {
namespace {

constexpr std::size_t kMaxUnpacked = std::size_t{1} << 30;

Tensor bytes_tensor(std::string_view bytes, const Shape& shape) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return Tensor::from(std::vector<std::uint8_t>(begin, begin + bytes.size()), shape);
}

// The format of MNIST's own files: 0, 0, 8 (bytes), the number of axes, their sizes, the values.
Tensor read_idx(const std::string& path) {
  const std::string bytes = fs::gunzip(fs::read_file(path), kMaxUnpacked, path);
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() < 4 || at(2) != 8 || bytes.size() < 4 + 4 * std::size_t{at(3)})
    throw DataLossError(cat(path, " is no IDX file of bytes."));
  Shape shape;
  std::size_t count = 1;
  for (std::size_t axis = 0; axis < at(3); ++axis) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | at(4 + 4 * axis + i);
    shape.add_dim(static_cast<std::int64_t>(size));
    if (size != 0 && count > bytes.size() / size) throw DataLossError(cat(path, " is cut off."));
    count *= size;
  }
  const std::string_view values = std::string_view(bytes).substr(4 + 4 * std::size_t{at(3)});
  if (values.size() != count) throw DataLossError(cat(path, " is cut off."));
  return bytes_tensor(values, shape);
}

// The files of a tar archive whose names end in one of `endings`, in that order.
std::vector<std::string> files_of_tar(std::string_view tar, const std::vector<std::string>& endings,
                                      const std::string& name) {
  constexpr std::size_t kBlock = 512;
  std::vector<std::string> contents(endings.size());
  for (std::size_t at = 0; at + kBlock <= tar.size() && tar[at] != '\0';) {
    const std::string_view header = tar.substr(at, kBlock);
    const std::string file(header.data(), strnlen(header.data(), 100));
    const std::string digits(header.substr(124, 11));
    const std::size_t size = std::strtoull(digits.c_str(), nullptr, 8);
    at += kBlock;
    if (size > tar.size() - at) throw DataLossError(cat(name, " is cut off in ", file, "."));
    for (std::size_t i = 0; i < endings.size(); ++i)
      if (file.ends_with(endings[i])) contents[i] = tar.substr(at, size);
    at += (size + kBlock - 1) / kBlock * kBlock;
  }
  for (std::size_t i = 0; i < endings.size(); ++i)
    if (contents[i].empty()) throw DataLossError(cat(name, " has no file ", endings[i], "."));
  return contents;
}

struct Cifar {
  const char* archive;  // "cifar-10-python.tar.gz"
  const char* folder;   // what it unpacks to
  const char* cached;   // where Keras unpacks it
};

// The files from the archive or from a folder of the user's or of the cache.
std::vector<std::string> cifar_files(const Cifar& cifar, const std::string& given,
                                     const std::vector<std::string>& names) {
  std::string path = given;
  if (path.empty()) {
    const std::string cache = internal::cache_folder("datasets");
    for (const std::string& folder : {fs::join_path(cache, cifar.cached), cache}) {
      const std::string unpacked = fs::join_path(folder, cifar.folder);
      if (internal::file_exists(unpacked)) path = unpacked;
    }
  }
  if (path.empty()) {
    path = utils::get_file({.fname = cifar.archive,
                            .origin = cat("https://www.cs.toronto.edu/~kriz/", cifar.archive)});
  }
  if (!internal::file_exists(path)) throw NotFoundError(cat(path, " is not there."));
  if (!fs::file_system_of(path).stat(path).is_directory) {
    return files_of_tar(fs::gunzip(fs::read_file(path), kMaxUnpacked, path), names, path);
  }
  std::string folder = path;
  const std::string inner = fs::join_path(path, cifar.folder);
  if (internal::file_exists(inner)) folder = inner;
  std::vector<std::string> contents;
  for (const std::string& name : names)
    contents.push_back(fs::read_file(fs::join_path(folder, name)));
  return contents;
}

// Rows of 3072 bytes, red, green and blue one after the other, and a list of labels.
Examples cifar_examples(const std::vector<std::string>& pickles, const char* labels,
                        const std::string& name) {
  std::string pixels;
  std::vector<std::uint8_t> classes;
  for (const std::string& pickle : pickles) {
    const internal::PickledRef batch = internal::read_pickle(pickle, name);
    const internal::PickledRef data = internal::find_key(*batch, "data");
    const internal::PickledRef list = internal::find_key(*batch, labels);
    if (!data || !list) throw DataLossError(cat(name, " has no data or no ", labels, "."));
    pixels += internal::array_of(*data, name).bytes;
    const auto* numbers = std::get_if<internal::Pickled::List>(&list->value);
    if (!numbers) throw DataLossError(cat(name, ": ", labels, " is no list."));
    for (const internal::PickledRef& number : numbers->values) {
      const auto* value = std::get_if<std::int64_t>(&number->value);
      if (!value || *value < 0 || *value > 255)
        throw DataLossError(cat(name, ": a label is no small number."));
      classes.push_back(static_cast<std::uint8_t>(*value));
    }
  }
  const auto count = static_cast<std::int64_t>(classes.size());
  if (pixels.size() != classes.size() * 3072)
    throw DataLossError(cat(name, " has ", pixels.size(), " bytes for ", count, " labels."));
  return {transpose(bytes_tensor(pixels, {count, 3, 32, 32}), {0, 2, 3, 1}),
          Tensor::from(classes, {count, 1})};
}

Splits cifar(const Cifar& which, const std::string& path, std::vector<std::string> train,
             const std::string& test, const char* labels) {
  std::vector<std::string> names = std::move(train);
  names.push_back(test);
  std::vector<std::string> files = cifar_files(which, path, names);
  const std::vector<std::string> last{std::move(files.back())};
  files.pop_back();
  return {cifar_examples(files, labels, which.archive),
          cifar_examples(last, labels, which.archive)};
}

}  // namespace

namespace fashion_mnist {
Splits load_data(const String& path) {
  const auto part = [&](const char* name) {
    return read_idx(path.empty() ? utils::get_file({.origin = internal::kDatasetsUrl + name,
                                                    .cache_subdir = "datasets/fashion-mnist"})
                                 : fs::join_path(path, name));
  };
  const Tensor y_train = part("train-labels-idx1-ubyte.gz");
  const Tensor x_train = part("train-images-idx3-ubyte.gz");
  const Tensor y_test = part("t10k-labels-idx1-ubyte.gz");
  return {{x_train, y_train}, {part("t10k-images-idx3-ubyte.gz"), y_test}};
}
}  // namespace fashion_mnist

namespace cifar10 {
Splits load_data(const String& path) {
  return cifar({"cifar-10-python.tar.gz", "cifar-10-batches-py", "cifar-10-batches-py-target"},
               path,
               {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"},
               "test_batch", "labels");
}
}  // namespace cifar10

namespace cifar100 {
Splits load_data(const String& label_mode, const String& path) {
  if (label_mode != "fine" && label_mode != "coarse") {
    throw InvalidArgumentError(cat("`label_mode` must be one of `\"fine\"`, `\"coarse\"`. ",
                                   "Received: label_mode=", label_mode));
  }
  return cifar({"cifar-100-python.tar.gz", "cifar-100-python", "cifar-100-python-target"}, path,
               {"train"}, "test", label_mode == "fine" ? "fine_labels" : "coarse_labels");
}
}  // namespace cifar100

}  // namespace tandem::keras::datasets
