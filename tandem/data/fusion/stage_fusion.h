#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tandem/data/dataset_base.h"
#include "tandem/data/sources/draws.h"
#include "tandem/data/sources/philox.h"
#include "tandem/data/sources/seed_sequence.h"
#include "tandem/data/stages/condition.h"
#include "tandem/data/stages/element_program.h"

namespace tandem::data {

/// A map, to the stages that may run with it.
class MapStage : public TracingStage {
 public:
  virtual const DatasetRef& mapped() const = 0;
  virtual const ElementFn& function() const = 0;
  virtual const MapOptions& map_options() const = 0;
  /// Null if the function is known to draw nothing. Traces it.
  virtual const FunctionRng* draws() const = 0;
  /// This map and those before it, as one where that can be done; else this one.
  virtual const MapStage& composed() const = 0;
};

/// A filter, to a map that may run with it.
class FilterStage {
 public:
  virtual ~FilterStage() = default;
  virtual const DatasetRef& filtered() const = 0;
  virtual const Condition& condition() const = 0;
  /// The random draws of its function; null without any.
  virtual const FunctionRng* draws() const = 0;
};

/// A shuffle, to a repeat that may run with it.
class ShuffleStage {
 public:
  virtual ~ShuffleStage() = default;
  virtual const DatasetRef& shuffled() const = 0;
  virtual std::int64_t buffer_size() const = 0;
  virtual const std::shared_ptr<SeedSequence>& seeds() const = 0;
  /// What draws in a pass that begins now.
  virtual Philox next_random(const IterationContext& context) const = 0;
};

/// A dataset that runs as another one with the same elements, fewer or cheaper stages.
class FusedStage {
 public:
  virtual ~FusedStage() = default;
  /// Null where it runs as it is. Traces functions; the same for every iteration.
  virtual const DatasetBase* runs_as() const = 0;
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

/// A traced map without effects and the filter after it, whose dataset has `condition`: one plan
/// for each element, on the map's threads ("Map+Filter", "ParallelMap+Filter"). Null if `input` is
/// no such map or the condition cannot be traced. The owner of the condition keeps the result.
DatasetRef fuse_map_and_filter(const DatasetRef& input, const Condition& condition);

/// A filter and the function of the map after it, the dataset `map`, which keeps the result and
/// `draws` ("Filter+Map"). Null if `input` is no filter, or one that runs with a map before it.
DatasetRef fuse_filter_and_map(const DatasetRef& input, const DatasetBase& map,
                               const ElementFn& function, const FunctionRng* draws);

/// `count` passes over a shuffle that fill its buffer for the next one while they draw their last
/// elements ("Shuffle+Repeat"). Null if `input` is no shuffle.
DatasetRef fuse_shuffle_and_repeat(const DatasetRef& input, std::int64_t count);

/// How many elements `count` passes (-1: without end) over `elements` have.
std::int64_t repeated_cardinality(std::int64_t elements, std::int64_t count);

/// Whether all its ops are such that no element of its spec could be an error.
bool cannot_fail(const ElementProgram& program);

/// A program that is elementwise as said above, on batches: its arguments and results have a first
/// axis of any size. Null if its results could differ.
std::shared_ptr<const ElementProgram> on_batches(const ElementProgram& program);

/// Calls `fn` on the elements, in a pass that `draws` is of.
std::unique_ptr<IteratorBase> make_map(std::unique_ptr<IteratorBase> input, const ElementFn& fn,
                                       DrawPass draws = {});
/// A map over `input` that is this program already.
Dataset map_by(const DatasetRef& input, std::shared_ptr<const ElementProgram> program,
               MapOptions options);
/// A batch that does not look for a map to run with.
DatasetRef plain_batch(const DatasetRef& input, std::int64_t size, bool drop_remainder);

}  // namespace tandem::data
