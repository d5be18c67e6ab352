#pragma once

#include <condition_variable>

namespace tandem::data {

/// Asks the threads of a stage to come to rest while its state is saved or restored, and to go on
/// afterwards, however that ends. To be made and destroyed with the lock held that guards
/// `pausing`; its maker then waits until no thread is in the stage's input.
class PauseScope {
 public:
  PauseScope(bool& pausing, std::condition_variable& changed)
      : pausing_(pausing), changed_(changed) {
    pausing_ = true;
    changed_.notify_all();
  }
  ~PauseScope() {
    pausing_ = false;
    changed_.notify_all();
  }
  PauseScope(const PauseScope&) = delete;
  PauseScope& operator=(const PauseScope&) = delete;

 private:
  bool& pausing_;
  std::condition_variable& changed_;
};

}  // namespace tandem::data
