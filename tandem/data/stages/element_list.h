#pragma once

#include <memory>
#include <vector>

#include "tandem/core/variant.h"
#include "tandem/data/dataset_base.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/state_archive.h"

namespace tandem::data {

/// Elements in memory as a dataset: what windows are. `origins` are theirs.
Dataset element_list(std::shared_ptr<const std::vector<Element>> elements, ElementSpec spec,
                     std::shared_ptr<const Origins> origins = nullptr);

/// For variants that hold a dataset made by `element_list`, or a shard of a snapshot; throws
/// UnimplementedError for others.
void save_dataset(StateArchive& state, const Variant& variant);
Variant restore_dataset(StateArchive& state);

}  // namespace tandem::data
