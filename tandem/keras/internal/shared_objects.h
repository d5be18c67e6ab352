#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "tandem/keras/layer.h"

namespace tandem::keras::internal {

/// While a model is written or read on this thread: the numbers by which a file says that a layer
/// in two places is one ("shared_object_id").
class SharedObjects {
 public:
  enum class Use : unsigned char { kWrite, kRead };
  explicit SharedObjects(Use use) : use_(use), before_(current_) { current_ = this; }
  ~SharedObjects() { current_ = before_; }
  SharedObjects(const SharedObjects&) = delete;
  SharedObjects& operator=(const SharedObjects&) = delete;

  /// Null where a model is not being written, or read.
  static SharedObjects* current(Use use) {
    return current_ && current_->use_ == use ? current_ : nullptr;
  }

  std::int64_t number_of(const LayerImpl* layer) {
    return numbers_.emplace(layer, static_cast<std::int64_t>(numbers_.size()) + 1).first->second;
  }
  void add(std::int64_t number, const Layer& layer) { layers_[number] = layer; }
  /// Undefined if the number was not seen yet.
  Layer find(std::int64_t number) const {
    const auto found = layers_.find(number);
    return found == layers_.end() ? Layer() : found->second;
  }

 private:
  static thread_local SharedObjects* current_;
  Use use_;
  SharedObjects* before_;
  std::map<const LayerImpl*, std::int64_t> numbers_;
  std::map<std::int64_t, Layer> layers_;
};

}  // namespace tandem::keras::internal
