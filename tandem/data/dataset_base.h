#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/data/dataset.h"
#include "tandem/data/element.h"
#include "tandem/data/iteration_context.h"
#include "tandem/data/state_archive.h"

namespace tandem::data {

class RowTable;
class TaskCopies;

/// What an element was made of, for errors of later stages. Copied without allocating.
struct Origin {
  /// Short scalar strings: those that a function took, and last the file that a source read. Null
  /// where unknown.
  std::shared_ptr<const Element> names;
  std::int64_t byte = -1;  ///< where in that file, in its decompressed content; -1: not known
  bool and_more = false;   ///< it is that of the first of several elements, which were joined
};

/// One pass of one stage over its elements: what implementers of a dataset write. Used by one
/// thread at a time, though not always the same. The iteration keeps the dataset alive that made
/// it.
///
/// A stage whose elements are rows of tensors in memory may hand out row numbers instead of
/// tensors, so that later stages shuffle numbers and gather rows straight into a batch. It then
/// returns its table from `rows` and implements `next_rows`; both calls draw from the same
/// sequence.
class TANDEM_EXPORT IteratorBase {
 public:
  virtual ~IteratorBase();

  /// Puts the next element into `out`, replacing what it holds; false at the end, and ever after.
  /// After an exception the next call goes on with the element after the one that failed.
  virtual bool next(Element& out) = 0;

  /// The table whose rows the elements are, or null. Does not change during the pass.
  virtual const RowTable* rows() const { return nullptr; }
  /// Fills `out` with the numbers of the next rows and returns how many; fewer than asked for only
  /// at the end. Rows drawn before an exception are given by the next call.
  virtual std::size_t next_rows(std::span<std::int64_t> out);

  /// For errors of later stages: that of the element last given. Called after `next` alone, by
  /// stages that keep the element for later, or that have failed; nothing is remembered for it.
  virtual Origin origin() const;

  /// Writes where the pass is, or takes up a pass, just begun, where another one was: see
  /// StateArchive. No thread is in `next` meanwhile. Throws UnimplementedError unless overridden.
  virtual void visit_state(StateArchive& state);
};

/// Describes a sequence of elements: what a `Dataset` handle points to. Immutable but for caches
/// and random state, which it guards itself; any number of threads may iterate it. See
/// docs/adding-a-dataset.md.
class TANDEM_EXPORT DatasetBase {
 public:
  virtual ~DatasetBase();

  /// The stage's name in tf.data: "Batch".
  virtual std::string name() const = 0;
  /// What distinguishes it from others of its name, "size=32": datasets that differ in it have
  /// different snapshots. Functions have nothing that could be compared.
  virtual std::string parameters() const { return {}; }
  /// The datasets that this one draws from.
  virtual std::vector<const DatasetBase*> inputs() const { return {}; }
  /// Begins a pass; one that counts what it does if the iteration is observed.
  std::unique_ptr<IteratorBase> iterator(const IterationContext& context) const {
    return context.observer() ? observed_iterator(context) : make_iterator(context);
  }

  /// The options that a with_options has; null for other stages.
  virtual const Options* options() const { return nullptr; }
  /// True if the elements come from files that can be dealt out to workers: the sources then obey
  /// `Options::file_shard`. May call the functions of interleave and flat_map on a first element.
  virtual bool reads_files() const;
  /// True if the sources obey it whatever they give.
  virtual bool can_shard_sources() const;

  virtual const ElementSpec& element_spec() const = 0;
  /// The names of the components (tandem/data/structure.h); empty if they have none.
  virtual const Names& names() const;
  /// How many components an element has; -1 if only iterating would show.
  virtual int num_components() const { return static_cast<int>(element_spec().size()); }
  /// The number of elements, kInfinite or kUnknown.
  virtual std::int64_t cardinality() const = 0;

  /// The dataset as a scalar variant made by tf.data's op, which is called as the calling thread
  /// calls ops: on another task of a cluster, say. Throws UnimplementedError, naming the stage,
  /// unless overridden.
  virtual Tensor as_op() const;
  /// What it is on other tasks (tandem/data/graph_ops/task_dataset.h).
  TaskCopies& task_copies() const;

  /// Writes, or takes over, what passes leave to later ones, random state and caches, here and in
  /// the inputs. Their iterators do so in `visit_state`; a stage that drops an iterator which has
  /// ended calls this in its place. To be overridden where a dataset has such state itself.
  virtual void visit_lasting_state(StateArchive& state, const IterationContext& context) const;

 protected:
  /// Begins a pass. Makes the iterators of its inputs at once (by `iterator`), so that random state
  /// is drawn in a fixed order.
  virtual std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const = 0;

 private:
  friend class Dataset;
  std::unique_ptr<IteratorBase> observed_iterator(const IterationContext& context) const;
  /// How many stages are nested up to here; 0 until there is a Dataset of it.
  mutable std::atomic<int> depth_{0};
  mutable std::once_flag making_copies_;
  mutable std::shared_ptr<TaskCopies> task_copies_;
};

using DatasetRef = std::shared_ptr<const DatasetBase>;

/// A dataset with one input, whose elements have the input's spec and number unless it says
/// otherwise.
class TANDEM_EXPORT UnaryDataset : public DatasetBase {
 public:
  explicit UnaryDataset(DatasetRef input) : input_(std::move(input)) {}
  std::vector<const DatasetBase*> inputs() const override { return {input_.get()}; }
  const ElementSpec& element_spec() const override { return input_->element_spec(); }
  const Names& names() const override { return input_->names(); }
  int num_components() const override { return input_->num_components(); }
  std::int64_t cardinality() const override { return input_->cardinality(); }

 protected:
  const DatasetBase& input() const { return *input_; }
  const DatasetRef& input_ref() const { return input_; }

 private:
  DatasetRef input_;
};

/// An iterator with one input, whose rows are the input's rows. Its `next` is written in terms of
/// `next_rows` where the input has rows.
class TANDEM_EXPORT UnaryIterator : public IteratorBase {
 public:
  explicit UnaryIterator(std::unique_ptr<IteratorBase> input) : input_(std::move(input)) {}

 protected:
  IteratorBase& input() { return *input_; }
  const IteratorBase& input() const { return *input_; }
  void replace_input(std::unique_ptr<IteratorBase> input) { input_ = std::move(input); }

 private:
  std::unique_ptr<IteratorBase> input_;
};

template <class T, class... Args>
Dataset make_dataset(Args&&... args) {
  return Dataset(std::make_shared<const T>(std::forward<Args>(args)...));
}

}  // namespace tandem::data
