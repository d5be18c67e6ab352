#pragma once

#include <cstdint>
#include <utility>

#include "tandem/data/state_archive.h"

namespace tandem::data {

/// An element that a stage could not keep: first its error is thrown, then it is given.
class HeldElement {
 public:
  void keep(Element& element) {
    element_ = std::move(element);
    element.clear();
    held_ = true;
  }
  /// False if there is none.
  bool give(Element& out) {
    if (!held_) return false;
    out = std::exchange(element_, {});
    held_ = false;
    return true;
  }
  /// `begun` is the stage's, which shares a number with whether there is one.
  void visit_state(StateArchive& state, bool& begun) {
    std::int64_t flags = (begun ? 1 : 0) + (held_ ? 2 : 0);
    state.value(flags);
    state.require(flags >= 0 && flags < 4, "it has unknown flags");
    begun = (flags & 1) != 0;
    held_ = (flags & 2) != 0;
    if (held_) state.value(element_);
  }

 private:
  Element element_;
  bool held_ = false;
};

}  // namespace tandem::data
