#include "tandem/data/sharding.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"

namespace tandem::data {
namespace {

// The sources below give the worker's files.
class FileShardDataset final : public UnaryDataset {
 public:
  FileShardDataset(DatasetRef input, FileShard shard)
      : UnaryDataset(std::move(input)), shard_(shard) {}
  std::string name() const override { return "AutoShard"; }
  std::string parameters() const override {
    return cat("index=", shard_.index, " of ", shard_.num_shards);
  }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    Options options;
    options.file_shard = shard_;
    return input().iterator(context.with(options));
  }
  std::int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }

 private:
  const FileShard shard_;
};

// What the last with_options that says something says.
AutoShardPolicy policy_of(const DatasetBase& dataset) {
  if (const Options* options = dataset.options(); options && options->auto_shard_policy) {
    return *options->auto_shard_policy;
  }
  AutoShardPolicy policy = AutoShardPolicy::kAuto;
  for (const DatasetBase* input : dataset.inputs()) {
    policy = policy_of(*input);
    if (policy != AutoShardPolicy::kAuto) break;
  }
  return policy;
}

const DatasetBase& source_without_files(const DatasetBase& dataset) {
  for (const DatasetBase* input : dataset.inputs()) {
    if (!input->reads_files()) return source_without_files(*input);
  }
  return dataset;
}

class DistributeIterator final : public UnaryIterator {
 public:
  DistributeIterator(std::unique_ptr<IteratorBase> input, std::int64_t replicas)
      : UnaryIterator(std::move(input)), replicas_(replicas), at_(replicas) {}

  bool next(Element& out) override {
    if (at_ == replicas_) {
      if (!input().next(batch_)) return false;
      const std::int64_t number = number_++;
      try {
        rows_ = count_rows();
      } catch (...) {
        throw_stage_error("distribute_batch", number, origin_text(input().origin()));
      }
      at_ = 0;
    }
    const std::int64_t size = rows_ / replicas_ + (rows_ % replicas_ != 0 ? 1 : 0);
    const std::int64_t begin = std::min(rows_, at_ * size);
    const std::int64_t end = std::min(rows_, begin + size);
    ++at_;
    out.clear();
    for (const Tensor& tensor : batch_) out.emplace_back(tensor.array().slice_outer(begin, end));
    return true;
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("DistributeBatch");
    state.value(number_);
    state.value(batch_);
    state.value(at_);
    state.require(at_ >= 0 && at_ <= replicas_, "it has more replicas");
    if (state.restoring()) rows_ = count_rows();
    input().visit_state(state);
  }

 private:
  std::int64_t count_rows() const {
    std::int64_t rows = 0;
    for (const Tensor& tensor : batch_) {
      if (tensor.rank() == 0 || (&tensor != &batch_.front() && tensor.dim(0) != rows)) {
        throw InvalidArgumentError(
            cat("distribute_batch needs batches, whose components have one first size; a component "
                "has shape ",
                tensor.shape(), "."));
      }
      rows = tensor.dim(0);
    }
    return rows;
  }

  const std::int64_t replicas_;
  Element batch_;
  std::int64_t rows_ = 0;
  std::int64_t number_ = 0;  // batches so far
  std::int64_t at_;
};

class DistributeDataset final : public UnaryDataset {
 public:
  DistributeDataset(DatasetRef input, std::int64_t replicas)
      : UnaryDataset(std::move(input)), replicas_(replicas) {}
  std::string name() const override { return "DistributeBatch"; }
  std::string parameters() const override { return cat("replicas=", replicas_); }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<DistributeIterator>(input().iterator(context), replicas_);
  }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      ElementSpec spec = input().element_spec();
      for (TensorSpec& s : spec) {
        if (s.shape.rank() <= 0) continue;
        std::vector<std::int64_t> dims = s.shape.dims();
        // Equal parts only if it divides.
        const bool even = dims[0] >= 0 && dims[0] % replicas_ == 0;
        dims[0] = even ? dims[0] / replicas_ : PartialShape::kUnknown;
        s.shape = PartialShape(std::move(dims));
      }
      return spec;
    });
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    return n < 0 ? n : checked_multiply(n, replicas_);
  }

 private:
  const std::int64_t replicas_;
  LazySpec spec_;
};

}  // namespace

void check_enough_files(std::int64_t count, std::int64_t num_shards) {
  if (count < 0 || count >= num_shards) return;
  throw InvalidArgumentError(
      cat("Could not apply FILE based sharding: the dataset only has ", count,
          " file(s), which is not enough for the required ", num_shards,
          " shards/workers. Set Options::auto_shard_policy to kData, which deals out elements, or "
          "to kOff."));
}

std::unique_ptr<IteratorBase> apply_file_shard(std::unique_ptr<IteratorBase> all,
                                               std::int64_t count,
                                               const IterationContext& context) {
  const auto& shard = context.options().file_shard;
  if (!shard) return all;
  check_enough_files(count, shard->num_shards);
  return make_shard_iterator(std::move(all), shard->num_shards, shard->index, context);
}

Dataset auto_shard(const Dataset& dataset, std::int64_t num_workers, std::int64_t index) {
  const DatasetRef& base = base_of(dataset);
  if (num_workers < 1 || index < 0 || index >= num_workers) {
    throw InvalidArgumentError(cat("index should be >= 0 and < num_workers, currently index = ",
                                   index, ", num_workers = ", num_workers, "."));
  }
  AutoShardPolicy policy = policy_of(*base);
  if (policy == AutoShardPolicy::kOff) return dataset;
  const bool files = policy != AutoShardPolicy::kData && base->reads_files();
  if (policy == AutoShardPolicy::kFile && !files) {
    throw InvalidArgumentError(
        cat("Found an unshardable source dataset: ", source_without_files(*base).name(),
            " reads no files. Set Options::auto_shard_policy to kData."));
  }
  if (files) return make_dataset<FileShardDataset>(base, FileShard{num_workers, index});
  return dataset.shard(num_workers, index);
}

Dataset distribute_batch(const Dataset& dataset, std::int64_t num_replicas) {
  if (num_replicas < 1) {
    throw InvalidArgumentError(
        cat("num_replicas must be greater than zero, got ", num_replicas, "."));
  }
  return make_dataset<DistributeDataset>(base_of(dataset), num_replicas);
}

std::vector<std::int64_t> batch_sizes_for_worker(std::int64_t global_batch_size,
                                                 std::int64_t num_workers,
                                                 std::int64_t num_replicas_per_worker,
                                                 std::int64_t worker_index) {
  if (global_batch_size < 0 || num_workers < 1 || num_replicas_per_worker < 1 || worker_index < 0 ||
      worker_index >= num_workers) {
    throw InvalidArgumentError(cat("batch_sizes_for_worker: there is no worker ", worker_index,
                                   " of ", num_workers, " with ", num_replicas_per_worker,
                                   " replicas and a batch of ", global_batch_size, "."));
  }
  const std::int64_t parts = checked_multiply(num_workers, num_replicas_per_worker);
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < parts; ++i) {
    sizes.push_back(global_batch_size / parts + (i < global_batch_size % parts ? 1 : 0));
  }
  // Each worker begins with the sizes of its own replicas of a step.
  std::rotate(sizes.begin(), sizes.begin() + worker_index * num_replicas_per_worker, sizes.end());
  return sizes;
}

}  // namespace tandem::data
