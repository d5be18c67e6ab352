#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/paths.h"
#include "tandem/io/npy.h"
#include "tandem/keras/builtin_datasets.h"
#include "tandem/keras/internal/cache_paths.h"
#include "tandem/keras/internal/dataset_files.h"
#include "tandem/keras/internal/numpy_shuffle.h"
#include "tandem/ops/array_ops.h"

namespace tandem::keras {
namespace internal {

// RandomState draws 32 bits of a Mersenne twister, masked to the next power of two, until they are
// small enough.
std::vector<std::size_t> NumpyShuffle::next(std::size_t count) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  for (std::size_t i = count; i-- > 1;) {
    std::uint32_t mask = static_cast<std::uint32_t>(i);
    for (const int shift : {1, 2, 4, 8, 16}) mask |= mask >> shift;
    std::uint32_t j = 0;
    do {
      j = static_cast<std::uint32_t>(twister_()) & mask;
    } while (j > i);
    std::swap(order[i], order[j]);
  }
  return order;
}

std::string dataset_file(const std::string& path, const std::string& name) {
  const std::string wanted = path.empty() ? name : path;
  if (wanted.find('/') != std::string::npos || file_exists(wanted)) return wanted;
  return utils::get_file({.fname = wanted, .origin = kDatasetsUrl + name});
}

Tensor named_array(const std::map<std::string, Tensor>& arrays, const std::string& name,
                   const std::string& path) {
  const auto found = arrays.find(name);
  if (found == arrays.end())
    throw DataLossError(cat(path, " has no array '", name, "': it is another dataset's file."));
  return found->second;
}

}  // namespace internal

namespace datasets {
namespace {

Splits split_shuffled(const std::string& path, double test_split, std::int64_t seed,
                      std::int64_t at_most) {
  if (!(test_split >= 0 && test_split < 1)) {
    throw InvalidArgumentError(
        cat("load_data: test_split must be from 0 to below 1, got ", test_split, "."));
  }
  const auto arrays = io::load_npz(path);
  Tensor x = internal::named_array(arrays, "x", path), y = internal::named_array(arrays, "y", path);
  if (x.rank() < 1 || y.rank() < 1 || x.dim(0) != y.dim(0))
    throw DataLossError(cat(path, ": x and y have different numbers of rows."));
  const std::int64_t count = at_most > 0 ? std::min(at_most, x.dim(0)) : x.dim(0);
  std::vector<std::int64_t> order;
  for (const std::size_t i : internal::NumpyShuffle(seed).next(static_cast<std::size_t>(count)))
    order.push_back(static_cast<std::int64_t>(i));
  x = gather(x, Tensor(order));
  y = gather(y, Tensor(order));
  const auto at = static_cast<std::int64_t>(static_cast<double>(count) * (1 - test_split));
  const auto rows = [](const Tensor& t, std::int64_t begin, std::int64_t end) {
    return Tensor(t.array().slice_outer(begin, end));
  };
  return {{rows(x, 0, at), rows(y, 0, at)}, {rows(x, at, count), rows(y, at, count)}};
}

}  // namespace

namespace mnist {
Splits load_data(const String& path) {
  const std::string file = internal::dataset_file(path, "mnist.npz");
  const auto arrays = io::load_npz(file);
  const auto array = [&](const char* name) { return internal::named_array(arrays, name, file); };
  return {{array("x_train"), array("y_train")}, {array("x_test"), array("y_test")}};
}
}  // namespace mnist

namespace boston_housing {
Splits load_data(const String& path, double test_split, std::int64_t seed) {
  return split_shuffled(internal::dataset_file(path, "boston_housing.npz"), test_split, seed, 0);
}
}  // namespace boston_housing

namespace california_housing {
Splits load_data(const String& version, const String& path, double test_split, std::int64_t seed) {
  if (version != "large" && version != "small") {
    throw InvalidArgumentError(
        cat("Argument `version` must be one of 'small', 'large'. Received: ", "version=", version));
  }
  return split_shuffled(internal::dataset_file(path, "california_housing.npz"), test_split, seed,
                        version == "small" ? 600 : 0);
}
}  // namespace california_housing

}  // namespace datasets
}  // namespace tandem::keras
