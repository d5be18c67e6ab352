#include "tandem/data/graph_ops/task_dataset.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/remote_calls.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::data {
namespace {

AttrMap element_attrs(const ElementSpec& spec) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const TensorSpec& component : spec) {
    dtypes.push_back(component.dtype);
    shapes.push_back(component.shape);
  }
  return AttrMap{{"output_types", std::move(dtypes)}, {"output_shapes", std::move(shapes)}};
}

// One element is asked for ahead of the one in use: then its message is on the way meanwhile.
class TaskIterator final : public IteratorBase {
 public:
  TaskIterator(const Tensor& dataset, const ElementSpec& spec, std::string device)
      : attrs_(element_attrs(spec)), device_(std::move(device)) {
    const DeviceScope there(device_);
    iterator_ = raw_op("AnonymousIteratorV3", std::initializer_list<Tensor>{}, attrs_).at(0);
    raw_op("MakeIterator", {dataset, iterator_});
    ask();
  }

  bool next(Element& out) override {
    out.clear();
    if (ended_) return false;
    const DeviceScope there(device_);
    if (!asked_) ask();
    const Asked element = *std::exchange(asked_, std::nullopt);
    if (!element.has_value.item<bool>()) {  // waits; throws what making the element threw
      ended_ = true;
      return false;
    }
    ask();
    out = raw_op("OptionalGetValue", {element.optional}, attrs_);
    return true;
  }

 private:
  struct Asked {
    Tensor optional;
    Tensor has_value;
  };
  void ask() {
    const Tensor optional = raw_op("IteratorGetNextAsOptional", {iterator_}, attrs_).at(0);
    asked_.emplace(Asked{optional, raw_op("OptionalHasValue", {optional}).at(0)});
  }

  const AttrMap attrs_;
  const std::string device_;
  Tensor iterator_;
  std::optional<Asked> asked_;
  bool ended_ = false;
};

class TaskDataset final : public DatasetBase {
 public:
  TaskDataset(const DatasetBase& written, std::string device)
      : spec_(written.element_spec()),
        names_(written.names()),
        cardinality_(written.cardinality()),
        device_(std::move(device)) {
    const DeviceScope there(device_);
    variant_ = written.as_op();
  }

  std::string name() const override { return "Remote"; }
  std::string parameters() const override { return "device=" + device_; }
  const ElementSpec& element_spec() const override { return spec_; }
  const Names& names() const override { return names_; }
  std::int64_t cardinality() const override { return cardinality_; }
  Tensor as_op() const override { return variant_; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext&) const override {
    return std::make_unique<TaskIterator>(variant_, spec_, device_);
  }

 private:
  const ElementSpec spec_;
  const Names names_;
  const std::int64_t cardinality_;
  const std::string device_;
  Tensor variant_;
};

}  // namespace

// What a dataset is on other tasks, where passes leave random state and caches to later ones.
class TaskCopies {
 public:
  DatasetRef get(const DatasetRef& dataset, const RemoteTarget& target) {
    const std::lock_guard lock(mutex_);
    if (calls_.lock() != target.calls) {  // another connection
      copies_.clear();
      calls_ = target.calls;
    }
    DatasetRef& copy = copies_[target.device];
    if (!copy) copy = std::make_shared<const TaskDataset>(*dataset, target.device);
    return copy;
  }
  /// Whether it is to be reported that the dataset runs here: once.
  bool report() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(reported_, true);
  }

 private:
  std::mutex mutex_;
  bool reported_ = false;                     // guarded by mutex_
  std::weak_ptr<RemoteCalls> calls_;          // guarded by mutex_
  std::map<std::string, DatasetRef> copies_;  // by device; guarded by mutex_
};

TaskCopies& DatasetBase::task_copies() const {
  std::call_once(making_copies_, [this] { task_copies_ = std::make_shared<TaskCopies>(); });
  return *task_copies_;
}

DatasetRef dataset_for_scope(const DatasetRef& dataset) {
  if (!RemoteCalls::active()) return dataset;
  const std::optional<RemoteTarget> target = remote_target({}, CallKind::kOp);
  if (!target) return dataset;
  try {
    return dataset->task_copies().get(dataset, *target);
  } catch (const UnimplementedError& error) {
    if (dataset->task_copies().report()) {
      log(LogLevel::kWarning, cat("tandem: a dataset runs in this process instead of on ",
                                  target->device, ": ", error.what()));
    }
    return dataset;
  }
}

}  // namespace tandem::data
