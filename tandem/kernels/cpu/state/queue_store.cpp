#include <algorithm>
#include <vector>

#include "tandem/kernels/cpu/random/philox.h"
#include "tandem/kernels/cpu/state/queue.h"

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

// The lowest first. Equal ones come as a heap has them, which is how TensorFlow does it.
class ByPriority final : public QueueStore {
 public:
  void put(Tuple element) override {
    elements_.push_back(std::move(element));
    std::push_heap(elements_.begin(), elements_.end(), later);
  }
  Tuple take() override {
    std::pop_heap(elements_.begin(), elements_.end(), later);
    Tuple first = std::move(elements_.back());
    elements_.pop_back();
    return first;
  }
  void put_back(Tuple element) override { put(std::move(element)); }
  std::int64_t size() const override { return static_cast<std::int64_t>(elements_.size()); }

 private:
  static bool later(const Tuple& a, const Tuple& b) {
    return *a[0].data<std::int64_t>() > *b[0].data<std::int64_t>();
  }
  std::vector<Tuple> elements_;  // a heap
};

}  // namespace

std::unique_ptr<QueueStore> fifo_store() { return std::make_unique<Fifo>(); }
std::unique_ptr<QueueStore> shuffled_store(std::uint64_t seed, std::uint64_t seed2) {
  return std::make_unique<Shuffled>(seed, seed2);
}
std::unique_ptr<QueueStore> priority_store() { return std::make_unique<ByPriority>(); }

}  // namespace tandem::cpu
