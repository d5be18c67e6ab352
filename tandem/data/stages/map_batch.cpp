#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/data/observe/origin.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/sources/fetch_batch.h"
#include "tandem/data/stages/call_list.h"
#include "tandem/data/stages/group_dataset.h"
#include "tandem/data/stages/parallel_map.h"
#include "tandem/data/stages/stacker.h"
#include "tandem/device/serial_kernel_scope.h"

namespace tandem::data {
namespace {

// Threads that make whole batches hold several each: not where they are larger, or fewer, than
// these. The same on every machine, for states that are restored on another.
constexpr std::int64_t kMaxBytes = std::int64_t{32} << 20;
constexpr std::int64_t kFewBatches = 8;

bool all_known(const ElementSpec& spec) {
  return std::all_of(spec.begin(), spec.end(),
                     [](const TensorSpec& s) { return s.shape.is_fully_known(); });
}

// Puts what the map makes of elements into the rows of a batch.
class RowMaker {
 public:
  RowMaker(const MapStage& map, const ElementProgram& program)
      : map_(map), program_(program), prepared_(all_known(program.spec())) {}

  // Element `number` of the map's input, which it empties and whose origin `before` gives, for
  // batch `batch`; in a pass that draws from `stream`. `first` becomes the origin of the batch's
  // first.
  template <class Before>
  void add(Element& element, Before before, std::int64_t number, std::int64_t batch, Stacker& rows,
           const RngPosition::Stream* stream, Origin& first) const {
    CallList<Array> made(program_.spec().size());
    bool ran = false;
    Element names;
    note_names(element, names);
    try {
      const DrawScope scope(stream, number);
      if (!program_.worth_running(element)) {
        map_.function().apply(element);
      } else {
        if (prepared_ && rows.size() == 0) rows.prepare(program_.spec());
        CallList<Array> places(program_.spec().size());
        const bool placed = rows.next_row(places.items());
        program_.run(element, placed ? places.items() : std::span<Array>(), made.items());
        ran = true;
      }
    } catch (...) {
      throw_stage_error("map", number, origin_text(names, before()));
    }
    if (rows.size() == 0) first = joined(names, before());
    try {
      ran ? rows.add(made.items()) : rows.add(element);
    } catch (...) {
      throw_stage_error("batch", batch, describe_mismatch(joined(names, before()), first));
    }
  }

 private:
  const MapStage& map_;
  const ElementProgram& program_;
  const bool prepared_;
};

class MapBatchIterator final : public UnaryIterator {
 public:
  MapBatchIterator(std::unique_ptr<IteratorBase> input, const RowMaker& maker, std::int64_t size,
                   bool drop_remainder, DrawPass draws, IterationContext context)
      : UnaryIterator(std::move(input)),
        draws_(std::move(draws)),
        context_(std::move(context)),
        maker_(maker),
        size_(size),
        drop_remainder_(drop_remainder) {}

  bool next(Element& out) override {
    if (ended_) return false;
    Stacker rows(size_);
    const std::int64_t batch = batches_++;
    const std::int64_t drawn =
        fetch_batch(input(), context_, size_, ended_, number_, [&](Element& element) {
          maker_.add(
              element, [&] { return input().origin(); }, number_, batch, rows, draws_.stream(),
              first_);
        });
    if (drawn == 0 || (drawn < size_ && drop_remainder_)) return false;
    rows.finish(out);
    return true;
  }

  Origin origin() const override { return of_several(first_); }

  void visit_state(StateArchive& state) override {
    state.stage(cat("Map+Batch of ", size_));
    state.value(ended_);
    state.value(number_);
    state.value(batches_);
    draws_.visit_state(state);
    input().visit_state(state);
  }

 private:
  DrawPass draws_;
  const IterationContext context_;
  const RowMaker& maker_;
  const std::int64_t size_;
  const bool drop_remainder_;
  Origin first_;  // of the batch's first element
  bool ended_ = false;
  std::int64_t number_ = 0;   // elements so far
  std::int64_t batches_ = 0;  // with the one being made
};

// Elements that are to be in one batch, as one: the number of the batch, that of its first element,
// how many, the places of their origins, and then the components of one after the other, each with
// the name of its origin.
constexpr std::size_t kHeader = 4;

class GroupIterator final : public UnaryIterator {
 public:
  GroupIterator(std::unique_ptr<IteratorBase> input, std::int64_t size, bool drop_remainder,
                IterationContext context)
      : UnaryIterator(std::move(input)),
        context_(std::move(context)),
        size_(size),
        drop_remainder_(drop_remainder) {}

  bool next(Element& out) override {
    if (ended_) return false;
    out.clear();
    out.emplace_back(batches_++);
    out.emplace_back(number_);
    out.resize(kHeader);
    origins_.clear();
    const std::int64_t drawn =
        fetch_batch(input(), context_, size_, ended_, number_, [&](Element& element) {
          for (Tensor& tensor : element) out.push_back(std::move(tensor));
          const Origin origin = input().origin();
          if (out.size() - kHeader == element.size()) first_ = origin;
          out.push_back(origins_.add(origin));
        });
    out[2] = Tensor(drawn);
    out[3] = origins_.places();
    return drawn == size_ || (drawn > 0 && !drop_remainder_);
  }

  Origin origin() const override { return of_several(first_); }

  void visit_state(StateArchive& state) override {
    state.stage(cat("Group of ", size_));
    state.value(ended_);
    state.value(number_);
    state.value(batches_);
    input().visit_state(state);
  }

 private:
  const IterationContext context_;
  const std::int64_t size_;
  const bool drop_remainder_;
  OriginTensors origins_;
  Origin first_;  // of the batch's first element
  bool ended_ = false;
  std::int64_t number_ = 0;
  std::int64_t batches_ = 0;
};

class MapBatchDataset final : public DatasetBase {
 public:
  MapBatchDataset(DatasetRef batch, const MapStage& map, std::int64_t size, bool drop_remainder)
      : batch_(std::move(batch)),
        map_(map),
        program_(map.program()),
        size_(size),
        drop_remainder_(drop_remainder),
        maker_(map, *program_),
        groups_(map.mapped(), "Group", size, drop_remainder),
        batches_(
            map.function().with_implementation([this](Element& group) { make_batch(group); })) {}

  std::string name() const override { return parallel() ? "ParallelMap+Batch" : "Map+Batch"; }
  std::vector<const DatasetBase*> inputs() const override {
    if (parallel()) return {&groups_};
    return {map_.mapped().get()};
  }
  const ElementSpec& element_spec() const override { return batch_->element_spec(); }
  std::int64_t cardinality() const override { return batch_->cardinality(); }

  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    DrawPass draws(map_.draws(), context);
    if (!parallel()) {
      return std::make_unique<MapBatchIterator>(map_.mapped()->iterator(context), maker_, size_,
                                                drop_remainder_, std::move(draws), context);
    }
    const MapOptions& options = map_.map_options();
    const bool ordered =
        options.deterministic.value_or(context.options().deterministic.value_or(true));
    return make_parallel_map(groups_, batches_, context.threads(options.num_parallel_calls),
                             ordered, context, std::move(draws), nullptr);
  }

 private:
  bool parallel() const { return map_.map_options().num_parallel_calls != 0; }

  void make_batch(Element& group) const {
    const SerialKernelScope alone;
    const RngPosition::Stream* stream = map_.draws() ? DrawScope::current() : nullptr;
    const auto number = [&](std::size_t i) { return group[i].item<std::int64_t>(); };
    const std::int64_t batch = number(0), first = number(1), count = number(2);
    const std::size_t components = (group.size() - kHeader) / static_cast<std::size_t>(count);
    Stacker rows(count);
    const Tensor places = group[3];
    Element element;
    Origin of_first;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto from = group.begin() + static_cast<std::ptrdiff_t>(
                                            kHeader + static_cast<std::size_t>(i) * components);
      element.assign(std::make_move_iterator(from),
                     std::make_move_iterator(from + static_cast<std::ptrdiff_t>(components)));
      const Tensor name = std::move(element.back());
      element.pop_back();
      const auto before = [&] {
        return OriginTensors::read(name, places, static_cast<std::size_t>(i));
      };
      maker_.add(element, before, first + i, batch, rows, stream, of_first);
    }
    rows.finish(group);
  }

  const DatasetRef batch_;  // the same, not fused
  const MapStage& map_;     // kept by it
  const std::shared_ptr<const ElementProgram> program_;
  const std::int64_t size_;
  const bool drop_remainder_;
  const RowMaker maker_;
  const GroupDataset<GroupIterator> groups_;
  const ElementFn batches_;
};

std::int64_t bytes_of(const ElementSpec& spec) {
  std::int64_t bytes = 0;
  for (const TensorSpec& s : spec) {
    bytes += checked_multiply(s.shape.to_shape().num_elements(),
                              static_cast<std::int64_t>(dtype_size(s.dtype)));
  }
  return bytes;
}

// What the batch of a map's elements runs as, found when an iteration asks first.
class FusedBatch final : public FusedBatchChoice {
 public:
  FusedBatch(const DatasetRef& map, std::int64_t size, bool drop_remainder)
      : map_(map), size_(size), drop_remainder_(drop_remainder) {}

  const DatasetBase* get() const override {
    std::call_once(choosing_, [this] { chosen_ = choose(); });
    return chosen_.get();
  }

 private:
  DatasetRef choose() const {
    const MapStage& map = dynamic_cast<const MapStage&>(*map_).composed();
    const std::shared_ptr<const ElementProgram>& program = map.program();
    if (!program || program->spec().empty()) return nullptr;
    if (auto batches = on_batches(*program)) {
      const DatasetRef input = plain_batch(map.mapped(), size_, drop_remainder_);
      return map_by(input, std::move(batches), map.map_options()).base();
    }
    if (map.map_options().num_parallel_calls != 0) {
      if (!all_known(program->spec()) || bytes_of(program->spec()) > kMaxBytes / size_) {
        return nullptr;
      }
      const std::int64_t elements = map_->cardinality();
      if (elements >= 0 && elements / size_ < kFewBatches) return nullptr;
    }
    return std::make_shared<const MapBatchDataset>(plain_batch(map_, size_, drop_remainder_), map,
                                                   size_, drop_remainder_);
  }

  const DatasetRef map_;
  const std::int64_t size_;
  const bool drop_remainder_;
  mutable std::once_flag choosing_;
  mutable DatasetRef chosen_;
};

}  // namespace

std::shared_ptr<const FusedBatchChoice> fuse_map_and_batch(const DatasetRef& input,
                                                           std::int64_t size, bool drop_remainder) {
  if (dynamic_cast<const MapStage*>(input.get()) == nullptr) return nullptr;
  return std::make_shared<const FusedBatch>(input, size, drop_remainder);
}

}  // namespace tandem::data
