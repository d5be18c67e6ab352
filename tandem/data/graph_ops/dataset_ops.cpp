// tf.data's ops for datasets, as graphs and remote clients call them: a dataset is a scalar variant
// (`to_variant`). What they make is td::data's; C++ programs call that directly.

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

#define TANDEM_SPEC "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
#define TANDEM_TENSORS "Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
#define TANDEM_FUNCTION "Targuments: list(type) >= 0; "
#define TANDEM_METADATA "metadata: string = ''"

// Reads no state that others change, but two datasets are two things: none stands for another.
constexpr OpTraits kMakes{.stateful = true,
                          .reads_only = true,
                          .retains_inputs = ~std::uint32_t{0},
                          .host_inputs = ~std::uint32_t{0},
                          .cpu_only = true};

OpDecl maker(const char* name, const char* inputs, const char* attrs, const char* doc) {
  return {.name = name,
          .inputs = inputs,
          .outputs = "handle: variant",
          .attrs = attrs,
          .shape = shapes::scalar,
          .gradient = not_differentiable,
          .traits = kMakes,
          .doc = doc};
}

// ---- Sources ----

const OpRegistration kTensor(maker("TensorDataset", "components: Toutput_types",
                                   TANDEM_TENSORS TANDEM_METADATA,
                                   "A dataset of one element, the components."));
const OpRegistration kTensorSlice(maker("TensorSliceDataset", "components: Toutput_types",
                                        TANDEM_TENSORS
                                        "is_files: bool = false; "
                                        "replicate_on_split: bool = false; " TANDEM_METADATA,
                                        "A dataset of the rows of the components."));
const OpRegistration kRange(maker("RangeDataset", "start: int64, stop: int64, step: int64",
                                  TANDEM_SPEC "replicate_on_split: bool = false; " TANDEM_METADATA,
                                  "A dataset of numbers from start to before stop."));

// ---- Transformations ----

const OpRegistration kBatch(maker("BatchDatasetV2",
                                  "input_dataset: variant, batch_size: int64, drop_remainder: bool",
                                  "parallel_copy: bool = false; " TANDEM_SPEC TANDEM_METADATA,
                                  "Joins elements along a new first axis."));
const OpRegistration kParallelBatch(
    maker("ParallelBatchDataset",
          "input_dataset: variant, batch_size: int64, num_parallel_calls: int64, "
          "drop_remainder: bool",
          "parallel_copy: bool = false; " TANDEM_SPEC
          "deterministic: string = 'default'; " TANDEM_METADATA,
          "As BatchDatasetV2, several batches at a time."));
const OpRegistration kRepeat(maker("RepeatDataset", "input_dataset: variant, count: int64",
                                   TANDEM_SPEC TANDEM_METADATA,
                                   "The elements several times over; -1: for ever."));
const OpRegistration kTake(maker("TakeDataset", "input_dataset: variant, count: int64",
                                 TANDEM_SPEC TANDEM_METADATA,
                                 "The first elements; -1: all of them."));
const OpRegistration kSkip(maker("SkipDataset", "input_dataset: variant, count: int64",
                                 TANDEM_SPEC TANDEM_METADATA,
                                 "All but the first elements; -1: none."));
const OpRegistration kPrefetch(maker("PrefetchDataset",
                                     "input_dataset: variant, buffer_size: int64",
                                     TANDEM_SPEC
                                     "slack_period: int = 0; legacy_autotune: bool = true; "
                                     "buffer_size_min: int = 0; " TANDEM_METADATA,
                                     "Makes elements ahead; -1: as many as it takes."));
const OpRegistration kShuffle(
    maker("ShuffleDatasetV3",
          "input_dataset: variant, buffer_size: int64, seed: int64, "
          "seed2: int64, seed_generator: resource",
          "reshuffle_each_iteration: bool = true; " TANDEM_SPEC TANDEM_METADATA,
          "The elements in random order. The generator is not used: a "
          "dataset has its own."));
const OpRegistration kCache(maker("CacheDatasetV2",
                                  "input_dataset: variant, filename: string, cache: resource",
                                  TANDEM_SPEC TANDEM_METADATA,
                                  "Keeps the elements, in the file unless its name is empty. The "
                                  "cache is not used: a dataset has its own."));
const OpRegistration kZip(maker("ZipDataset", "input_datasets: N * variant",
                                TANDEM_SPEC "N: int >= 1; " TANDEM_METADATA,
                                "The components of several datasets' elements side by side."));
const OpRegistration kConcatenate(maker("ConcatenateDataset",
                                        "input_dataset: variant, another_dataset: variant",
                                        TANDEM_SPEC TANDEM_METADATA,
                                        "The elements of one dataset, then those of another."));
const OpRegistration kShard(maker("ShardDataset",
                                  "input_dataset: variant, num_shards: int64, index: int64",
                                  "require_non_empty: bool = false; " TANDEM_SPEC TANDEM_METADATA,
                                  "Every num_shards-th element."));
const OpRegistration kWindow(maker("WindowDataset",
                                   "input_dataset: variant, size: int64, shift: int64, "
                                   "stride: int64, drop_remainder: bool",
                                   TANDEM_SPEC TANDEM_METADATA,
                                   "Datasets of successive elements, one for each component."));

// ---- Functions of elements, which may have captured further arguments ----

const OpRegistration kMap(maker("MapDataset", "input_dataset: variant, other_arguments: Targuments",
                                "f: func; " TANDEM_FUNCTION TANDEM_SPEC
                                "use_inter_op_parallelism: bool = true; "
                                "preserve_cardinality: bool = false; "
                                "force_synchronous: bool = false; " TANDEM_METADATA,
                                "What f makes of each element."));
const OpRegistration kParallelMap(
    maker("ParallelMapDatasetV2",
          "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int64",
          "f: func; " TANDEM_FUNCTION TANDEM_SPEC
          "use_inter_op_parallelism: bool = true; deterministic: string = 'default'; "
          "preserve_cardinality: bool = false; "
          "use_unbounded_threadpool: bool = false; " TANDEM_METADATA,
          "As MapDataset, several elements at a time."));
const OpRegistration kFilter(maker("FilterDataset",
                                   "input_dataset: variant, other_arguments: Targuments",
                                   "predicate: func; " TANDEM_FUNCTION TANDEM_SPEC TANDEM_METADATA,
                                   "The elements for which the predicate holds."));
const OpRegistration kFlatMap(maker("FlatMapDataset",
                                    "input_dataset: variant, other_arguments: Targuments",
                                    "f: func; " TANDEM_FUNCTION TANDEM_SPEC TANDEM_METADATA,
                                    "The elements of the datasets that f makes, one dataset after "
                                    "the other."));
const OpRegistration kInterleave(maker("InterleaveDataset",
                                       "input_dataset: variant, other_arguments: Targuments, "
                                       "cycle_length: int64, block_length: int64",
                                       "f: func; " TANDEM_FUNCTION TANDEM_SPEC TANDEM_METADATA,
                                       "The elements of the datasets that f makes, in turns."));
const OpRegistration kParallelInterleave(maker(
    "ParallelInterleaveDatasetV4",
    "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, "
    "block_length: int64, buffer_output_elements: int64, prefetch_input_elements: int64, "
    "num_parallel_calls: int64",
    "f: func; deterministic: string = 'default'; " TANDEM_FUNCTION TANDEM_SPEC TANDEM_METADATA,
    "As InterleaveDataset, several elements at a time."));

const OpRegistration kTakeWhile(
    maker("TakeWhileDataset", "input_dataset: variant, other_arguments: Targuments",
          "predicate: func; " TANDEM_FUNCTION TANDEM_SPEC TANDEM_METADATA,
          "The elements before the first one for which the predicate "
          "does not hold."));
const OpRegistration kScan(maker("ScanDataset",
                                 "input_dataset: variant, initial_state: Tstate, "
                                 "other_arguments: Targuments",
                                 "f: func; Tstate: list(type) >= 1; " TANDEM_FUNCTION TANDEM_SPEC
                                 "preserve_cardinality: bool = false; "
                                 "use_default_device: bool = true; " TANDEM_METADATA,
                                 "What f makes of a state and each element, besides the next "
                                 "state."));

void reduced_shape(InferenceContext& c) {
  const auto& shapes = c.attr<std::vector<PartialShape>>("output_shapes");
  for (int i = 0; i < c.num_outputs() && i < static_cast<int>(shapes.size()); ++i)
    c.set_output(i, shapes[static_cast<std::size_t>(i)]);
}
const OpRegistration kReduce{
    {.name = "ReduceDataset",
     .inputs = "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments",
     .outputs = "components: output_types",
     .attrs = "f: func; Tstate: list(type) >= 1; " TANDEM_FUNCTION TANDEM_SPEC
              "use_inter_op_parallelism: bool = true; " TANDEM_METADATA,
     .shape = reduced_shape,
     .gradient = not_differentiable,
     .traits = {.stateful = true,
                .retains_inputs = ~std::uint32_t{0},
                .owns_output_memory = ~std::uint32_t{0},
                .host_inputs = ~std::uint32_t{0},
                .cpu_only = true},
     .doc = "The state that f makes of an initial one and all elements."}};

// ---- What says how a dataset is to run, which td::data finds by itself ----

const OpRegistration kOptions(maker("OptionsDataset", "input_dataset: variant",
                                    "serialized_options: string; " TANDEM_SPEC TANDEM_METADATA,
                                    "The dataset as it is."));
const OpRegistration kModel(maker("ModelDataset", "input_dataset: variant",
                                  "algorithm: int = 0; cpu_budget: int = 0; "
                                  "ram_budget: int = 0; " TANDEM_SPEC,
                                  "The dataset as it is."));
const OpRegistration kFinalize(maker("FinalizeDataset", "input_dataset: variant",
                                     "has_captured_ref: bool = false; " TANDEM_SPEC,
                                     "The dataset as it is."));
const OpRegistration kRewrite(maker("RewriteDataset",
                                    "input_dataset: variant, rewrite_name: string", TANDEM_SPEC,
                                    "The dataset as it is."));

OpDecl dummy(const char* name, const char* doc) {
  return {.name = name,
          .outputs = "handle: resource",
          .shape = shapes::scalar,
          .gradient = not_differentiable,
          .traits = {.stateful = true, .reads_only = true, .cpu_only = true},
          .doc = doc};
}
const OpRegistration kNoSeeds(dummy("DummySeedGenerator", "A handle of nothing."));
const OpRegistration kNoCache(dummy("DummyMemoryCache", "A handle of nothing."));

const OpRegistration kCardinality{
    {.name = "DatasetCardinality",
     .inputs = "input_dataset: variant",
     .outputs = "cardinality: int64",
     .attrs = "cardinality_options: string = ''",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .reads_only = true, .host_inputs = 1, .cpu_only = true},
     .doc = "The number of elements; -1: no end, -2: not known."}};

}  // namespace
}  // namespace tandem
