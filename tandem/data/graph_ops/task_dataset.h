#pragma once

#include <memory>

#include "tandem/data/dataset_base.h"

namespace tandem::data {

/// The dataset that an iteration, begun by the calling thread, draws from: where the thread's
/// device scope names another task of a cluster and every stage of the pipeline is one of tf.data's
/// ops, one that is made there once and whose elements stay there; else `dataset` itself. A
/// pipeline that runs here though the scope names a task is reported on stderr, once.
DatasetRef dataset_for_scope(const DatasetRef& dataset);

}  // namespace tandem::data
