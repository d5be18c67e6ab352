#include <algorithm>
#include <map>

#include "tandem/kernels/cpu/philox.h"
#include "tandem/kernels/cpu/queue.h"

namespace tandem::cpu {
namespace {

class Fifo final : public QueueStore {
 public:
  void put(Tuple element) override { elements_.push_back(std::move(element)); }
  Tuple take() override {
    Tuple first = std::move(elements_.front());
    elements_.pop_front();
    return first;
  }
  void put_back(Tuple element) override { elements_.push_front(std::move(element)); }
  std::int64_t size() const override { return static_cast<std::int64_t>(elements_.size()); }

 private:
  std::deque<Tuple> elements_;
};

class Shuffled final : public QueueStore {
 public:
  Shuffled(std::uint64_t seed, std::uint64_t seed2) : numbers_(Philox(seed, seed2)) {}
  void put(Tuple element) override { elements_.push_back(std::move(element)); }
  Tuple take() override {
    const std::size_t chosen = numbers_() % elements_.size();
    std::swap(elements_[chosen], elements_.back());
    Tuple element = std::move(elements_.back());
    elements_.pop_back();
    return element;
  }
  void put_back(Tuple element) override { put(std::move(element)); }
  std::int64_t size() const override { return static_cast<std::int64_t>(elements_.size()); }

 private:
  std::vector<Tuple> elements_;
  PhiloxNumbers numbers_;
};

class ByPriority final : public QueueStore {
 public:
  void put(Tuple element) override {
    const std::int64_t priority = *element[0].data<std::int64_t>();
    elements_.emplace(std::pair(priority, next_++), std::move(element));
  }
  Tuple take() override { return std::move(elements_.extract(elements_.begin()).mapped()); }
  void put_back(Tuple element) override {
    const std::int64_t priority = *element[0].data<std::int64_t>();
    elements_.emplace(std::pair(priority, --first_), std::move(element));
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(elements_.size()); }

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, Tuple> elements_;  // by priority, then age
  std::int64_t next_ = 0, first_ = 0;
};

}  // namespace

std::unique_ptr<QueueStore> fifo_store() { return std::make_unique<Fifo>(); }
std::unique_ptr<QueueStore> shuffled_store(std::uint64_t seed, std::uint64_t seed2) {
  return std::make_unique<Shuffled>(seed, seed2);
}
std::unique_ptr<QueueStore> priority_store() { return std::make_unique<ByPriority>(); }

}  // namespace tandem::cpu
