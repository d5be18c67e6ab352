#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/data/element.h"

// Options of the functions of td::data::Dataset. A number that is out of its range is an
// InvalidArgumentError which names it, where the dataset is made. Sizes and counts are >= 1 where
// nothing else is said, numbers of calls 0, kAutotune or >= 1; more than 4,096 are
// taken for 4,096.

namespace tandem::data {

/// For numbers of calls and sizes of buffers: found by the pipeline itself. The number is that of
/// kInfinite, TensorFlow's: which is meant, the argument says.
inline constexpr std::int64_t kAutotune = -1;

struct BatchOptions {
  bool drop_remainder = false;  ///< leave out a last batch of fewer elements
  std::int64_t num_parallel_calls =
      0;  ///< 0: where the batches are consumed; else on so many threads; or kAutotune
  std::optional<bool> deterministic = std::nullopt;  ///< keep the order of the batches; as for map
};
struct RaggedBatchOptions {
  bool drop_remainder = false;             ///< leave out a last batch of fewer elements
  DType row_splits_dtype = DType::kInt64;  ///< or kInt32
};
struct ShuffleOptions {
  /// Without one: follows td::random::set_seed; without that, a new order each run.
  std::optional<std::int64_t> seed = std::nullopt;
  bool reshuffle_each_iteration = true;  ///< another order each time the dataset is iterated
};
struct MapOptions {
  std::int64_t num_parallel_calls =
      0;  ///< 0: where the elements are consumed; else on so many threads; or kAutotune
  /// Keep the order of the elements when calls are parallel; without a value as with_options says,
  /// else yes.
  std::optional<bool> deterministic = std::nullopt;
  /// Whether the function is traced once, when an iteration begins, and its graph run for each
  /// element. Without a value: if the callable holds nothing, the input's dtypes are known, and
  /// tracing succeeds without asking for sizes that only a run knows; what it does besides calling
  /// ops then happens once. True: in any case; what tracing throws comes out where the iteration
  /// begins. False: it is called for each element.
  std::optional<bool> traced = std::nullopt;
};
struct InterleaveOptions {
  std::int64_t cycle_length = kAutotune;  ///< datasets taken from in turn; kAutotune: as many as
                                          ///< parallel calls, 4 if there are none
  std::int64_t block_length = 1;          ///< successive elements from each
  std::int64_t num_parallel_calls = 0;    ///< threads that make elements ahead; as for map
  std::optional<bool> deterministic = std::nullopt;  ///< as for map
};
struct PaddedBatchOptions {
  bool drop_remainder = false;
  /// One for each component; unknown sizes, or none at all: the longest in the batch.
  std::vector<PartialShape> padded_shapes = {};
  /// One scalar for each component; none: zeros and empty strings.
  std::vector<Tensor> padding_values = {};
};
struct BucketOptions {
  bool drop_remainder = false;
  std::vector<PartialShape> padded_shapes = {};  ///< as for padded_batch
  std::vector<Tensor> padding_values = {};
  bool pad_to_bucket_boundary = false;  ///< unknown sizes become the bucket's boundary less one
  bool no_padding = false;              ///< the elements of a batch have one shape already
};
struct WindowOptions {
  std::int64_t shift = 0;   ///< elements between the beginnings of windows; 0: the size
  std::int64_t stride = 1;  ///< elements between those of one window
  bool drop_remainder = false;
};
struct ListFilesOptions {
  bool shuffle = true;  ///< else sorted
  std::optional<std::int64_t> seed = std::nullopt;
};
struct SampleOptions {
  std::vector<double> weights = {};  ///< one for each dataset, in any unit; none: equal ones
  std::optional<std::int64_t> seed = std::nullopt;  ///< as for shuffle
  bool stop_on_empty_dataset = false;       ///< end with the first that ends, else with the last
  bool rerandomize_each_iteration = false;  ///< other choices each time the dataset is iterated
};

struct ResampleOptions {
  /// How often classes come in the input; none: estimated from another pass over it, again after
  /// every 32 elements.
  std::vector<float> initial_dist = {};
  std::optional<std::int64_t> seed = std::nullopt;
};

/// Counts errors that were left out, and keeps the first ones. Thread-safe.
class TANDEM_EXPORT ErrorCount {
 public:
  static constexpr std::size_t kKept = 16;
  std::int64_t count() const;
  /// The messages of the first kKept.
  std::vector<std::string> messages() const;
  void add(std::string message);

 private:
  mutable std::mutex mutex_;
  std::int64_t count_ = 0;
  std::vector<std::string> messages_;
};
struct IgnoreErrorsOptions {
  bool log_warning = false;                     ///< a line on stderr for each
  std::shared_ptr<ErrorCount> count = nullptr;  ///< counts each error
};

/// How stages with kAutotune find their threads and buffers: see "Seeing and tuning" in
/// docs/data.md. The order of elements never depends on it.
struct AutotuneOptions {
  /// False: kAutotune gives each stage the whole CPU budget; without a value yes.
  std::optional<bool> enabled = std::nullopt;
  /// Threads of all such stages together; none or 0: as many as the runtime's inter-op pool has.
  std::optional<std::int64_t> cpu_budget = std::nullopt;
  /// Bytes in their buffers together; none or 0: half of the machine's memory, or of
  /// the container's.
  std::optional<std::int64_t> ram_budget = std::nullopt;
  /// Nanoseconds that handing an element from thread to thread takes. Where a map's elements, with
  /// what comes before it, take less, the consumer makes them; 0: threads always do;
  /// none: 4,000.
  std::optional<std::int64_t> handoff_ns = std::nullopt;
};

struct IteratorOptions {
  bool observe = false;  ///< count what each stage does, for Iterator::stats
};

/// What td::data::auto_shard gives a worker.
enum class AutoShardPolicy : std::int8_t {
  kOff = -1,  ///< everything
  kAuto = 0,  ///< its files where the elements come from files, else its elements
  kFile = 1,  ///< its files: InvalidArgumentError where there are none
  kData = 2,  ///< its elements, of which all others are made and thrown away
};
/// Every `num_shards`-th file, beginning with number `index`.
struct FileShard {
  std::int64_t num_shards = 1;
  std::int64_t index = 0;
};

/// For all stages before with_options. What a stage says itself goes first; of several with_options
/// the last one that says something.
struct Options {
  /// Let stages run as one, or in a cheaper order with equal results (docs/data.md, "Stages that
  /// run as one"); without a value yes.
  std::optional<bool> fusion = std::nullopt;
  std::optional<bool> deterministic = std::nullopt;  ///< keep the order where calls are parallel
  /// How many threads kAutotune gives a stage, untuned; none or 0: found by the pipeline.
  std::optional<std::int64_t> private_threadpool_size = std::nullopt;
  AutotuneOptions autotune = {};
  std::optional<AutoShardPolicy> auto_shard_policy = std::nullopt;  ///< without one kAuto
  std::optional<FileShard> file_shard = std::nullopt;  ///< set by auto_shard: what sources give
};

}  // namespace tandem::data
