#include <cstdint>
#include <exception>
#include <utility>

#include "tandem/core/log.h"
#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/data/stages/dataset_op.h"

namespace tandem::data {
namespace {

class IgnoreErrorsIterator final : public UnaryIterator {
 public:
  IgnoreErrorsIterator(std::unique_ptr<IteratorBase> input, const IgnoreErrorsOptions& options,
                       IterationContext context)
      : UnaryIterator(std::move(input)), options_(options), context_(std::move(context)) {}

  bool next(Element& out) override {
    for (;;) {
      try {
        return input().next(out);
      } catch (const CancelledError&) {
        throw;
      } catch (...) {
        context_.check();
        report(message_of(std::current_exception()));
      }
    }
  }

  Origin origin() const override { return input().origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("IgnoreErrors");
    input().visit_state(state);
  }

 private:
  void report(std::string message) const {
    if (options_.log_warning) {
      log(LogLevel::kWarning, cat("ignore_errors left out an element: ", message));
    }
    if (options_.count) options_.count->add(std::move(message));
  }

  const IgnoreErrorsOptions& options_;
  IterationContext context_;
};

class IgnoreErrorsDataset final : public UnaryDataset {
 public:
  IgnoreErrorsDataset(DatasetRef input, IgnoreErrorsOptions options)
      : UnaryDataset(std::move(input)), options_(std::move(options)) {}
  std::string name() const override { return "IgnoreErrors"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<IgnoreErrorsIterator>(input().iterator(context), options_, context);
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    return n == 0 || n == kInfinite ? n : kUnknown;
  }

 private:
  const IgnoreErrorsOptions options_;
};

// No stage of its own in the iteration: the stages before it see the options in their context.
class OptionsDataset final : public UnaryDataset {
 public:
  OptionsDataset(DatasetRef input, Options options)
      : UnaryDataset(std::move(input)), options_(options) {}
  std::string name() const override { return "Options"; }
  // The options say how this process iterates.
  Tensor as_op() const override { return input().as_op(); }
  const Options* options() const override { return &options_; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return input().iterator(context.with(options_));
  }

 private:
  const Options options_;
};

}  // namespace

std::int64_t ErrorCount::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

std::vector<std::string> ErrorCount::messages() const {
  std::lock_guard lock(mutex_);
  return messages_;
}

void ErrorCount::add(std::string message) {
  std::lock_guard lock(mutex_);
  ++count_;
  if (messages_.size() < kKept) messages_.push_back(std::move(message));
}

Dataset Dataset::ignore_errors(IgnoreErrorsOptions options) const {
  return make_dataset<IgnoreErrorsDataset>(base_of(*this), std::move(options));
}

Dataset Dataset::with_options(Options options) const {
  if (options.private_threadpool_size.value_or(0) < 0) {
    throw InvalidArgumentError(
        cat("private_threadpool_size must be >= 0 (0: found by the pipeline), got ",
            *options.private_threadpool_size, "."));
  }
  const auto check_budget = [](const char* name, const std::optional<std::int64_t>& budget) {
    if (budget.value_or(0) < 0) {
      throw InvalidArgumentError(cat("autotune.", name, " must be >= 0, got ", *budget, "."));
    }
  };
  check_budget("cpu_budget", options.autotune.cpu_budget);
  check_budget("ram_budget", options.autotune.ram_budget);
  check_budget("handoff_ns", options.autotune.handoff_ns);
  if (const auto& shard = options.file_shard) {
    if (shard->num_shards < 1 || shard->index < 0 || shard->index >= shard->num_shards) {
      throw InvalidArgumentError(cat("file_shard: index must be >= 0 and < num_shards, got index ",
                                     shard->index, " of ", shard->num_shards, " shards."));
    }
  }
  return make_dataset<OptionsDataset>(base_of(*this), options);
}

namespace internal {

std::int64_t whole_number(const Tensor& result, const char* what) {
  if (result.rank() == 0 && result.dtype() == DType::kInt64) return result.item<std::int64_t>();
  if (result.rank() == 0 && result.dtype() == DType::kInt32) return result.item<std::int32_t>();
  throw InvalidArgumentError(cat("`", what,
                                 "` must give a scalar of dtype int64 or int32, but gave ",
                                 result.dtype(), result.partial_shape(), "."));
}

}  // namespace internal
}  // namespace tandem::data
