#include "tandem/data/fuse.h"

#include <optional>

#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"

namespace tandem::data {
namespace {

void add_stages(const DatasetBase& dataset, std::optional<bool> fusion, int depth,
                std::string& lines) {
  if (const Options* options = dataset.options(); options != nullptr && !fusion) {
    fusion = options->fusion;
  }
  const auto* fused = dynamic_cast<const FusedStage*>(&dataset);
  if (fused != nullptr && fusion.value_or(true)) {
    if (const DatasetBase* other = fused->runs_as()) {
      return add_stages(*other, fusion, depth, lines);
    }
  }
  lines += std::string(static_cast<std::size_t>(2 * depth), ' ') + dataset.name() + "\n";
  for (const DatasetBase* input : dataset.inputs()) add_stages(*input, fusion, depth + 1, lines);
}

}  // namespace

std::string stages(const Dataset& dataset) {
  std::string lines;
  add_stages(*base_of(dataset), std::nullopt, 0, lines);
  return lines;
}

}  // namespace tandem::data
