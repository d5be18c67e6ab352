#include "tandem/data/internal/files.h"

#include <utility>

#include "tandem/data/internal/stage_error.h"

namespace tandem::data {
namespace {

// How far each of several files is read ahead.
constexpr std::int64_t kReadAhead = 64;

// The names, one at a time.
class Names {
 public:
  virtual ~Names() = default;
  virtual bool next(std::string& name) = 0;
};

class ListedNames final : public Names {
 public:
  explicit ListedNames(const std::vector<std::string>& names) : names_(names) {}
  bool next(std::string& name) override {
    if (at_ == names_.size()) return false;
    name = names_[at_++];
    return true;
  }

 private:
  const std::vector<std::string>& names_;
  std::size_t at_ = 0;
};

class DrawnNames final : public Names {
 public:
  explicit DrawnNames(std::unique_ptr<IteratorBase> input) : input_(std::move(input)) {}
  bool next(std::string& name) override {
    while (at_ == count_) {
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

 private:
  std::unique_ptr<IteratorBase> input_;
  Element element_;
  std::size_t at_ = 0, count_ = 0;
};

class FilesIterator final : public IteratorBase, public TextSource {
 public:
  FilesIterator(const FilesPlan& plan, std::unique_ptr<Names> names)
      : plan_(plan), names_(std::move(names)) {}

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

 private:
  template <class Next>
  bool next_by(Next next_of) {
    try {
      std::string name;
      while (!ended_) {
        if (file_) {
          if (next_of(*file_)) {
            ++number_;
            return true;
          }
          file_ = nullptr;
        }
        if (names_->next(name)) {
          file_ = plan_.open(name);
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
  std::unique_ptr<FileElements> file_;
  std::int64_t number_ = 0;
  bool ended_ = false;
};

class FilesDataset final : public DatasetBase {
 public:
  FilesDataset(std::vector<std::string> files, DatasetRef names, FilesPlan plan)
      : files_(std::move(files)), names_(std::move(names)), plan_(std::move(plan)) {}

  std::string name() const override { return plan_.name; }
  std::vector<const DatasetBase*> inputs() const override {
    if (names_) return {names_.get()};
    return {};
  }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override;
  const ElementSpec& element_spec() const override { return plan_.spec; }
  std::int64_t cardinality() const override { return kUnknown; }

 private:
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
      Slot& slot = slots_[at_];
      if (!slot.iterator) open(slot);
      if (slot.iterator) {
        const std::size_t was = at_;
        at_ = (at_ + 1) % slots_.size();
        if (slots_[was].iterator->next(out)) return true;
        slots_[was] = {};
        empty = 0;
        continue;
      }
      at_ = (at_ + 1) % slots_.size();
      ++empty;
    }
    return false;
  }

 private:
  struct Slot {
    DatasetRef file;
    std::unique_ptr<IteratorBase> iterator;
  };

  void open(Slot& slot) {
    std::string name;
    if (ended_ || !names_->next(name)) {
      ended_ = true;
      return;
    }
    FilesPlan plan = plan_;
    plan.num_parallel_reads = 0;
    slot.file = read_files(std::vector<std::string>{std::move(name)}, std::move(plan))
                    .prefetch(kReadAhead)
                    .base();
    slot.iterator = slot.file->iterator(context_);
  }

  const FilesPlan& plan_;
  std::unique_ptr<Names> names_;
  IterationContext context_;
  std::vector<Slot> slots_;
  std::size_t at_ = 0;
  bool filled_ = false;
  bool ended_ = false;
};

std::unique_ptr<IteratorBase> FilesDataset::make_iterator(const IterationContext& context) const {
  std::unique_ptr<Names> names;
  if (names_) {
    names = std::make_unique<DrawnNames>(names_->iterator(context));
  } else {
    names = std::make_unique<ListedNames>(files_);
  }
  if (plan_.num_parallel_reads > 0) {
    return std::make_unique<CycleIterator>(plan_, std::move(names), context);
  }
  return std::make_unique<FilesIterator>(plan_, std::move(names));
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

bool FileElements::next_text(std::string& out) {
  Element element;
  if (!next(element)) return false;
  out = element[0].array().data<std::string>()[0];
  return true;
}

void put_string(Element& out, std::string_view text) {
  Array array(DType::kString, Shape{});
  array.data<std::string>()[0] = text;
  out.clear();
  out.emplace_back(std::move(array));
}

void check_options(const FileOptions& options) {
  fs::compression_of(options.compression_type);
  if (options.num_parallel_reads < kAutotune || options.num_parallel_reads > 1024) {
    throw InvalidArgumentError(cat("num_parallel_reads must be from 0 to 1024, or kAutotune, got ",
                                   options.num_parallel_reads, "."));
  }
}

}  // namespace tandem::data
