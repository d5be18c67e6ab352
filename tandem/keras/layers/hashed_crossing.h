#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"

namespace tandem::keras {

struct HashedCrossingOptions {
  String output_mode = "int";  ///< or "one_hot"
  String name = {};
};
/// Several columns of texts or integers, [batch] or [batch, 1], as one column of hashes of their
/// combinations, below num_bins: `HashedCrossing(5)({countries, devices})`.
class TANDEM_EXPORT HashedCrossing : public Layer {
 public:
  explicit HashedCrossing(std::int64_t num_bins, const HashedCrossingOptions& options = {});
};

/// What a layer expects of an input; LayerImpl's require_rank and require_size check it.
struct InputSpec {
  DType dtype = DType::kInvalid;
  std::vector<std::int64_t> shape = {};
  int ndim = -1;
  int max_ndim = -1;
  int min_ndim = -1;
  std::vector<std::pair<int, std::int64_t>> axes = {};  ///< sizes along some axes
  String name = {};
};

}  // namespace tandem::keras
