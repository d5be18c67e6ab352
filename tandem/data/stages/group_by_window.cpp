#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/sources/draws.h"
#include "tandem/data/stages/element_list.h"

namespace tandem::data {
namespace {

// Windows that are made into datasets count as elements from this number on.
constexpr std::int64_t kWindows = std::int64_t{1} << 62;

struct Window {
  std::vector<Element> elements;
  Origins origins;

  void visit_state(StateArchive& state) {
    state.value(elements);
    origins.visit_state(state);
  }
};

struct Grouping {
  ElementNumber key;
  std::function<Dataset(std::int64_t, Dataset)> reduce;
  std::function<std::int64_t(std::int64_t)> window_size;
};

class GroupByWindowIterator final : public UnaryIterator {
 public:
  GroupByWindowIterator(std::unique_ptr<IteratorBase> input, const Grouping& grouping,
                        const DatasetBase& from, DrawPass draws, IterationContext context)
      : UnaryIterator(std::move(input)),
        grouping_(grouping),
        from_(from),
        draws_(std::move(draws)),
        context_(std::move(context)) {}

  bool next(Element& out) override {
    for (;;) {
      context_.check();
      if (reduced_) {
        if (reduced_->next(out)) return true;
        close();
      }
      if (input_ended_) {
        // What is left, in the order of the keys.
        if (groups_.empty()) return false;
        open(groups_.begin()->first);
        continue;
      }
      Element element;
      if (input().next(element)) {
        add(std::move(element));
      } else {
        input_ended_ = true;
      }
    }
  }

  Origin origin() const override { return reduced_ ? reduced_->origin() : Origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("GroupByWindow");
    state.value(number_);
    state.value(windows_);
    draws_.visit_state(state);
    state.value(input_ended_);
    const std::int64_t sizes = state.length(sizes_.size());
    auto size = sizes_.begin();
    for (std::int64_t i = 0; i < sizes; ++i) {
      std::pair<std::int64_t, std::int64_t> entry;
      if (!state.restoring()) entry = *size++;
      state.value(entry.first);
      state.value(entry.second);
      sizes_.insert(entry);
    }
    const std::int64_t groups = state.length(groups_.size());
    auto group = groups_.begin();
    for (std::int64_t i = 0; i < groups; ++i) {
      std::pair<std::int64_t, Window> entry;
      if (!state.restoring()) entry = *group++;
      state.value(entry.first);
      entry.second.visit_state(state);
      if (state.restoring()) groups_.insert(std::move(entry));
    }
    bool reducing = reduced_ != nullptr;
    state.value(reducing);
    if (reducing) {
      state.value(key_);
      Window window = reduced_ ? *window_ : Window();
      window.visit_state(state);
      if (state.restoring()) reduce(key_, std::move(window));
      reduced_->visit_state(state);
    }
    input().visit_state(state);
  }

 private:
  void add(Element element) {
    const std::int64_t number = number_++;
    std::int64_t key = 0, size = 0;
    try {
      const DrawScope drawing(draws_, number);
      key = grouping_.key(element);
      const auto known = sizes_.find(key);
      size = known != sizes_.end() ? known->second : grouping_.window_size(key);
      if (size <= 0) {
        throw InvalidArgumentError(
            cat("Window size must be greater than zero, but got ", size, " for key ", key, "."));
      }
      sizes_[key] = size;
    } catch (...) {
      throw_stage_error("group_by_window", number, origin_text(input().origin()));
    }
    Window& group = groups_[key];
    group.origins.add(group.elements.size(), input().origin());
    group.elements.push_back(std::move(element));
    if (static_cast<std::int64_t>(group.elements.size()) == size) open(key);
  }

  void open(std::int64_t key) {
    const auto group = groups_.find(key);
    Window window = std::move(group->second);
    groups_.erase(group);
    ++windows_;
    reduce(key, std::move(window));
  }

  void reduce(std::int64_t key, Window window) {
    key_ = key;
    window_ = std::make_shared<const Window>(std::move(window));
    try {
      const DrawScope drawing(draws_, kWindows + windows_);
      const std::shared_ptr<const std::vector<Element>> elements(window_, &window_->elements);
      const std::shared_ptr<const Origins> origins(window_, &window_->origins);
      dataset_ =
          grouping_.reduce(key, element_list(elements, from_.element_spec(), origins)).base();
      if (!dataset_) throw InvalidArgumentError("reduce_func returned an undefined dataset.");
      reduced_ = dataset_->iterator(context_);
    } catch (...) {
      close();
      throw_stage_error("group_by_window", number_ - 1);
    }
  }

  void close() {
    reduced_ = nullptr;
    dataset_ = nullptr;
    window_ = nullptr;
  }

  const Grouping& grouping_;
  const DatasetBase& from_;
  DrawPass draws_;
  std::map<std::int64_t, Window> groups_;
  std::map<std::int64_t, std::int64_t> sizes_;
  std::int64_t number_ = 0;
  std::int64_t windows_ = 0;
  bool input_ended_ = false;
  IterationContext context_;
  // The window being given.
  std::int64_t key_ = 0;
  std::shared_ptr<const Window> window_;
  DatasetRef dataset_;
  std::unique_ptr<IteratorBase> reduced_;
};

class GroupByWindowDataset final : public UnaryDataset {
 public:
  GroupByWindowDataset(DatasetRef input, Grouping grouping)
      : UnaryDataset(std::move(input)), grouping_(std::move(grouping)) {}
  std::string name() const override { return "GroupByWindow"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    DrawPass draws(&draws_, context);
    return std::make_unique<GroupByWindowIterator>(input().iterator(context), grouping_, input(),
                                                   std::move(draws), context.repeating());
  }
  const Names& names() const override { return DatasetBase::names(); }
  int num_components() const override { return -1; }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      const auto none = std::make_shared<const std::vector<Element>>();
      return grouping_.reduce(0, element_list(none, input().element_spec())).element_spec();
    });
  }
  std::int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : kUnknown; }
  void visit_lasting_state(StateArchive& state, const IterationContext& context) const override {
    UnaryDataset::visit_lasting_state(state, context);
    draws_.visit_state(state, context);
  }

 private:
  const Grouping grouping_;
  const FunctionRng draws_;
  LazySpec spec_;
};

}  // namespace

Dataset Dataset::group_by_window(ElementNumber key,
                                 std::function<Dataset(std::int64_t key, Dataset window)> reduce,
                                 std::function<std::int64_t(std::int64_t key)> window_size) const {
  if (!reduce || !window_size) {
    throw InvalidArgumentError("group_by_window needs a reduce function and a window size.");
  }
  return make_dataset<GroupByWindowDataset>(
      base_of(*this), Grouping{std::move(key), std::move(reduce), std::move(window_size)});
}

Dataset Dataset::group_by_window(ElementNumber key,
                                 std::function<Dataset(std::int64_t key, Dataset window)> reduce,
                                 std::int64_t window_size) const {
  if (window_size <= 0) {
    throw InvalidArgumentError(
        cat("Window size must be greater than zero, but got ", window_size, "."));
  }
  return group_by_window(std::move(key), std::move(reduce),
                         [window_size](std::int64_t) { return window_size; });
}

}  // namespace tandem::data
