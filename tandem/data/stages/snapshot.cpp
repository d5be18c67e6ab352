#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/fingerprint.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/sources/draws.h"
#include "tandem/data/stages/held_element.h"
#include "tandem/data/stages/snapshot_files.h"

namespace tandem::data {
namespace {

// The elements of all shards, in the order of writing where they were dealt out in turns.
Dataset read_all(const std::vector<SnapshotShard>& shards, const SnapshotOptions& options) {
  const auto count = static_cast<std::int64_t>(shards.size());
  if (options.reader_func) {
    return options.reader_func(from_generator(
        [shards] {
          return [shards, at = std::size_t{0}](Element& out) mutable {
            if (at == shards.size()) return false;
            out = {to_variant(shards[at++].read_storably())};
            return true;
          };
        },
        {{DType::kVariant, PartialShape::scalar()}}));
  }
  return range(count).interleave(
      [shards](const Tensor& i) {
        return shards[static_cast<std::size_t>(i.item<std::int64_t>())].read();
      },
      {.cycle_length = std::max<std::int64_t>(count, 1), .num_parallel_calls = kAutotune});
}

// Reads the snapshot if it is there; else passes the input's elements on and writes them.
class SnapshotIterator final : public IteratorBase {
 public:
  SnapshotIterator(const DatasetBase& input, const SnapshotFolder& folder,
                   const SnapshotOptions& options, DrawPass draws, IterationContext context)
      : dataset_(input),
        folder_(folder),
        options_(options),
        draws_(std::move(draws)),
        context_(std::move(context)) {
    if (is_there()) {
      begin_reading();
    } else {
      input_ = dataset_.iterator(context_);
    }
  }

  bool next(Element& out) override {
    if (read_) return read_->next(out);
    if (held_.give(out)) return true;
    try {
      if (!begun_) {
        begun_ = true;
        writing([&] { writer_ = std::make_unique<SnapshotWriter>(folder_); });
      }
      if (input_->next(out)) {
        try {
          write(out);
        } catch (...) {
          held_.keep(out);
          throw;
        }
        return true;
      }
      if (writer_) writing([&] { std::exchange(writer_, nullptr)->finish(); });
    } catch (...) {
      writer_ = nullptr;  // an element is missing, or could not be written
      throw;
    }
    return false;
  }

  Origin origin() const override { return (read_ ? read_ : input_)->origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("Snapshot");
    draws_.visit_state(state);
    bool reads = read_ != nullptr;
    state.value(reads);
    if (reads) {
      if (state.restoring()) begin_reading();
      return read_->visit_state(state);
    }
    read_ = nullptr;
    if (!input_) input_ = dataset_.iterator(context_);
    held_.visit_state(state, begun_);
    state.value(number_);
    input_->visit_state(state);
  }

 private:
  bool is_there() const {
    try {
      return folder_.exists();
    } catch (...) {
      std::rethrow_exception(with_line(
          std::current_exception(), cat("in snapshot, which keeps its files in ", folder_.path())));
    }
  }

  void begin_reading() {
    if (!folder_.exists()) {
      throw NotFoundError(cat(folder_.path(), ": the iteration read a snapshot that is gone."));
    }
    input_ = nullptr;
    read_ = nullptr;
    const DrawScope drawing(draws_, 0);
    all_ = base_of(read_all(folder_.shards(), options_));
    read_ = all_->iterator(context_);
  }

  void write(Element& element) {
    const std::int64_t number = number_++;
    if (!writer_) return;
    std::int64_t shard = number % options_.num_shards;
    try {
      if (options_.shard_func) shard = (*options_.shard_func)(element);
    } catch (...) {
      throw_stage_error("snapshot", number);
    }
    writing([&] { writer_->add(element, shard); });
  }

  template <class Work>
  void writing(Work work) {
    try {
      work();
    } catch (const InvalidArgumentError&) {  // of an element
      throw_stage_error("snapshot", number_ - 1);
    } catch (...) {
      throw_write_error("snapshot", std::max<std::int64_t>(number_ - 1, 0), folder_.path(),
                        "another folder");
    }
  }

  const DatasetBase& dataset_;
  const SnapshotFolder& folder_;
  const SnapshotOptions& options_;
  DrawPass draws_;  // of reader_func
  IterationContext context_;
  DatasetRef all_;  // of these two pairs one
  std::unique_ptr<IteratorBase> read_;
  std::unique_ptr<IteratorBase> input_;
  std::unique_ptr<SnapshotWriter> writer_;
  HeldElement held_;
  std::int64_t number_ = 0;
  bool begun_ = false;  // a restored iteration, which lacks the first elements, writes nothing
};

class SnapshotDataset final : public UnaryDataset {
 public:
  SnapshotDataset(DatasetRef input, const std::string& path, SnapshotOptions options)
      : UnaryDataset(std::move(input)),
        options_(std::move(options)),
        folder_(path, description(this->input()) + options_.version, options_.compression) {}
  std::string name() const override { return "Snapshot"; }
  bool reads_files() const override { return false; }  // it is of the whole
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    DrawPass draws(options_.reader_func ? &draws_ : nullptr, context);
    return std::make_unique<SnapshotIterator>(input(), folder_, options_, std::move(draws),
                                              context);
  }
  void visit_lasting_state(StateArchive& state, const IterationContext& context) const override {
    UnaryDataset::visit_lasting_state(state, context);
    draws_.visit_state(state, context);
  }

 private:
  const SnapshotOptions options_;
  const SnapshotFolder folder_;
  const FunctionRng draws_;
};

}  // namespace

Dataset Dataset::snapshot(const String& path, SnapshotOptions options) const {
  if (path.empty()) throw InvalidArgumentError("`path` of a snapshot must be a folder's name.");
  if (options.compression == "AUTO") options.compression = "";
  fs::compression_of(options.compression);
  if (options.num_shards < 1 ||
      options.num_shards > static_cast<std::int64_t>(SnapshotWriter::kMaxShards)) {
    throw InvalidArgumentError(cat("num_shards must be from 1 to ", SnapshotWriter::kMaxShards,
                                   ", got ", options.num_shards, "."));
  }
  return make_dataset<SnapshotDataset>(base_of(*this), path, std::move(options));
}

}  // namespace tandem::data
