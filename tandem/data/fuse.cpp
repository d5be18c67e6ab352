#include "tandem/data/fuse.h"

#include "tandem/data/internal/fuse.h"
#include "tandem/data/internal/row_stage.h"

namespace tandem::data {
namespace {

void add_stages(const DatasetBase& dataset, int depth, std::string& lines) {
  if (const auto* fused = dynamic_cast<const FusedStage*>(&dataset)) {
    if (const DatasetBase* other = fused->runs_as()) return add_stages(*other, depth, lines);
  }
  lines += std::string(static_cast<std::size_t>(2 * depth), ' ') + dataset.name() + "\n";
  for (const DatasetBase* input : dataset.inputs()) add_stages(*input, depth + 1, lines);
}

}  // namespace

std::string stages(const Dataset& dataset) {
  std::string lines;
  add_stages(*base_of(dataset), 0, lines);
  return lines;
}

}  // namespace tandem::data
