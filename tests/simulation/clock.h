#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace tandem::simulation {

/// The clock, what is to happen, and chance. Its seed decides everything.
class Clock {
 public:
  explicit Clock(std::uint64_t seed) : random_(seed) {}
  void after(double seconds, std::function<void()> event) {
    events_.push({now_ + seconds, number_++, std::move(event)});
  }
  /// False when nothing is left to happen before `limit`.
  bool step(double limit) {
    if (events_.empty() || events_.top().time > limit) return false;
    const auto event = events_.top().run;
    now_ = events_.top().time;
    events_.pop();
    event();
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
  std::priority_queue<Event> events_;
};

}  // namespace tandem::simulation
