#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/data/stages/reservoir.h"

namespace tandem::data {
namespace {

// A pass whose input has ended lets one element of the next pass into the buffer for each that it
// draws, so that no pass begins with an empty one.
class ShuffleRepeatIterator final : public RowStage {
 public:
  ShuffleRepeatIterator(const ShuffleStage& shuffle, std::int64_t count, const Philox& random,
                        const IterationContext& context)
      : RowStage(shuffle.shuffled()->iterator(context)),
        shuffle_(shuffle),
        left_(count),
        next_random_(random),
        numbers_(shuffle.buffer_size(), random),
        elements_(shuffle.buffer_size(), random),
        context_(context) {}

  Origin origin() const override { return origin_; }

  void visit_state(StateArchive& state) override {
    state.stage("Shuffle+Repeat");
    context_.visit_state(state, shuffle_.seeds());
    state.value(left_);
    state.value(given_in_pass_);
    state.value(input_ended_);
    state.value(begun_);
    state.value(error_);
    next_random_.visit_state(state);
    visit_kept(state);
    numbers_.visit_state(state);
    numbers_.visit_ahead(state);
    elements_.visit_state(state);
    elements_.visit_ahead(state);
    std::vector<std::int64_t> rows(rows_.begin() + at_, rows_.begin() + have_);
    state.value(rows);
    state.require(rows.size() <= rows_.size(), "a shuffle has too many rows ahead");
    if (state.restoring()) {
      numbers_.for_each([this](std::int64_t row) { require_row(row); });
      for (const std::int64_t row : rows) require_row(row);
      std::copy(rows.begin(), rows.end(), rows_.begin());
      at_ = 0;
      have_ = rows.size();
    }
    input().visit_state(state);
  }

 protected:
  void draw_rows(std::span<std::int64_t> out, std::size_t& given) override {
    while (given < out.size() && prepare(numbers_)) {
      take(numbers_, out[given++]);
      given += take_ready(out.subspan(given));
    }
  }

  bool next_element(Element& out) override {
    if (!prepare(elements_)) return false;
    out.clear();
    take(elements_, out);
    return true;
  }

 private:
  // False after the last pass; else there is something to take.
  template <class Item>
  bool prepare(Reservoir<Item>& items) {
    for (;;) {
      if (!begun_) {
        Item& item = drawn(items);
        while (!input_ended_ && !items.full()) {
          if (draw(item)) put(item);
        }
      }
      if (!items.empty()) {
        if ((input_ended_ || begun_) && !filled_ahead()) fill_ahead(items);
        return true;
      }
      if (!begun_ && !error_) {
        // An input without elements would be asked for ever.
        if (!given_in_pass_ || left_ == 1) return false;
        begin_next();
      }
      if (begun_) {
        items.turn(next_random_);
        begun_ = given_in_pass_ = false;
      }
      if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

  std::int64_t& drawn(Reservoir<std::int64_t>&) { return drawn_row_; }
  Element& drawn(Reservoir<Element>&) { return drawn_; }
  void put(std::int64_t row) { numbers_.put(row); }
  void put(Element& element) { elements_.put(std::move(element), input().origin()); }
  void put_ahead(std::int64_t row) { numbers_.put_ahead(row); }
  void put_ahead(Element& element) { elements_.put_ahead(std::move(element), input().origin()); }

  void take(Reservoir<std::int64_t>& rows, std::int64_t& out) {
    rows.take(out);
    given_in_pass_ = true;
  }
  void take(Reservoir<Element>& elements, Element& out) {
    elements.take(out, origin_);
    given_in_pass_ = true;
  }

  // What `prepare` and `take` would do as long as there is nothing to ask the input.
  std::size_t take_ready(std::span<std::int64_t> out) {
    if (at_ < have_) {
      const std::size_t count = std::min(have_ - at_, out.size());
      if (!begun_) {
        return take_ready(out.first(count), [&] { numbers_.put(rows_[at_++]); });
      }
      return take_ready(out.first(std::min(count, numbers_.size())),
                        [&] { numbers_.put_ahead(rows_[at_++]); });
    }
    if (!filled_ahead()) return 0;
    return take_ready(out.first(std::min(out.size(), numbers_.size())), [] {});
  }
  template <class Put>
  std::size_t take_ready(std::span<std::int64_t> out, Put put) {
    for (std::int64_t& row : out) {
      put();
      numbers_.take(row);
    }
    return out.size();
  }

  // Whether no more is to be read before this pass has ended.
  bool filled_ahead() const {
    return begun_ ? input_ended_ || error_ : input_ended_ && (left_ == 1 || error_);
  }

  // An error is the next pass's, and waits for it.
  template <class Item>
  void fill_ahead(Reservoir<Item>& items) {
    if (items.full()) return;
    try {
      if (!begun_) begin_next();
      Item& item = drawn(items);
      if (draw(item)) put_ahead(item);
    } catch (...) {
      context_.check();
      error_ = std::current_exception();
    }
  }

  void begin_next() {
    if (left_ > 0) --left_;
    context_.check();
    next_random_ = shuffle_.next_random(context_);
    replace_input(shuffle_.shuffled()->iterator(context_));
    input_ended_ = false;
    begun_ = true;
  }

  // False if the input has ended.
  bool draw(Element& element) {
    input_ended_ = !input().next(element);
    context_.check();
    return !input_ended_;
  }
  bool draw(std::int64_t& row) {
    if (at_ == have_) {
      have_ = input().next_rows(rows_);
      at_ = 0;
      context_.check();
      input_ended_ = have_ == 0;
      if (input_ended_) return false;
    }
    row = rows_[at_++];
    return true;
  }

  const ShuffleStage& shuffle_;
  std::int64_t left_;  // passes, with the one last begun
  bool given_in_pass_ = false;
  bool input_ended_ = false;
  bool begun_ = false;        // the input is the next pass's
  std::exception_ptr error_;  // of the next pass, or of beginning it
  Philox next_random_;        // of the pass last begun
  Reservoir<std::int64_t> numbers_;
  Reservoir<Element> elements_;
  Origin origin_;                       // of the element last given
  std::int64_t drawn_row_ = 0;          // on the way into the buffer
  Element drawn_;                       // likewise; then nothing, in memory that serves again
  std::array<std::int64_t, 128> rows_;  // of the input
  std::size_t at_ = 0;
  std::size_t have_ = 0;
  IterationContext context_;
};

class ShuffleRepeatDataset final : public UnaryDataset {
 public:
  ShuffleRepeatDataset(DatasetRef written, const ShuffleStage& shuffle, std::int64_t count)
      : UnaryDataset(shuffle.shuffled()),
        written_(std::move(written)),
        shuffle_(shuffle),
        count_(count) {}

  std::string name() const override { return "Shuffle+Repeat"; }
  std::int64_t cardinality() const override {
    return repeated_cardinality(input().cardinality(), count_);
  }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    const IterationContext passes = context.repeating();
    const Philox random = shuffle_.next_random(passes);
    return std::make_unique<ShuffleRepeatIterator>(shuffle_, count_, random, passes);
  }

 private:
  const DatasetRef written_;
  const ShuffleStage& shuffle_;  // the same
  const std::int64_t count_;
};

}  // namespace

DatasetRef fuse_shuffle_and_repeat(const DatasetRef& input, std::int64_t count) {
  const auto* shuffle = dynamic_cast<const ShuffleStage*>(input.get());
  if (!shuffle) return nullptr;
  return std::make_shared<const ShuffleRepeatDataset>(input, *shuffle, count);
}

}  // namespace tandem::data
