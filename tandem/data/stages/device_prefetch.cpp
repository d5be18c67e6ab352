#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/stages/ahead_queue.h"
#include "tandem/data/stages/device_copies.h"

namespace tandem::data {
namespace {

// Copies each element when it is asked for.
class CopyIterator final : public UnaryIterator {
 public:
  CopyIterator(std::unique_ptr<IteratorBase> input, const std::string& device,
               const IterationContext& context)
      : UnaryIterator(std::move(input)), copies_(device, context) {}

  bool next(Element& out) override {
    if (ended_ || !input().next(out)) return false;
    const std::int64_t number = number_++;
    try {
      copies_.wait(*copies_.begin(out));
    } catch (const CancelledError&) {
      throw;
    } catch (...) {
      ended_ = !copies_.device().lost().empty();
      throw_stage_error("copy_to_device", number);
    }
    return true;
  }

  void visit_state(StateArchive& state) override {
    state.stage("CopyToDevice");
    state.value(ended_);
    state.value(number_);
    input().visit_state(state);
  }

 private:
  DeviceCopies copies_;
  std::int64_t number_ = 0;
  bool ended_ = false;  // nothing comes after a device that is lost
};

// A thread draws elements and begins their copies; while these are on their way it draws the next.
class DevicePrefetchIterator final : public IteratorBase {
 public:
  DevicePrefetchIterator(const DatasetBase& input, const std::string& device,
                         std::int64_t buffer_size, const IterationContext& context)
      : context_(context.below()),
        copies_(device, context_),
        meter_(context.counters()),
        input_(input.iterator(context_)),
        queue_({.stage = "prefetch_to_device",
                .limit = static_cast<std::size_t>(buffer_size),
                .make = [this](Item& item) { return make(item); }},
               context_, meter_) {
    meter_.threads(1, false);
  }

  bool next(Element& out) override {
    // The device's memory of the element before is free before the next one is waited for.
    out.clear();
    Item item;
    if (!queue_.take(item)) return false;
    deliver(item);
    std::swap(out, item.element);
    return true;
  }

  void visit_state(StateArchive& state) override {
    queue_.paused([&] {
      state.stage("PrefetchToDevice");
      queue_.visit_ended(state);
      state.value(number_);
      queue_.visit_items(state, [&](Item& item) {
        if (item.flight) copies_.wait(*item.flight);
        state.value(item.error);
        state.value(item.element);
        state.value(item.number);
      });
      input_->visit_state(state);
    });
  }

 private:
  struct Item {
    Element element;
    std::exception_ptr error;                      // of the stages before
    std::shared_ptr<DeviceCopies::Flight> flight;  // null: begin the copy when it is wanted
    std::exception_ptr copy_error;
    std::int64_t number = 0;
  };

  void deliver(Item& item) {
    if (item.error) std::rethrow_exception(item.error);
    try {
      if (item.copy_error) std::rethrow_exception(item.copy_error);
      if (!item.flight) item.flight = copies_.begin(item.element);
      const StageMeter::Waiting waiting(meter_);
      copies_.wait(*item.flight);
    } catch (const CancelledError&) {
      throw;
    } catch (...) {
      // Nothing comes after a device that is lost.
      if (!copies_.device().lost().empty()) queue_.end();
      throw_stage_error("prefetch_to_device", item.number);
    }
  }

  bool make(Item& item) {
    try {
      const StageMeter::Drawing drawing(meter_);
      if (!input_->next(item.element)) return false;
    } catch (...) {
      item.error = std::current_exception();
      return true;
    }
    item.number = number_++;
    try {
      const StageMeter::Working working(meter_);
      item.flight = copies_.begin(item.element);
    } catch (...) {
      item.copy_error = std::current_exception();
    }
    return true;
  }

  IterationContext context_;
  DeviceCopies copies_;
  const StageMeter meter_;
  std::unique_ptr<IteratorBase> input_;  // used by the thread alone, like
  std::int64_t number_ = 0;
  AheadQueue<Item> queue_;
};

class DeviceDataset final : public UnaryDataset {
 public:
  DeviceDataset(DatasetRef input, std::string device, std::int64_t buffer_size)
      : UnaryDataset(std::move(input)), device_(std::move(device)), buffer_size_(buffer_size) {}
  std::string name() const override {
    return buffer_size_ > 0 ? "PrefetchToDevice" : "CopyToDevice";
  }
  std::string parameters() const override { return cat("device=", device_); }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    require_device(device_, buffer_size_ > 0 ? "prefetch_to_device" : "copy_to_device");
    if (buffer_size_ == 0) {
      return std::make_unique<CopyIterator>(input().iterator(context), device_, context);
    }
    return std::make_unique<DevicePrefetchIterator>(input(), device_, buffer_size_, context);
  }

 private:
  const std::string device_;
  const std::int64_t buffer_size_;
};

}  // namespace

Dataset Dataset::prefetch_to_device(const String& device, std::int64_t buffer_size) const {
  check_device_name(device);
  if (buffer_size <= 0) {
    throw InvalidArgumentError(cat("buffer_size must be greater than zero, got ", buffer_size,
                                   ". copy_to_device copies without a buffer."));
  }
  return make_dataset<DeviceDataset>(base_of(*this), device, buffer_size);
}

Dataset Dataset::copy_to_device(const String& device) const {
  check_device_name(device);
  return make_dataset<DeviceDataset>(base_of(*this), device, 0);
}

}  // namespace tandem::data
