#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/stages/element_list.h"

namespace tandem::data {
namespace {

class WindowIterator final : public UnaryIterator {
 public:
  struct Setting {
    std::int64_t size;
    std::int64_t shift;
    std::int64_t stride;
    bool drop_remainder;
  };
  WindowIterator(std::unique_ptr<IteratorBase> input, Setting setting, IterationContext context)
      : UnaryIterator(std::move(input)), setting_(setting), context_(std::move(context)) {}

  bool next(Element& out) override {
    // From the window's first element to its last one, and what lies between them.
    const std::int64_t span = (setting_.size - 1) * setting_.stride + 1;
    while (!input_ended_ && static_cast<std::int64_t>(buffer_.size()) < span) {
      Kept kept;
      if (!input().next(kept.element)) {
        input_ended_ = true;
        break;
      }
      context_.check();
      if (to_pass_ > 0) {
        --to_pass_;
      } else {
        kept.origin = input().origin();
        buffer_.push_back(std::move(kept));
      }
    }
    const auto held = static_cast<std::int64_t>(buffer_.size());
    if (held == 0 || (setting_.drop_remainder && held < span)) return false;
    std::vector<std::shared_ptr<std::vector<Element>>> windows;
    const auto origins = std::make_shared<Origins>();
    std::size_t place = 0;
    for (std::int64_t i = 0; i < std::min(held, span); i += setting_.stride) {
      const auto& [element, origin] = buffer_[static_cast<std::size_t>(i)];
      origins->add(place++, origin);
      for (std::size_t c = 0; c < element.size(); ++c) {
        if (c == windows.size()) windows.push_back(std::make_shared<std::vector<Element>>());
        windows[c]->push_back({element[c]});
      }
    }
    out.clear();
    for (auto& window : windows) {
      ElementSpec spec{{window->front()[0].dtype(), window->front()[0].array().shape()}};
      for (const Element& element : *window) {
        spec[0].shape = spec[0].shape.relax(element[0].array().shape());
      }
      out.push_back(to_variant(element_list(std::move(window), std::move(spec), origins)));
    }
    const std::int64_t dropped = std::min(held, setting_.shift);
    buffer_.erase(buffer_.begin(), buffer_.begin() + dropped);
    to_pass_ += setting_.shift - dropped;
    return true;
  }

  void visit_state(StateArchive& state) override {
    state.stage("Window");
    const std::int64_t count = state.length(buffer_.size());
    if (state.restoring()) buffer_.resize(static_cast<std::size_t>(count));
    for (Kept& kept : buffer_) visit(state, kept);
    state.value(to_pass_);
    state.value(input_ended_);
    input().visit_state(state);
  }

 private:
  const Setting setting_;
  std::deque<Kept> buffer_;
  std::int64_t to_pass_ = 0;  // elements between windows
  bool input_ended_ = false;
  IterationContext context_;
};

class WindowDataset final : public UnaryDataset {
 public:
  WindowDataset(DatasetRef input, WindowIterator::Setting setting)
      : UnaryDataset(std::move(input)), setting_(setting) {}
  std::string name() const override { return "Window"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<WindowIterator>(input().iterator(context), setting_, context);
  }
  const ElementSpec& element_spec() const override {
    return spec_.get([this] {
      return ElementSpec(input().element_spec().size(),
                         TensorSpec{DType::kVariant, PartialShape::scalar()});
    });
  }
  std::int64_t cardinality() const override {
    const std::int64_t n = input().cardinality();
    if (n < 0) return n;
    std::int64_t begins = n;  // elements at which a window may begin
    if (setting_.drop_remainder) {
      begins = std::max<std::int64_t>(0, n - (setting_.size - 1) * setting_.stride);
    }
    return begins == 0 ? 0 : (begins - 1) / setting_.shift + 1;
  }

 private:
  const WindowIterator::Setting setting_;
  LazySpec spec_;
};

}  // namespace

Dataset Dataset::window(std::int64_t size, WindowOptions options) const {
  if (size <= 0) {
    throw InvalidArgumentError(cat("Window size must be greater than zero, got ", size, "."));
  }
  if (options.shift < 0) {
    throw InvalidArgumentError(
        cat("Window shift must be greater than zero, or 0 for the size; got ", options.shift, "."));
  }
  if (options.stride <= 0) {
    throw InvalidArgumentError(
        cat("Window stride must be greater than zero, got ", options.stride, "."));
  }
  checked_multiply(size, options.stride);
  const std::int64_t shift = options.shift == 0 ? size : options.shift;
  return make_dataset<WindowDataset>(
      base_of(*this), WindowIterator::Setting{size, shift, options.stride, options.drop_remainder});
}

}  // namespace tandem::data
