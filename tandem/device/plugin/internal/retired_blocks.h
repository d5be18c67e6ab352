#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tandem/core/buffer.h"

namespace tandem {

class Device;

/// Device memory that goes free while a piece of work is being launched: kernels that were launched
/// before may still use it. Later ones of the piece may have it, since they come after those in
/// the stream; everyone else when the piece is over.
class RetiredBlocks {
 public:
  /// `settle` waits until what was launched so far is over.
  RetiredBlocks(const Device* device, std::function<void()> settle)
      : device_(device), settle_(std::move(settle)) {}

  /// The calling thread's, if it launches a piece of work of that device; else null.
  static RetiredBlocks* launching_on(const Device* device);

  void add(Ref<Buffer> block);
  /// Memory that others share: later kernels of the piece may have it once no others do.
  void keep(Ref<Buffer> memory) { kept_.push_back(std::move(memory)); }
  /// A block of at least so many bytes, and not of many more; null if there is none.
  Ref<Buffer> take(std::size_t bytes);
  /// Frees all, for everyone, once what was launched is over. False if there are none.
  bool release();
  void clear();
  bool empty() const { return blocks_.empty() && kept_.empty(); }

 private:
  const Device* device_;
  std::function<void()> settle_;
  std::multimap<std::size_t, Ref<Buffer>> blocks_;  // by size
  std::vector<Ref<Buffer>> kept_;
};

/// What goes free on this thread is retired, for a block; null: it is free at once.
class RetiringScope {
 public:
  explicit RetiringScope(RetiredBlocks* blocks);
  ~RetiringScope();
  RetiringScope(const RetiringScope&) = delete;
  RetiringScope& operator=(const RetiringScope&) = delete;

 private:
  RetiredBlocks* saved_;
};

}  // namespace tandem
