#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/data/dataset.h"
#include "tandem/graph/kernel.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::data {
namespace {

Dataset dataset(const KernelContext& c, int i = 0) { return from_variant(Tensor(c.input(i))); }

void set(KernelContext& c, const Dataset& result) { c.set_output(0, to_variant(result).array()); }

template <class T>
T scalar(const KernelContext& c, int i, const char* name) {
  const Array& value = c.input(i);
  if (value.rank() == 0) return value.data<T>()[0];
  throw InvalidArgumentError(cat(name, " must be a scalar, but has the shape ", value.shape()));
}
std::int64_t number(const KernelContext& c, int i, const char* name) {
  return scalar<std::int64_t>(c, i, name);
}

std::vector<Tensor> tensors(const KernelContext& c, int begin, int end) {
  std::vector<Tensor> all;
  for (int i = begin; i < end; ++i) all.emplace_back(c.input(i));
  return all;
}

std::optional<bool> deterministic(const KernelContext& c) {
  const auto& wanted = c.attr<std::string>("deterministic");
  if (wanted == "default") return std::nullopt;
  return wanted == "true";
}

/// A function attribute with what it has captured: inputs `begin` to before `end`.
class ElementCall {
 public:
  ElementCall(const KernelContext& c, const char* attr, int end, int begin = 1)
      : function_(c.attr<FunctionRef>(attr)), captured_(tensors(c, begin, end)) {}

  Element operator()(const Element& element) const {
    Element arguments = element;
    arguments.insert(arguments.end(), captured_.begin(), captured_.end());
    return call_function(function_, arguments);
  }
  /// Whether it may be traced into the pipeline: nothing in it happens once only.
  bool is_pure() const { return !function_->stateful(); }

 private:
  FunctionRef function_;
  std::vector<Tensor> captured_;
};

auto dataset_of(ElementCall call) {
  return [call = std::move(call)](const Element& element) {
    return from_variant(call(element).at(0));
  };
}

// ---- Sources ----

void tensor(KernelContext& c) { set(c, from_tensors(tensors(c, 0, c.num_inputs()))); }
void tensor_slice(KernelContext& c) { set(c, from_tensor_slices(tensors(c, 0, c.num_inputs()))); }
void numbers(KernelContext& c) {
  set(c, range(number(c, 0, "start"), number(c, 1, "stop"), number(c, 2, "step")));
}

// ---- Transformations ----

void batch(KernelContext& c) {
  set(c, dataset(c).batch(number(c, 1, "batch_size"),
                          {.drop_remainder = scalar<bool>(c, 2, "drop_remainder")}));
}
void parallel_batch(KernelContext& c) {
  set(c, dataset(c).batch(number(c, 1, "batch_size"),
                          {.drop_remainder = scalar<bool>(c, 3, "drop_remainder"),
                           .num_parallel_calls = number(c, 2, "num_parallel_calls"),
                           .deterministic = deterministic(c)}));
}
void repeat(KernelContext& c) { set(c, dataset(c).repeat(number(c, 1, "count"))); }
void take(KernelContext& c) { set(c, dataset(c).take(number(c, 1, "count"))); }
void skip(KernelContext& c) { set(c, dataset(c).skip(number(c, 1, "count"))); }
void prefetch(KernelContext& c) {
  const std::int64_t size = number(c, 1, "buffer_size");
  set(c, size == 0 ? dataset(c) : dataset(c).prefetch(size));
}
void shuffle(KernelContext& c) {
  const std::int64_t seed = number(c, 2, "seed"), seed2 = number(c, 3, "seed2");
  ShuffleOptions options;
  if (seed != 0 || seed2 != 0) options.seed = seed2 != 0 ? seed2 : seed;
  options.reshuffle_each_iteration = c.attr<bool>("reshuffle_each_iteration");
  set(c, dataset(c).shuffle(number(c, 1, "buffer_size"), options));
}
void cache(KernelContext& c) {
  const auto file = scalar<std::string>(c, 1, "filename");
  set(c, file.empty() ? dataset(c).cache() : dataset(c).cache(file));
}
void zipped(KernelContext& c) {
  std::vector<Dataset> datasets;
  for (int i = 0; i < c.num_inputs(); ++i) datasets.push_back(dataset(c, i));
  set(c, zip(std::move(datasets)));
}
void concatenate(KernelContext& c) { set(c, dataset(c).concatenate(dataset(c, 1))); }
void shard(KernelContext& c) {
  set(c, dataset(c).shard(number(c, 1, "num_shards"), number(c, 2, "index")));
}
void window(KernelContext& c) {
  set(c, dataset(c).window(number(c, 1, "size"),
                           {.shift = number(c, 2, "shift"),
                            .stride = number(c, 3, "stride"),
                            .drop_remainder = scalar<bool>(c, 4, "drop_remainder")}));
}

// ---- Functions of elements ----

void map(KernelContext& c) {
  ElementCall call(c, "f", c.num_inputs());
  MapOptions options;
  if (call.is_pure()) options.traced = true;
  set(c, dataset(c).map(std::move(call), options));
}
void parallel_map(KernelContext& c) {
  const int last = c.num_inputs() - 1;
  ElementCall call(c, "f", last);
  MapOptions options;
  options.num_parallel_calls = number(c, last, "num_parallel_calls");
  options.deterministic = deterministic(c);
  if (call.is_pure()) options.traced = true;
  set(c, dataset(c).map(std::move(call), options));
}
void filter(KernelContext& c) {
  set(c, dataset(c).filter([call = ElementCall(c, "predicate", c.num_inputs())](
                               const Element& element) { return call(element).at(0); }));
}
void flat_map(KernelContext& c) {
  set(c, dataset(c).flat_map(dataset_of(ElementCall(c, "f", c.num_inputs()))));
}
void interleave(KernelContext& c) {
  const int captured_end = c.num_inputs() - 2;
  set(c, dataset(c).interleave(dataset_of(ElementCall(c, "f", captured_end)),
                               {.cycle_length = number(c, captured_end, "cycle_length"),
                                .block_length = number(c, captured_end + 1, "block_length")}));
}
void parallel_interleave(KernelContext& c) {
  const int captured_end = c.num_inputs() - 5;
  set(c, dataset(c).interleave(
             dataset_of(ElementCall(c, "f", captured_end)),
             {.cycle_length = number(c, captured_end, "cycle_length"),
              .block_length = number(c, captured_end + 1, "block_length"),
              .num_parallel_calls = number(c, captured_end + 4, "num_parallel_calls"),
              .deterministic = deterministic(c)}));
}

void take_while(KernelContext& c) {
  set(c, dataset(c).take_while([call = ElementCall(c, "predicate", c.num_inputs())](
                                   const Element& element) { return call(element).at(0); }));
}

/// A function of a state, which are the inputs after the dataset, and an element.
class StateCall {
 public:
  StateCall(const KernelContext& c, int state_size)
      : call_(c, "f", c.num_inputs(), 1 + state_size) {}
  Element operator()(const Element& state, const Element& element) const {
    Element arguments = state;
    arguments.insert(arguments.end(), element.begin(), element.end());
    return call_(arguments);
  }

 private:
  ElementCall call_;
};

int state_size(const KernelContext& c) {
  return static_cast<int>(c.attr<std::vector<DType>>("Tstate").size());
}

void scan(KernelContext& c) {
  const int size = state_size(c);
  const auto step = [call = StateCall(c, size), size](const Element& state,
                                                      const Element& element) {
    const Element results = call(state, element);
    const auto outputs = results.begin() + size;
    return std::pair(Element(results.begin(), outputs), Element(outputs, results.end()));
  };
  set(c, dataset(c).scan(tensors(c, 1, 1 + size), step));
}

// It waits for the elements, so that it has a thread of its own.
void reduce(KernelContext& c, KernelDone done) {
  try {
    const int size = state_size(c);
    std::thread([&c, done, context = thread_context(), input = dataset(c),
                 call = StateCall(c, size), initial = tensors(c, 1, 1 + size)] {
      std::exception_ptr error;
      try {
        const ThreadContextScope scope(context);
        const Element result = input.reduce(initial, call);
        for (std::size_t i = 0; i < result.size(); ++i)
          c.set_output(static_cast<int>(i), result[i].array());
      } catch (...) {
        error = std::current_exception();
      }
      done(error);
    }).detach();
  } catch (...) {
    done(std::current_exception());
  }
}

void unchanged(KernelContext& c) { set(c, dataset(c)); }

// A handle of no resource, for ops that take one but need none here.
void dummy_handle(KernelContext& c) {
  auto info = std::make_shared<ResourceInfo>();
  info->device = c.device().name();
  info->name = info->type = c.op().name;
  Array handle(DType::kResource, Shape{});
  *handle.data<ResourceHandle>() = ResourceHandle(std::move(info), Ref<Resource>());
  c.set_output(0, std::move(handle));
}

void cardinality(KernelContext& c) {
  c.set_output(0, Array::scalar<std::int64_t>(dataset(c).cardinality()));
}

const KernelRegistration kTensor{{.op = "TensorDataset", .run = tensor}};
const KernelRegistration kTensorSlice{{.op = "TensorSliceDataset", .run = tensor_slice}};
const KernelRegistration kRange{{.op = "RangeDataset", .run = numbers}};
const KernelRegistration kBatch{{.op = "BatchDatasetV2", .run = batch}};
const KernelRegistration kParallelBatch{{.op = "ParallelBatchDataset", .run = parallel_batch}};
const KernelRegistration kRepeat{{.op = "RepeatDataset", .run = repeat}};
const KernelRegistration kTake{{.op = "TakeDataset", .run = take}};
const KernelRegistration kSkip{{.op = "SkipDataset", .run = skip}};
const KernelRegistration kPrefetch{{.op = "PrefetchDataset", .run = prefetch}};
const KernelRegistration kShuffle{{.op = "ShuffleDatasetV3", .run = shuffle}};
const KernelRegistration kCache{{.op = "CacheDatasetV2", .run = cache}};
const KernelRegistration kZip{{.op = "ZipDataset", .run = zipped}};
const KernelRegistration kConcatenate{{.op = "ConcatenateDataset", .run = concatenate}};
const KernelRegistration kShard{{.op = "ShardDataset", .run = shard}};
const KernelRegistration kWindow{{.op = "WindowDataset", .run = window}};
const KernelRegistration kMap{{.op = "MapDataset", .run = map}};
const KernelRegistration kParallelMap{{.op = "ParallelMapDatasetV2", .run = parallel_map}};
const KernelRegistration kFilter{{.op = "FilterDataset", .run = filter}};
const KernelRegistration kFlatMap{{.op = "FlatMapDataset", .run = flat_map}};
const KernelRegistration kInterleave{{.op = "InterleaveDataset", .run = interleave}};
const KernelRegistration kParallelInterleave{
    {.op = "ParallelInterleaveDatasetV4", .run = parallel_interleave}};
const KernelRegistration kTakeWhile{{.op = "TakeWhileDataset", .run = take_while}};
const KernelRegistration kScan{{.op = "ScanDataset", .run = scan}};
const KernelRegistration kReduce{{.op = "ReduceDataset", .run_async = reduce}};
const KernelRegistration kOptions{{.op = "OptionsDataset", .run = unchanged}};
const KernelRegistration kModel{{.op = "ModelDataset", .run = unchanged}};
const KernelRegistration kFinalize{{.op = "FinalizeDataset", .run = unchanged}};
const KernelRegistration kRewrite{{.op = "RewriteDataset", .run = unchanged}};
const KernelRegistration kNoSeeds{{.op = "DummySeedGenerator", .run = dummy_handle}};
const KernelRegistration kNoCache{{.op = "DummyMemoryCache", .run = dummy_handle}};
const KernelRegistration kCardinality{{.op = "DatasetCardinality", .run = cardinality}};

}  // namespace
}  // namespace tandem::data
