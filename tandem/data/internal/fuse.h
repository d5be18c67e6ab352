#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tandem/data/dataset_base.h"
#include "tandem/data/internal/element_program.h"

namespace tandem::data {

/// A map, to the stages that may run with it.
class MapStage : public TracingStage {
 public:
  virtual const DatasetRef& mapped() const = 0;
  virtual const ElementFn& function() const = 0;
  virtual const MapOptions& map_options() const = 0;
  /// This map and those before it, as one where that can be done; else this one.
  virtual const MapStage& composed() const = 0;
};

/// A dataset that runs as another one with the same elements, fewer or cheaper stages.
class FusedStage {
 public:
  virtual ~FusedStage() = default;
  /// Null where it runs as it is. Traces functions; the same for every iteration.
  virtual const DatasetBase* runs_as() const = 0;
};

/// A dataset that says how the stages before it run.
class OptionsStage {
 public:
  virtual ~OptionsStage() = default;
  virtual const Options& said() const = 0;
};

/// What a batch of a map's elements runs as.
class FusedBatchChoice {
 public:
  virtual ~FusedBatchChoice() = default;
  /// Null where both run as they are. Found once, and the same for every iteration.
  virtual const DatasetBase* get() const = 0;
};

/// What a batch of `size` runs as whose input is `input`; null if that is no map.
///
/// - A map of elementwise ops, exactly rounded and without errors, on elements of one shape runs on
///   whole batches ("Batch", then "Map"): no element's result depends on the others.
/// - Another traced map writes its results into their rows of the batch ("Map+Batch"), and where
///   calls are parallel each thread makes whole batches ("ParallelMap+Batch"), unless these are
///   large or few.
std::shared_ptr<const FusedBatchChoice> fuse_map_and_batch(const DatasetRef& input,
                                                           std::int64_t size, bool drop_remainder);

/// Such a program on batches: its arguments and results have a first axis of any size. Null if its
/// results could differ.
std::shared_ptr<const ElementProgram> on_batches(const ElementProgram& program);

/// A map over `input` that is this program already.
Dataset map_by(const DatasetRef& input, std::shared_ptr<const ElementProgram> program,
               MapOptions options);
/// A batch that does not look for a map to run with.
DatasetRef plain_batch(const DatasetRef& input, std::int64_t size, bool drop_remainder);

}  // namespace tandem::data
