#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/ops/host_ops.h"

namespace tandem::data {

Dataset list_files(FileNames names, ListFilesOptions options) {
  const std::vector<std::string> patterns = std::move(names).list();
  if (patterns.empty()) {
    throw InvalidArgumentError(
        "list_files needs a pattern, as \"photos/*.jpg\"; it was given none.");
  }
  const Tensor files = io::matching_files(Tensor(Array::vector(patterns)));
  if (files.dim(0) == 0) {
    std::string all;
    for (const std::string& pattern : patterns) all += (all.empty() ? "" : ", ") + pattern;
    throw InvalidArgumentError(cat("No files matched pattern: ", all));
  }
  Dataset dataset = from_tensor_slices(files);
  return options.shuffle ? dataset.shuffle(files.dim(0), {.seed = options.seed}) : dataset;
}

}  // namespace tandem::data
