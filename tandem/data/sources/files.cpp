#include "tandem/data/sources/files.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "tandem/core/cancellation.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_counters.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/fs/io_scope.h"
#include "tandem/fs/paths.h"

namespace tandem::data {
namespace {

// How far each of several files is read ahead.
constexpr std::int64_t kReadAhead = 64;

// The names, one at a time.
class Names {
 public:
  virtual ~Names() = default;
  virtual bool next(std::string& name) = 0;
  virtual void visit_state(StateArchive& state) = 0;
};

class ListedNames final : public Names {
 public:
  ListedNames(const std::vector<std::string>& names, std::optional<FileShard> shard)
      : names_(names), shard_(shard.value_or(FileShard())) {
    if (shard) check_enough_files(static_cast<std::int64_t>(names.size()), shard->num_shards);
    at_ = static_cast<std::size_t>(shard_.index);
  }
  bool next(std::string& name) override {
    if (at_ >= names_.size()) return false;
    name = names_[at_];
    at_ += static_cast<std::size_t>(shard_.num_shards);
    return true;
  }
  void visit_state(StateArchive& state) override { state.value(at_); }

 private:
  const std::vector<std::string>& names_;
  const FileShard shard_;
  std::size_t at_ = 0;
};

class DrawnNames final : public Names {
 public:
  DrawnNames(std::unique_ptr<IteratorBase> input, IterationContext context)
      : input_(std::move(input)), context_(std::move(context)) {}
  bool next(std::string& name) override {
    while (at_ == count_) {
      context_.check();
      at_ = count_ = 0;
      if (!input_->next(element_)) return false;
      if (element_.size() != 1 || element_[0].dtype() != DType::kString) {
        throw InvalidArgumentError(cat(
            "`filenames` must be a dataset of string tensors, but an element has ", element_.size(),
            " components", element_.empty() ? "" : cat(" of dtype ", element_[0].dtype()), "."));
      }
      count_ = static_cast<std::size_t>(element_[0].array().num_elements());
    }
    name = element_[0].array().data<std::string>()[at_++];
    return true;
  }
  void visit_state(StateArchive& state) override {
    state.value(element_);
    state.value(at_);
    state.value(count_);
    const bool strings = element_.size() == 1 && element_[0].dtype() == DType::kString;
    const auto held = strings ? static_cast<std::size_t>(element_[0].array().num_elements()) : 0;
    state.require(at_ <= count_ && (at_ == count_ || count_ <= held),
                  "its place is outside the names of files");
    input_->visit_state(state);
  }

 private:
  std::unique_ptr<IteratorBase> input_;
  Element element_;
  std::size_t at_ = 0, count_ = 0;
  IterationContext context_;
};

class FilesIterator final : public IteratorBase, public TextSource {
 public:
  FilesIterator(const FilesPlan& plan, std::unique_ptr<Names> names, IterationContext context)
      : plan_(plan), names_(std::move(names)), context_(std::move(context)) {}

  bool next(Element& out) override {
    return next_by([&](FileElements& file) { return file.next(out); });
  }
  bool gives_texts() const override {
    return plan_.spec.size() == 1 && plan_.spec[0].dtype == DType::kString &&
           plan_.spec[0].shape.rank() == 0;
  }
  bool next_text(std::string& out) override {
    return next_by([&](FileElements& file) { return file.next_text(out); });
  }

  Origin origin() const override {
    if (!file_) return {};
    if (!shown_name_) {
      shown_name_ = std::make_shared<const Element>(Element{Tensor(name_)});
    }
    return {shown_name_, file_->place()};
  }

  void visit_state(StateArchive& state) override {
    state.stage(plan_.name);
    names_->visit_state(state);
    bool open = file_ != nullptr;
    state.value(open);
    state.value(name_);
    state.value(number_);
    state.value(ended_);
    if (state.restoring()) {
      file_ = nullptr;
      if (open) open_file();
    }
    if (open) file_->visit_state(state);
  }

 private:
  void open_file() {
    shown_name_ = nullptr;
    // A read that waits for a store ends when the iteration is stopped.
    if (!cancellation_ && !fs::is_local(name_)) {
      cancellation_ = std::make_shared<Cancellation>();
      waker_ =
          StopSignal::Waker(context_.stop_signal(), [stop = cancellation_] { stop->cancel(); });
    }
    std::optional<fs::IoScope> scope;
    if (cancellation_) scope.emplace(cancellation_);
    file_ = plan_.open(name_);
    file_->read_for(context_);
  }

  template <class Next>
  bool next_by(Next next_of) {
    try {
      while (!ended_) {
        if (file_) {
          std::optional<fs::IoScope> scope;
          if (cancellation_) scope.emplace(cancellation_);
          if (next_of(*file_)) {
            ++number_;
            return true;
          }
          file_ = nullptr;
        }
        context_.check();
        if (names_->next(name_)) {
          open_file();
        } else {
          ended_ = true;
        }
      }
      return false;
    } catch (...) {
      throw_stage_error(plan_.name.c_str(), number_++);
    }
  }

  const FilesPlan& plan_;
  std::unique_ptr<Names> names_;
  const IterationContext context_;
  std::string name_;  // of the file last opened
  std::unique_ptr<FileElements> file_;
  mutable std::shared_ptr<const Element> shown_name_;  // made when it is asked for
  std::int64_t number_ = 0;
  bool ended_ = false;
  std::shared_ptr<Cancellation> cancellation_;  // once a file of a store was opened
  StopSignal::Waker waker_;
};

class FilesDataset final : public DatasetBase {
 public:
  FilesDataset(std::vector<std::string> files, DatasetRef names, FilesPlan plan)
      : files_(std::move(files)), names_(std::move(names)), plan_(std::move(plan)) {}

  std::string name() const override { return plan_.name; }
  std::string parameters() const override {
    std::string all = "files=";
    for (const std::string& file : files_) all += file + ";";
    return all;
  }
  std::vector<const DatasetBase*> inputs() const override {
    if (names_) return {names_.get()};
    return {};
  }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override;
  bool reads_files() const override { return !names_ || names_->can_shard_sources(); }
  bool can_shard_sources() const override { return reads_files(); }
  const ElementSpec& element_spec() const override { return plan_.spec; }
  std::int64_t cardinality() const override { return kUnknown; }

 private:
  // 0 if that is not known.
  std::int64_t count_of_files(const std::optional<FileShard>& shard) const {
    if (names_) return std::max<std::int64_t>(names_->cardinality(), 0);
    const auto all = static_cast<std::int64_t>(files_.size());
    return shard ? (all - shard->index + shard->num_shards - 1) / shard->num_shards : all;
  }

  const std::vector<std::string> files_;
  const DatasetRef names_;  // or null
  const FilesPlan plan_;
};

// Several files at a time, one element of each in turn. A file that has ended is replaced by the
// next one when its turn comes again, as tf.data does.
class CycleIterator final : public IteratorBase {
 public:
  CycleIterator(const FilesPlan& plan, std::unique_ptr<Names> names, IterationContext context)
      : plan_(plan), names_(std::move(names)), context_(std::move(context)) {
    slots_.resize(static_cast<std::size_t>(plan_.num_parallel_reads));
  }

  bool next(Element& out) override {
    if (!filled_) {
      filled_ = true;
      for (Slot& slot : slots_) open(slot);
    }
    for (std::size_t empty = 0; empty < slots_.size();) {
      context_.check();
      Slot& slot = slots_[at_];
      if (!slot.iterator) open(slot);
      if (slot.iterator) {
        last_ = at_;
        at_ = (at_ + 1) % slots_.size();
        if (slots_[last_].iterator->next(out)) return true;
        slots_[last_] = {};
        empty = 0;
        continue;
      }
      at_ = (at_ + 1) % slots_.size();
      ++empty;
    }
    return false;
  }

  Origin origin() const override {
    const Slot& slot = slots_[last_];
    return slot.iterator ? slot.iterator->origin() : Origin();
  }

  void visit_state(StateArchive& state) override {
    state.stage("Parallel" + plan_.name);
    names_->visit_state(state);
    state.value(at_);
    state.value(filled_);
    state.value(ended_);
    const std::int64_t count = state.length(slots_.size());
    state.require(count == static_cast<std::int64_t>(slots_.size()) && at_ < slots_.size(),
                  "num_parallel_reads differs");
    for (Slot& slot : slots_) {
      bool is_open = slot.iterator != nullptr;
      state.value(is_open);
      state.value(slot.name);
      if (state.restoring()) {
        slot.iterator = nullptr;
        if (is_open) begin(slot);
      }
      if (is_open) slot.iterator->visit_state(state);
    }
  }

 private:
  struct Slot {
    std::string name;
    DatasetRef file;
    std::unique_ptr<IteratorBase> iterator;
  };

  void open(Slot& slot) {
    if (ended_ || !names_->next(slot.name)) {
      ended_ = true;
      return;
    }
    begin(slot);
  }

  void begin(Slot& slot) {
    FilesPlan plan = plan_;
    plan.num_parallel_reads = 0;
    slot.file = read_files(std::vector<std::string>{slot.name}, std::move(plan))
                    .prefetch(kReadAhead)
                    .base();
    slot.iterator = slot.file->iterator(context_.whole());
  }

  const FilesPlan& plan_;
  std::unique_ptr<Names> names_;
  IterationContext context_;
  std::vector<Slot> slots_;
  std::size_t at_ = 0;
  std::size_t last_ = 0;  // whose element was given
  bool filled_ = false;
  bool ended_ = false;
};

std::unique_ptr<IteratorBase> FilesDataset::make_iterator(const IterationContext& context) const {
  std::unique_ptr<Names> names;
  if (names_) {
    names = std::make_unique<DrawnNames>(names_->iterator(context), context);
  } else {
    names = std::make_unique<ListedNames>(files_, context.options().file_shard);
  }
  if (StageCounters* counters = context.counters()) {
    StageCounters::set(counters->files, count_of_files(context.options().file_shard));
  }
  if (plan_.num_parallel_reads > 0) {
    return std::make_unique<CycleIterator>(plan_, std::move(names), context);
  }
  return std::make_unique<FilesIterator>(plan_, std::move(names), context);
}

}  // namespace

Dataset read_files(std::vector<std::string> filenames, FilesPlan plan) {
  return make_dataset<FilesDataset>(std::move(filenames), DatasetRef(), std::move(plan));
}

Dataset read_files(const Dataset& filenames, FilesPlan plan) {
  if (!filenames.defined()) {
    throw FailedPreconditionError("`filenames` is a dataset that was never made.");
  }
  return make_dataset<FilesDataset>(std::vector<std::string>(), filenames.base(), std::move(plan));
}

}  // namespace tandem::data
