#pragma once

#include <cstdint>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/data/dataset.h"

/// One dataset for several workers, and for the replicas of one: what a distribution strategy asks
/// for, by tf.data's rules.
namespace tandem::data {

/// Worker `index`'s part of a dataset that all of `num_workers` make alike, as the dataset's
/// `Options::auto_shard_policy` says. By files, the sources give every `num_workers`-th file name:
/// of a list, or of a dataset of names from which interleave, flat_map or a file dataset read; a
/// shuffle of the names then shuffles the worker's own. By data, the worker gets every
/// `num_workers`-th element of the whole (batches, if the dataset ends with batch).
///
/// Throws InvalidArgumentError for policy kFile if some source has no files, and, when iterated, if
/// there are fewer files than workers.
TANDEM_EXPORT Dataset auto_shard(const Dataset& dataset, std::int64_t num_workers,
                                 std::int64_t index);

/// Takes each batch apart into `num_replicas` smaller ones along the first axis, which has the
/// sizes ⌈batch / num_replicas⌉ as long as there are rows, a smaller rest, and then 0.
TANDEM_EXPORT Dataset distribute_batch(const Dataset& dataset, std::int64_t num_replicas);

/// For `rebatch` on worker `worker_index`, so that each step of all replicas of all workers takes
/// `global_batch_size` elements: sizes differ by at most one.
TANDEM_EXPORT std::vector<std::int64_t> batch_sizes_for_worker(std::int64_t global_batch_size,
                                                               std::int64_t num_workers,
                                                               std::int64_t num_replicas_per_worker,
                                                               std::int64_t worker_index);

}  // namespace tandem::data
