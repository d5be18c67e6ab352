#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/data/dataset_options.h"
#include "tandem/data/element.h"
#include "tandem/data/element_functions.h"
#include "tandem/data/file_names.h"
#include "tandem/data/pipeline_stats.h"
#include "tandem/data/snapshot_options.h"
#include "tandem/data/structure.h"
#include "tandem/runtime/tensor.h"

namespace tandem {
class RaggedTensor;
namespace sparse {
struct SparseTensor;
}
}  // namespace tandem

namespace tandem::data {

class Dataset;
class DatasetBase;  // tandem/data/dataset_base.h: for datasets of your own
class Observer;
// Declared for users in tandem/data/ragged_datasets.h.
TANDEM_EXPORT Dataset slices_of_ragged(RaggedTensor ragged);
TANDEM_EXPORT Dataset slices_of_sparse(const sparse::SparseTensor& sparse);

/// Writes one element to `out` and returns true, or returns false at the end.
using Generator = std::function<bool(Element& out)>;

/// What `cardinality()` returns for a dataset without end. The same number as kAutotune, which is
/// for numbers of threads and sizes of buffers: neither means the other.
inline constexpr std::int64_t kInfinite = -1;
/// What `cardinality()` returns where the number cannot be determined without iterating.
inline constexpr std::int64_t kUnknown = -2;

/// One pass over a dataset. Movable. Several threads may ask it for elements: they take turns, and
/// each element goes to one of them. Destroying it, when no thread is in it any more, stops its own
/// threads, in any order with other iterators and datasets.
class TANDEM_EXPORT Iterator {
 public:
  explicit Iterator(std::shared_ptr<const DatasetBase> dataset, IteratorOptions options = {});
  Iterator(Iterator&&) noexcept;
  Iterator& operator=(Iterator&&) noexcept;
  ~Iterator();

  /// Puts the next element into `out` (whose memory is used again); false at the end. What a map
  /// function or source throws is thrown here, as a td::Error that names stage and element; the
  /// next call goes on after that element. A Cancellation of the calling thread, or of the one that
  /// began the iteration (CancellationScope), ends it for good: this call and all later ones throw
  /// CancelledError.
  bool next(Element& out);
  /// The next element; throws OutOfRangeError at the end.
  Element next();

  /// Where the iteration is, as bytes: buffers, random state, and what stages have made ahead. The
  /// iteration goes on afterwards. Throws UnimplementedError if a stage, or a tensor in a buffer,
  /// cannot be saved. Sources are not saved: a generator is asked again for the elements before.
  std::string save();
  /// Goes on where an iterator of the same dataset was saved, in this process or another: the
  /// remaining elements, and later iterations, are those that would have followed. Throws
  /// DataLossError if the bytes are damaged, InvalidArgumentError if another pipeline saved them,
  /// and then changes nothing.
  void restore(std::string_view saved);

  /// For range-for over the elements that are left: `for (const td::data::Element& e : it)`.
  class Cursor;
  Cursor begin();
  std::default_sentinel_t end() const { return {}; }

  /// What the stages did since the iteration began or was restored. Throws FailedPreconditionError
  /// unless the iterator was made to observe it.
  PipelineStats stats() const;
  /// Stages with kAutotune leave so many threads of their CPU budget to others, a training step for
  /// example, from soon on and until it is set again; each keeps one. Thread-safe.
  void reserve_cores(std::int64_t cores);

 private:
  friend std::shared_ptr<const Observer> observer_of(const Iterator& iterator);
  struct State;
  State& state() const;
  std::unique_ptr<State> state_;
};

/// A description of a sequence of elements, each a few tensors; names and meaning are tf.data's.
///
/// An immutable handle, cheap to copy, usable from any thread. Each transformation gives a new
/// dataset; nothing runs until one is iterated, and every iteration starts over. Wrong arguments
/// throw InvalidArgumentError at once.
///
///     auto train = td::data::from_tensor_slices({images, labels}).shuffle(1024).batch(32);
///     for (const td::data::Element& batch : train) step(batch[0], batch[1]);
///     for (const auto& [x, y] : train.tuples<2>()) step(x, y);
class TANDEM_EXPORT Dataset {
 public:
  /// Has no elements to give: using it throws FailedPreconditionError.
  Dataset() = default;

  // Sources by tf.data's names, `td::data::Dataset::range(10)`: each is the function of the same
  // name in td::data, which is described below.
  static Dataset from_tensor_slices(std::vector<Tensor> components);
  static Dataset from_tensor_slices(Tensor tensor);
  static Dataset from_tensor_slices(std::initializer_list<TensorMap::value_type> components);
  template <std::derived_from<TensorMap::Base> Map>
  static Dataset from_tensor_slices(const Map& components) {
    return internal::slices_of(components);
  }
  template <std::same_as<RaggedTensor> Ragged>
  static Dataset from_tensor_slices(const Ragged& ragged) {
    return slices_of_ragged(ragged);
  }
  template <std::same_as<sparse::SparseTensor> Sparse>
  static Dataset from_tensor_slices(const Sparse& sparse) {
    return slices_of_sparse(sparse);
  }
  static Dataset from_tensors(std::vector<Tensor> components);
  static Dataset from_tensors(Tensor tensor);
  static Dataset from_tensors(std::initializer_list<TensorMap::value_type> components);
  static Dataset range(std::int64_t stop);
  static Dataset range(std::int64_t start, std::int64_t stop, std::int64_t step = 1);
  static Dataset from_generator(std::function<Generator()> make, ElementSpec spec);
  static Dataset list_files(FileNames patterns, ListFilesOptions options = {});
  static Dataset choose_from_datasets(std::vector<Dataset> datasets, const Dataset& choices,
                                      bool stop_on_empty_dataset = true);
  static Dataset sample_from_datasets(std::vector<Dataset> datasets, SampleOptions options = {});
  static Dataset zip(std::vector<Dataset> datasets);
  static Dataset zip(std::initializer_list<std::pair<const std::string, Dataset>> datasets);

  /// Throws InvalidArgumentError for more than 2,000 nested stages: iterating them could
  /// overflow the stack.
  explicit Dataset(std::shared_ptr<const DatasetBase> base);
  bool defined() const noexcept { return base_ != nullptr; }

  /// Joins `size` elements in a row along a new first axis; their shapes must agree.
  Dataset batch(std::int64_t size, BatchOptions options = {}) const;
  /// Joins elements whose sizes differ, filled up to common ones.
  Dataset padded_batch(std::int64_t size, PaddedBatchOptions options = {}) const;
  /// Joins elements whose first sizes differ as ragged tensors: each component of rank 1 or more
  /// becomes two, the rows' values one after the other and the row splits, which `ragged_of`
  /// (ragged_datasets.h) takes; scalars become a vector. The other sizes must agree.
  Dataset ragged_batch(std::int64_t size, RaggedBatchOptions options = {}) const;
  /// Joins elements of one component as sparse tensors, of shape {number of rows, row_shape...}:
  /// indices, values (all of them, zeros too) and dense shape, which `sparse_of` takes. Sizes of -1
  /// in row_shape are the largest of the batch; larger elements are an InvalidArgumentError.
  Dataset sparse_batch(std::int64_t size, PartialShape row_shape) const;
  /// Batches of elements of similar length: bucket i has those below boundary i and is padded and
  /// given when it holds batch size i; one more is for the longest.
  Dataset bucket_by_sequence_length(ElementNumber length, std::vector<std::int64_t> boundaries,
                                    std::vector<std::int64_t> batch_sizes,
                                    BucketOptions options = {}) const;
  /// Collects elements of equal keys; `reduce` makes a dataset of each `window_size` of them.
  Dataset group_by_window(ElementNumber key,
                          std::function<Dataset(std::int64_t key, Dataset window)> reduce,
                          std::int64_t window_size) const;
  Dataset group_by_window(ElementNumber key,
                          std::function<Dataset(std::int64_t key, Dataset window)> reduce,
                          std::function<std::int64_t(std::int64_t key)> window_size) const;
  /// Windows over the elements: each component becomes a variant with a dataset of that component's
  /// values (`from_variant`).
  Dataset window(std::int64_t size, WindowOptions options = {}) const;
  /// Rebatches to this size, or to these sizes in turns, without regard to the input's.
  Dataset rebatch(std::int64_t size, BatchOptions options = {}) const;
  Dataset rebatch(std::vector<std::int64_t> sizes, BatchOptions options = {}) const;
  /// Takes the elements apart along their first axis.
  Dataset unbatch() const;
  /// A random order: each element is drawn from a buffer of the next `buffer_size` ones.
  Dataset shuffle(std::int64_t buffer_size, ShuffleOptions options = {}) const;
  /// `count` times over; -1: for ever.
  Dataset repeat(std::int64_t count = -1) const;
  /// What `fn` makes of each element, in the same order. A function that holds nothing is traced
  /// once and its graph runs for each element; others are called, as is what cannot be traced
  /// (MapOptions::traced says which it must be). It runs on the thread that wants the element, or
  /// on `num_parallel_calls` threads at a time, then called from several at once.
  Dataset map(ElementFn fn, MapOptions options = {}) const;
  /// Maps with a function that takes or returns TensorMaps (tandem/data/structure.h).
  template <class F>
  requires internal::NamesThings<F, ElementFn> Dataset map(F fn, MapOptions options = {})
  const {
    auto names = std::make_shared<internal::ResultNames>();
    const ElementFn flat(internal::on_names(std::move(fn), base_, names));
    return map_named(flat.with_stateless(internal::kStateless<F>), options, std::move(names));
  }
  /// The elements for which `predicate`, a function that returns a bool or a bool scalar, holds. It
  /// is traced as the functions of `map` are, if it gives a tensor and takes three ops or more, and
  /// runs on the thread that wants the element.
  Dataset filter(ElementPredicate predicate) const;
  template <class F>
  requires internal::TakesNames<F, ElementPredicate> Dataset filter(F predicate)
  const {
    const ElementPredicate flat(internal::on_names(std::move(predicate), base_));
    return filter(flat.with_stateless(internal::kStateless<F>));
  }
  /// The elements of the datasets that `fn` makes of the elements, one dataset after the other.
  Dataset flat_map(DatasetFn fn) const;
  /// Maps each element to a dataset and takes elements from several of these in turns.
  Dataset interleave(DatasetFn fn, InterleaveOptions options = {}) const;
  /// Elements drawn and left out so that classes come as often as `target_dist` says: the class,
  /// and then the element. `class_func` gives a scalar int32 or int64, from 0 on.
  Dataset rejection_resample(ElementFn class_func, std::vector<float> target_dist,
                             ResampleOptions options = {}) const;
  /// Carries a state from element to element; its components keep their dtypes.
  Dataset scan(Element initial_state, ScanFn fn) const;
  /// Ends before the first element that fails the condition.
  Dataset take_while(ElementPredicate predicate) const;
  /// The first `count` elements; -1: all of them.
  Dataset take(std::int64_t count) const;
  /// All but the first `count` elements; -1: skips all of them.
  Dataset skip(std::int64_t count) const;
  /// Every `num_shards`-th element, beginning with number `index`.
  Dataset shard(std::int64_t num_shards, std::int64_t index) const;
  /// Each element once, where it comes first; they have one component, of int32, int64 or strings.
  Dataset unique() const;
  /// These elements, then `other`'s; their specs must agree in number and dtypes.
  Dataset concatenate(const Dataset& other) const;
  /// Puts the element's number (int64, from `start`) before its components.
  Dataset enumerate(std::int64_t start = 0) const;
  /// Keeps the elements in memory during the first complete iteration and takes them from there in
  /// later ones.
  Dataset cache() const;
  /// Caches the elements in a file, which later processes read too. It appears when it is complete:
  /// a crash leaves none, and of several writers the last one's stays. DataLossError if it is
  /// damaged.
  Dataset cache(const String& filename) const;
  /// Caches the elements in several files of a folder, which can be read in parallel: written
  /// during the first complete iteration, and read by later ones, in other processes too. A
  /// pipeline of other stages, parameters or files has a snapshot of its own there. It appears when
  /// it is complete: a crash leaves none, and of several writers the first one's stays.
  Dataset snapshot(const String& path, SnapshotOptions options = {}) const;
  /// Goes on after elements whose making failed.
  Dataset ignore_errors(IgnoreErrorsOptions options = {}) const;
  Dataset with_options(Options options) const;
  /// An error unless the dataset has so many elements, kInfinite for no end; cardinality() is then
  /// this number. What is amiss is a FailedPreconditionError, thrown where it shows.
  Dataset assert_cardinality(std::int64_t expected) const;
  /// Makes up to `buffer_size` elements ahead, on a thread of its own. kAutotune: as many as it
  /// takes.
  Dataset prefetch(std::int64_t buffer_size) const;
  /// The elements in a device's memory ("GPU:0"), up to `buffer_size` of them ahead of the one in
  /// use: a thread draws elements and copies them on the device's copy stream while it computes.
  /// Strings stay on the host. Put it last. A device that is lost ends the iteration with an
  /// UnavailableError; an element that does not fit into its memory is a ResourceExhaustedError.
  Dataset prefetch_to_device(const String& device, std::int64_t buffer_size = 2) const;
  /// The same, each element when it is asked for.
  Dataset copy_to_device(const String& device) const;
  /// Two datasets: the first `fraction` of the elements (rounded down), and the rest. With a seed
  /// the elements are shuffled first, once. The number of elements must be known. In-memory data is
  /// shared, not copied.
  std::pair<Dataset, Dataset> split(double fraction,
                                    std::optional<std::int64_t> seed = std::nullopt) const;
  /// `f(*this)`, so that pipelines can be given by name.
  template <class F>
  Dataset apply(F&& f) const {
    return std::forward<F>(f)(*this);
  }

  /// Iterates: the state that `fn` makes of all elements, one after the other, from the initial
  /// one, whose dtypes it keeps.
  Element reduce(Element initial_state, ReduceFn fn) const;
  Tensor reduce(Tensor initial_state, ReduceFn fn) const;
  /// Iterates: the only element; throws InvalidArgumentError if there are none or more.
  Element get_single_element() const;

  /// The number of elements, kInfinite or kUnknown. Never iterates.
  std::int64_t cardinality() const;
  /// The number of elements, as Python's len(): throws InvalidArgumentError where there is no end,
  /// or where only iterating would show it.
  std::int64_t size() const;
  /// Dtypes and shapes of the components. After a map it is found by tracing the function once, or,
  /// where that fails, by calling it on the first element.
  const ElementSpec& element_spec() const;
  /// The names of the components, "0/image" in nests; empty if they have none.
  const Names& names() const;
  Iterator iterator(IteratorOptions options = {}) const { return Iterator(base_, options); }

  class ElementIterator;
  template <std::size_t N>
  class Tuples;
  /// For range-for over elements; each begin() is an iteration of its own.
  ElementIterator begin() const;
  ElementIterator end() const;
  /// For range-for over elements of N components: `for (const auto& [x, y] : dataset.tuples<2>())`.
  template <std::size_t N>
  Tuples<N> tuples() const;
  /// For range-for over elements with names: `for (const auto& e : dataset.maps()) e.at("image")`.
  class Maps;
  Maps maps() const;

  // ---- For implementers of datasets. ----
  const std::shared_ptr<const DatasetBase>& base() const { return base_; }

 private:
  Dataset map_named(ElementFn fn, MapOptions options,
                    std::shared_ptr<internal::ResultNames> names) const;

  std::shared_ptr<const DatasetBase> base_;
};

/// "<Batch element_spec=(float[?,8,8,1], int32[?])>".
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const Dataset& dataset);

/// The rows of tensors along their first axis, which must have one size: element i holds row i of
/// each.
TANDEM_EXPORT Dataset from_tensor_slices(std::vector<Tensor> components);
TANDEM_EXPORT Dataset from_tensor_slices(Tensor tensor);
/// With names: `from_tensor_slices({{"image", x}, {"label", y}})`; components in the order of
/// these.
TANDEM_EXPORT Dataset from_tensor_slices(std::initializer_list<TensorMap::value_type> components);
template <std::derived_from<TensorMap::Base> Map>  // braces are for the others
Dataset from_tensor_slices(const Map& components) {
  return internal::slices_of(components);
}
/// One element: the tensors themselves.
TANDEM_EXPORT Dataset from_tensors(std::vector<Tensor> components);
TANDEM_EXPORT Dataset from_tensors(Tensor tensor);
TANDEM_EXPORT Dataset from_tensors(std::initializer_list<TensorMap::value_type> components);
/// start, start + step, … before stop, as int64 scalars.
TANDEM_EXPORT Dataset range(std::int64_t stop);
TANDEM_EXPORT Dataset range(std::int64_t start, std::int64_t stop, std::int64_t step = 1);
/// Elements from a function: `make` is called at the beginning of each iteration and returns the
/// function that gives its elements, one a call, on one thread at a time. They must agree with
/// `spec`, a dtype and shape for each component:
///
///     {{td::DType::kFloat, td::PartialShape::scalar()}}   // a scalar
///     {{td::DType::kFloat, {-1, 3}}}                      // a matrix of three columns
///     {{td::DType::kFloat, {}}}                           // any shape, of any rank
TANDEM_EXPORT Dataset from_generator(std::function<Generator()> make, ElementSpec spec);
/// The paths that a pattern, or any of several, matches: string scalars. Throws
/// InvalidArgumentError if there are none. Patterns have `*`, `?` and `[…]`, which do not match
/// "/".
TANDEM_EXPORT Dataset list_files(FileNames patterns, ListFilesOptions options = {});
/// The next element of the dataset whose number (int64 scalar) `choices` gives.
TANDEM_EXPORT Dataset choose_from_datasets(std::vector<Dataset> datasets, const Dataset& choices,
                                           bool stop_on_empty_dataset = true);
/// The next element of a dataset drawn at random.
TANDEM_EXPORT Dataset sample_from_datasets(std::vector<Dataset> datasets,
                                           SampleOptions options = {});
/// A scalar variant that holds a dataset, and the dataset that such a one holds: windows are
/// elements whose components are these.
TANDEM_EXPORT Tensor to_variant(const Dataset& dataset);
TANDEM_EXPORT Dataset from_variant(const Tensor& variant);
/// Elements that put the components of several datasets' elements side by side; ends with the
/// shortest.
TANDEM_EXPORT Dataset zip(std::vector<Dataset> datasets);
/// Zips datasets under names.
TANDEM_EXPORT Dataset zip(std::initializer_list<std::pair<const std::string, Dataset>> datasets);

}  // namespace tandem::data

#include "tandem/data/element_ranges.h"
