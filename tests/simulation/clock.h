#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace tandem::simulation {

/// The clock, what is to happen, and chance. Its seed decides everything.
class Clock {
 public:
  explicit Clock(std::uint64_t seed) : random_(seed) {}
  void after(double seconds, std::function<void()> event) {
    events_.push_back({now_ + seconds, number_++, std::move(event)});
    std::push_heap(events_.begin(), events_.end());
  }
  /// False when nothing is left to happen before `limit`.
  bool step(double limit) {
    if (events_.empty() || events_.front().time > limit) return false;
    std::pop_heap(events_.begin(), events_.end());
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.time;
    event.run();
    return true;
  }
  double now() const { return now_; }
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  double seconds(double mean) { return std::exponential_distribution<>(1 / mean)(random_); }
  int number(int below) { return std::uniform_int_distribution<>(0, below - 1)(random_); }

 private:
  struct Event {
    double time;
    std::uint64_t number;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return std::pair(time, number) > std::pair(other.time, other.number);
    }
  };
  std::mt19937_64 random_;
  double now_ = 0;
  std::uint64_t number_ = 0;
  std::vector<Event> events_;  // a heap
};

}  // namespace tandem::simulation
